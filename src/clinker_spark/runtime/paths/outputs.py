"""Where an output goes: `{tokens}` filled in, numbers for files that are there already, several names for a split."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePosixPath

from clinker_spark.config.paths.templates import PER_FILE, Token, parse_template
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.errors import IoError, PathError

_FILLED = "\x01"
"""Stands where a token was filled in, as long as that matters. No path has control characters."""
_LATER = re.compile("\x02(source_file|source_path)\x02")
"""A token in a template whose value differs from input file to input file."""


@dataclass(frozen=True)
class Names:
    """What the tokens of a path stand for in this run."""

    execution_id: str
    batch_id: str
    timestamp: str
    pipeline_hash: str
    channel: str = ""
    n: str = ""
    """The number that makes the name of an output unique, if it has to be made so."""


@dataclass(frozen=True)
class Target:
    """An output's place. `folder` outputs are a folder of parts. `template` has what is known per input file only."""

    path: Path
    folder: bool
    template: str | None = None
    numbered: Callable[[int], Target] | None = None
    """For paths with `{n}`: the place with this number in it."""
    root: Path | None = None
    """For paths with tokens: the folder that is written before the first of them. Whatever they stand for, the file
    lies in it."""


def target(plan: Plan, node: OutputPlan, base: Path, names: Names, files: Mapping[str, tuple[str, ...]]) -> Target:
    """The place of an output. `files` are the names of each source's files. Raises `PathError` and `IoError`."""
    given = node.config.path
    tokens = parse_template(given)
    if problem := character_problem("".join(t for t in tokens if isinstance(t, str))):
        raise PathError([node.diagnostic("E433", f"'path' {problem[0]}", "config", "path", help=problem[1])])
    used = {t.name for t in tokens if isinstance(t, Token)}
    fixed = local_path("".join(str(t) for t in takewhile(lambda t: isinstance(t, str), tokens)))
    head, slash, _ = fixed.rpartition("/")
    root = settled(base / (head or slash)) if used else None

    def place(number: int | None) -> Target:
        filled = replace(names, n="" if number is None else str(number).zfill(node.config.unique_suffix_width))
        values = [t if isinstance(t, str) else _FILLED + _value(plan, node, t, filled, files) for t in tokens]
        text = local_path("".join(values))
        _check_parts(node, text)
        text = text.replace(_FILLED, "")
        template = text if used & set(PER_FILE) else None
        path = settled(base / _LATER.sub(r"{\1}", text))
        return Target(path, given.endswith("/"), template, place if "n" in used else None, root)

    return place(None)


def character_problem(text: str) -> tuple[str, str] | None:
    """Why a text cannot be a path, and what to do; None when it can."""
    for char in text:
        if unicodedata.category(char) == "Cc":
            name = "a NUL character" if char == "\0" else f"the control character U+{ord(char):04X}"
            return f"has {name} in it", "remove it: only what can be printed belongs in a path"
        if unicodedata.category(char) == "Cs":
            return "has bytes in it that are not UTF-8", "use letters, digits, '-' and '_'"
    return None


def local_path(text: str) -> str:
    """A path, also when it is written as an address: `file:///data/x.csv`."""
    if not text.startswith("file://"):
        return text
    rest = text.removeprefix("file://")
    return rest.removeprefix("localhost") if rest.startswith("localhost/") else rest


def settled(path: Path) -> Path:
    """The same place without `..`, as the system would go there. It cannot say so itself where a folder on the way is
    not there yet, as in `new/../in.csv`: the file would seem to be free until the run has made that folder.

    >>> settled(Path("/dev/not there/../null")), settled(Path("/dev/null"))
    (PosixPath('/dev/null'), PosixPath('/dev/null'))
    """
    parts = path.parts
    if ".." not in parts:
        return path
    last = len(parts) - parts[::-1].index("..")
    return Path(os.path.realpath(Path(*parts[:last])), *parts[last:])


def _check_parts(node: OutputPlan, text: str) -> None:
    """No part of a path may vanish: `out/{channel}/x.csv` without a channel would be written elsewhere."""
    for part in text.split("/"):
        if part and not part.replace(_FILLED, ""):
            message = f"a part of '{node.config.path}' is empty, because a token in it has no value"
            help_text = "write a word beside the token, as in 'x-{channel}', or leave it out"
            raise PathError([node.diagnostic("E433", message, "config", "path", help=help_text)])


def _check_value(node: OutputPlan, token: str, value: str) -> None:
    """What comes from outside of the YAML is one name in a path, and no way to another folder."""
    if problem := character_problem(value):
        message = f"the value of '{{{token}}}' {problem[0]}"
        raise PathError([node.diagnostic("E433", message, "config", "path", help=problem[1])])
    if "/" in value or value in (".", ".."):
        source = {"batch_id": "--batch-id is", "source_name": "the name of the file is"}.get(token, "it is")
        message = f"'{{{token}}}' may not lead to another folder: {source} '{value}'"
        help_text = "use letters, digits, '-' and '_'; folders are written in the path itself"
        raise PathError([node.diagnostic("E432", message, "config", "path", help=help_text)])


def _value(plan: Plan, node: OutputPlan, token: Token, names: Names, files: Mapping[str, tuple[str, ...]]) -> str:
    args = list(token.args)
    if token.name in PER_FILE:
        return f"\x02{token.name}\x02"
    if token.name == "source_name":
        return _source_name(plan, node, args[0] if args else None, files)
    if token.name == "pipeline_hash":
        digits = args[0] if args else "8"
        return names.pipeline_hash if digits == "full" else names.pipeline_hash[: int(digits)]
    value = str(getattr(names, token.name))
    _check_value(node, token.name, value)
    if len(args) == 2:  # {token:prefix:suffix}: nothing at all when it has no value
        return f"{args[0]}{value}{args[1]}" if value else ""
    return value


def _source_name(plan: Plan, node: OutputPlan, wanted: str | None, files: Mapping[str, tuple[str, ...]]) -> str:
    """The plan has made sure that exactly one source is meant (`plan.bind.output_paths`)."""
    [source] = [n for n in plan.sources_of(node.name) if wanted in (None, n.name)]
    names = files.get(source.name)
    if not names:
        _check_value(node, "source_name", source.source_name)
    return PurePosixPath((names or (source.source_name,))[0]).name.split(".")[0]


NO_FILE = "none"
"""What an output for each input file is called when it has no records at all."""


def static_folder(base: Path, path: str) -> Path:
    """The folder that the files of an output always lie in or under, whatever the tokens of its path stand for."""
    fixed, brace, _ = path.removeprefix("file://").partition("{")
    return settled(base / os.path.dirname(fixed)) if brace else Path(os.path.realpath(base / fixed)).parent


def letter_paths(plan: Plan) -> list[str]:
    """The paths of dead letters as they are written, each once."""
    dlq = plan.file.error_handling.dlq
    given = [dlq.path, *(own.path for own in dlq.per_source.values())]
    return list(dict.fromkeys(path for path in given if path is not None))


def output_folders(plan: Plan, base: Path) -> list[Path]:
    """The folders of all outputs and dead letters, as far as they are the same in every run."""
    paths = [*(node.config.path for node in plan.outputs), *letter_paths(plan)]
    # One that no file can have is refused when all paths are checked; nothing can have been written there.
    return list(dict.fromkeys(static_folder(base, path) for path in paths if "\0" not in path))


def per_file_path(base: Path, template: str, source_file: str) -> Path:
    """The output of one input file."""
    values = {
        "source_file": PurePosixPath(source_file).name.split(".")[0],
        "source_path": source_path(source_file),
    }
    return settled(base / _LATER.sub(lambda token: values[token[1]], template))


def source_path(source_file: str) -> str:
    """What `{source_path}` stands for: the path of an input without its last ending."""
    return str(PurePosixPath(source_file).with_suffix("")).lstrip("/")


@dataclass(frozen=True)
class PartNames:
    """The names of the parts of a split: something, a number of at least `width` digits, something."""

    before: str
    width: int
    after: str

    def name(self, number: int) -> str:
        return f"{self.before}{str(number).zfill(self.width)}{self.after}"

    def number(self, name: str) -> int | None:
        """The number of the part with this name; None when no part is called so."""
        if not name.startswith(self.before) or not name.endswith(self.after):
            return None
        digits = name[len(self.before) : len(name) - len(self.after)]
        if not (digits.isascii() and digits.isdigit()) or not int(digits) or self.name(int(digits)) != name:
            return None
        return int(digits)


def part_names(path: Path, naming: str) -> PartNames:
    """`out.csv` and `{stem}_{seq:04}.{ext}` -> `out_0001.csv`, `out_0002.csv`..."""
    stem, _, ext = path.name.partition(".")
    width = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal width
        if match[0] in ("{{", "}}"):
            return match[0][0]
        if match[1] == "seq":
            width = int(match[2] or 0)
            return "\0"
        return {"stem": stem, "ext": ext}[match[1]]

    name = re.sub(r"\{\{|\}\}|\{(\w+)(?::(\d+))?\}", fill, naming)
    before, _, after = (name if ext else name.rstrip(".")).partition("\0")
    return PartNames(before, width, after)


def split_name(path: Path, naming: str, number: int) -> Path:
    """The path of a part."""
    return path.with_name(part_names(path, naming).name(number))


def meta_path(path: Path) -> Path:
    """What is written about a file lies beside it."""
    return path.with_name(path.name + ".meta.json")


def free_path(node: OutputPlan, path: Path, force: bool, numbered: Callable[[int], Path] | None = None) -> Path:
    """The path to write, by `if_exists`. Raises `IoError` when it may not be written. `numbered` gives the path with a
    number in it; without it, the number stands before the ending."""
    config = node.config
    beside = config.write_meta and config.split is None

    def taken(path: Path) -> Path | None:
        both = (path, meta_path(path)) if beside else (path,)
        return next((one for one in both if one.exists()), None)

    if path.is_dir() and not config.path.endswith("/"):
        help_text = "name a file in it, or end the path with / to write a folder of parts"
        raise IoError([node.diagnostic("E401", f"'{config.path}' is a folder", "config", "path", help=help_text)])
    if path.exists() and config.path.endswith("/") and not path.is_dir():
        help_text = "remove the / to write one file"
        raise IoError([node.diagnostic("E401", f"'{config.path}' is a file", "config", "path", help=help_text)])
    if config.if_exists == "unique_suffix":
        stem, dot, ext = path.name.partition(".")
        number = 0
        found = path
        while taken(found) is not None:
            number += 1
            usual = path.with_name(f"{stem}-{str(number).zfill(config.unique_suffix_width)}{dot}{ext}")
            found = usual if numbered is None else numbered(number)
        return found
    there = taken(path)
    if there is not None and config.if_exists == "error" and not force:
        help_text = "remove it, run with --force, or write if_exists: overwrite"
        name = config.path if there.name == os.path.basename(config.path) else there.name
        raise IoError([node.diagnostic("E406", f"'{name}' is there already", "config", "if_exists", help=help_text)])
    return path
