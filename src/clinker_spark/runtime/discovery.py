"""Which files a source reads, and in what order."""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.suggest import nearest
from clinker_spark.plan.nodes import SourcePlan
from clinker_spark.runtime.errors import IoError
from clinker_spark.spark.remote_files import RemoteFiles
from clinker_spark.spark.sources.request import SourceFile


@dataclass(frozen=True)
class Found:
    """The files of a source, in order, and what there is to say about them."""

    files: tuple[SourceFile, ...]
    warnings: tuple[Diagnostic, ...] = ()


def discover(node: SourcePlan, base: Path, now: dt.datetime, remote: RemoteFiles | None = None) -> Found:
    """The files that the source's path, glob, regex or paths means. Raises `IoError` when there is none. Without
    `remote`, nothing is known about files on remote storage but their addresses."""
    config = node.config
    if config.path is not None or config.paths is not None:
        names = [config.path] if config.path is not None else list(config.paths)
        files = [_named(node, base, name, i, remote) for i, name in enumerate(names)]
    else:
        is_far = config.glob is not None and is_remote(config.glob)
        found = _search_remote(node, remote) if is_far else _search(config, base)
        files = sorted(found, key=lambda f: f.name)
        files = [f for f in files if _selected(config, f, now)]
        files = _ordered(config.files, files)
    if files:
        return Found(tuple(files))
    pattern = config.glob or config.regex or config.path or ", ".join(config.paths or ())
    key = "glob" if config.glob else "regex" if config.regex else "path"
    mode = config.files.on_no_match
    if mode == "skip":
        return Found(())
    help_text = f"the pattern starts from the folder '{base}'; write on_no_match: skip if no file is fine"
    code = "E216" if mode == "error" else "W216"
    finding = node.diagnostic(code, f"no file matches '{pattern}'", "config", key, help=help_text)
    if mode == "warn":
        return Found((), (finding,))
    raise IoError([finding])


def is_remote(path: str) -> bool:
    """Does Spark, and not this process, open the path? (`s3a://bucket/x.csv`)"""
    return "://" in path and not path.startswith("file://")


def _named(node: SourcePlan, base: Path, name: str, i: int, remote: RemoteFiles | None) -> SourceFile:
    key: tuple[str | int, ...] = ("config", "path") if node.config.path is not None else ("config", "paths", i)
    if is_remote(name) and remote is None:
        return SourceFile(name, name)
    if is_remote(name):
        assert remote is not None
        try:
            status = remote.status(name)
        except OSError as error:
            message, help_text = f"cannot read '{name}': {error}", "check the address and the settings of the storage"
            raise IoError([node.diagnostic("E229", message, *key, help=help_text)]) from None
        if status.is_folder and node.config.type != "parquet":
            raise IoError([_folder(node, name, key)])
        return SourceFile(name, name, status.size, status.modified)
    path = base / name.removeprefix("file://")
    try:
        info = path.stat()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise IoError(
            [node.diagnostic("E229", f"cannot read '{name}': {reason}", *key, help=_meant(path, base))]
        ) from None
    if path.is_dir() and node.config.type != "parquet":
        raise IoError([_folder(node, name, key)])
    return SourceFile(str(path.absolute()), name, info.st_size)


def _folder(node: SourcePlan, name: str, key: tuple[str | int, ...]) -> Diagnostic:
    help_text = f"name the files: glob: {name.rstrip('/')}/*.{node.config.type}"
    return node.diagnostic("E229", f"'{name}' is a folder", *key, help=help_text)


def _meant(path: Path, base: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder '{folder}'"
    close = nearest(path.name, os.listdir(folder))
    if close is not None:
        return f"did you mean '{os.path.relpath(folder / close, base)}'?"
    return f"paths start from the folder '{base}'"


def _search(config: Any, base: Path) -> Iterator[SourceFile]:
    """All files under the fixed beginning of the pattern that match it."""
    pattern = config.glob if config.glob is not None else config.regex
    matches: Callable[[str], object]
    if config.glob is not None:
        root, rest = _fixed_beginning(pattern)
        matches = _glob(pattern)
        recursive = config.files.recursive
        deep = "**" in pattern if recursive is None else recursive
        levels = None if deep else rest.count("/")
        if deep and "**" not in pattern:  # `data/*.csv` with recursive: also data/2024/x.csv
            head, _, tail = pattern.rpartition("/")
            matches = _glob(f"{head}/**/{tail}" if head else f"**/{tail}")
    else:
        from clinker_spark.cxl.regexes import compile_regex

        root, levels = "", None if config.files.recursive is not False else 0
        matches = compile_regex(pattern).full_match
    start = base / root if root else base
    for path in _walk(start, levels):
        name = str(path) if os.path.isabs(root) else os.path.relpath(path, base).replace(os.sep, "/")
        if matches(name) and not any(_glob(x)(name) or _glob(x)(path.name) for x in config.exclude):
            yield SourceFile(str(path.absolute()), name, path.stat().st_size)


def _search_remote(node: SourcePlan, remote: RemoteFiles | None) -> Iterator[SourceFile]:
    """The files of a pattern such as `s3a://bucket/day-*.csv`. Hadoop has no `**`."""
    config = node.config
    if "**" in config.glob or config.files.recursive:
        message = "a pattern on a remote storage does not look into folders inside folders"
        raise IoError([node.diagnostic("E248", message, "config", "glob", help="write a * for each level")])
    try:
        found = [] if remote is None else remote.matching(config.glob)
    except OSError as error:
        help_text = "check the address and the settings of the storage"
        message = f"cannot read '{config.glob}': {error}"
        raise IoError([node.diagnostic("E229", message, "config", "glob", help=help_text)]) from None
    for file in found:
        name = file.uri
        short = name.rpartition("/")[2]
        if not file.is_folder and not any(_glob(x)(name) or _glob(x)(short) for x in config.exclude):
            yield SourceFile(name, name, file.size, file.modified)


def _modified(file: SourceFile) -> float:
    return file.modified if is_remote(file.path) else os.stat(file.path).st_mtime


def _walk(root: Path, levels: int | None) -> Iterator[Path]:
    """Files under a folder; hidden ones (our own attempts among them) are left out."""
    try:
        entries = sorted(os.scandir(root), key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith((".", "_")):
            continue
        if entry.is_dir():
            if levels is None or levels > 0:
                yield from _walk(Path(entry.path), None if levels is None else levels - 1)
        elif entry.is_file():
            yield Path(entry.path)


def _fixed_beginning(pattern: str) -> tuple[str, str]:
    """`data/2024/*.csv` -> ("data/2024", "*.csv")."""
    parts = pattern.split("/")
    fixed = []
    for part in parts[:-1]:
        if any(c in part for c in "*?[{"):
            break
        fixed.append(part)
    root = "/".join(fixed) or ("/" if pattern.startswith("/") else "")
    return root, "/".join(parts[len(fixed) :])


@cache
def _glob(pattern: str) -> Callable[[str], object]:
    """Does a name match? RE2 says it, which takes no longer for a pattern such as `*a*a*a*a*`."""
    import re2  # few pipelines need it

    try:
        return re2.compile(_glob_regex(pattern)).fullmatch
    except re2.error:  # such as [z-a]: it matches nothing
        return lambda name: None


def _glob_regex(pattern: str) -> str:
    """A glob as a regular expression: *, **, ?, [a-z], {a,b}."""
    out, i = "", 0
    while i < len(pattern):
        c = pattern[i]
        if pattern.startswith("**/", i):
            out, i = out + "(?:.*/)?", i + 3
            continue
        if pattern.startswith("**", i):
            out, i = out + ".*", i + 2
            continue
        if c == "*":
            out += "[^/]*"
        elif c == "?":
            out += "[^/]"
        elif c == "[":
            end = pattern.index("]", i + 2 + (pattern[i + 1 : i + 2] == "!"))
            inner = pattern[i + 1 : end].replace("\\", "\\\\")
            out += "[" + ("^" + inner[1:] if inner.startswith("!") else inner) + "]"
            i = end
        elif c in "{}":
            out += "(?:" if c == "{" else ")"
        elif c == "," and out.count("(?:") > out.count(")"):
            out += "|"
        else:
            out += re.escape(c)
        i += 1
    return out


def _selected(config: Any, file: SourceFile, now: dt.datetime) -> bool:
    changed = dt.datetime.fromtimestamp(_modified(file), dt.UTC).replace(tzinfo=None)
    if config.min_size is not None and file.size < config.min_size:
        return False
    if config.max_size is not None and file.size > config.max_size:
        return False
    if config.modified_after is not None and changed <= _moment(config.modified_after, now):
        return False
    return not (config.modified_before is not None and changed >= _moment(config.modified_before, now))


def _moment(given: dt.timedelta | dt.datetime, now: dt.datetime) -> dt.datetime:
    if isinstance(given, dt.timedelta):
        return now - given
    return given if given.tzinfo is None else given.astimezone(dt.UTC).replace(tzinfo=None)


def _ordered(spec: Any, files: list[SourceFile]) -> list[SourceFile]:
    if spec.sort_by == "modified":
        files = sorted(files, key=lambda f: (_modified(f), f.name))
    elif spec.sort_by == "created":
        files = sorted(files, key=lambda f: (f.modified or os.stat(f.path).st_ctime, f.name))
    if spec.sort_order == "desc":
        files = files[::-1]
    if spec.take_first is not None:
        files = files[: spec.take_first]
    elif spec.take_last is not None:
        files = files[-spec.take_last :]
    return files
