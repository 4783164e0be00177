"""Where an output goes: `{tokens}` filled in, numbers for files that are there already, several names for a split."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from clinker_spark.config.templates import PER_FILE, Token, parse_template
from clinker_spark.plan.nodes import OutputPlan, Plan, SourcePlan
from clinker_spark.runtime.errors import IoError


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


def target(plan: Plan, node: OutputPlan, base: Path, names: Names, files: Mapping[str, tuple[str, ...]]) -> Target:
    """The place of an output. `files` are the names of each source's files."""
    given = node.config.path
    tokens = parse_template(given)
    per_file = any(isinstance(t, Token) and t.name in PER_FILE for t in tokens)

    def place(number: int | None) -> Target:
        filled = replace(names, n="" if number is None else str(number).zfill(node.config.unique_suffix_width))
        text = "".join(t if isinstance(t, str) else _value(plan, node, t, filled, files) for t in tokens)
        path = base / text.removeprefix("file://")
        has_number = any(isinstance(t, Token) and t.name == "n" for t in tokens)
        return Target(path, given.endswith("/"), text if per_file else None, place if has_number else None)

    return place(None)


def _value(plan: Plan, node: OutputPlan, token: Token, names: Names, files: Mapping[str, tuple[str, ...]]) -> str:
    args = list(token.args)
    if token.name in PER_FILE:
        return "{" + token.name + "}"
    if token.name == "source_name":
        return _source_name(plan, node, args[0] if args else None, files)
    if token.name == "pipeline_hash":
        digits = args[0] if args else "8"
        return names.pipeline_hash if digits == "full" else names.pipeline_hash[: int(digits)]
    value = str(getattr(names, token.name))
    if len(args) == 2:  # {token:prefix:suffix}: nothing at all when it has no value
        return f"{args[0]}{value}{args[1]}" if value else ""
    return value


def _source_name(plan: Plan, node: OutputPlan, wanted: str | None, files: Mapping[str, tuple[str, ...]]) -> str:
    sources = [n for n in plan.upstream(node.name) if isinstance(n, SourcePlan)]
    if wanted is not None:
        sources = [n for n in sources if n.name == wanted]
    if len(sources) != 1:
        known = ", ".join(f"{{source_name:{n.name}}}" for n in plan.sources)
        raise IoError(
            [
                node.diagnostic(
                    "E407", "'{source_name}' does not say which source", "config", "path", help=f"write one of {known}"
                )
            ]
        )
    names = files.get(sources[0].name) or (sources[0].source_name,)
    return PurePosixPath(names[0]).name.split(".")[0]


def static_folder(base: Path, path: str) -> Path:
    """The folder that the files of an output always lie in or under, whatever the tokens of its path stand for."""
    fixed, brace, _ = path.removeprefix("file://").partition("{")
    return base / os.path.dirname(fixed) if brace else Path(os.path.realpath(base / fixed)).parent


def letter_paths(plan: Plan) -> list[str]:
    """The paths of dead letters as they are written, each once."""
    dlq = plan.file.error_handling.dlq
    given = [dlq.path, *(own.path for own in dlq.per_source.values())]
    return list(dict.fromkeys(path for path in given if path is not None))


def output_folders(plan: Plan, base: Path) -> list[Path]:
    """The folders of all outputs and dead letters, as far as they are the same in every run."""
    paths = [*(node.config.path for node in plan.outputs), *letter_paths(plan)]
    return list(dict.fromkeys(static_folder(base, path) for path in paths))


def per_file_path(base: Path, template: str, source_file: str) -> Path:
    """The output of one input file."""
    name = PurePosixPath(source_file)
    text = template.replace("{source_file}", name.name.split(".")[0])
    return base / text.replace("{source_path}", str(name.with_suffix("")).lstrip("/"))


def split_name(path: Path, naming: str, number: int) -> Path:
    """`out.csv` and `{stem}_{seq:04}.{ext}` -> `out_0001.csv`."""
    stem, _, ext = path.name.partition(".")

    def fill(match: re.Match[str]) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        if match[1] == "seq":
            return str(number).zfill(int(match[2] or 0))
        return {"stem": stem, "ext": ext}[match[1]]

    name = re.sub(r"\{\{|\}\}|\{(\w+)(?::(\d+))?\}", fill, naming)
    return path.with_name(name if ext else name.rstrip("."))


def free_path(node: OutputPlan, path: Path, force: bool, numbered: Callable[[int], Path] | None = None) -> Path:
    """The path to write, by `if_exists`. Raises `IoError` when it may not be written. `numbered` gives the path with a
    number in it; without it, the number stands before the ending."""
    config = node.config
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
        while found.exists():
            number += 1
            usual = path.with_name(f"{stem}-{str(number).zfill(config.unique_suffix_width)}{dot}{ext}")
            found = usual if numbered is None else numbered(number)
        return found
    if path.exists() and config.if_exists == "error" and not force:
        help_text = "remove it, run with --force, or write if_exists: overwrite"
        raise IoError(
            [node.diagnostic("E406", f"'{config.path}' is there already", "config", "if_exists", help=help_text)]
        )
    return path
