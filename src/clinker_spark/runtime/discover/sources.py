"""Which files a source reads, and in what order."""

from __future__ import annotations

import datetime as dt
import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.config.paths.patterns import glob_matches
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import nearest
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.discover.searches import search_of, walk
from clinker_spark.runtime.errors import IoError
from clinker_spark.spark.scan.files import SourceFile, Stamp, parquet_parts

if TYPE_CHECKING:
    from clinker_spark.spark.remote_files import RemoteFiles


@dataclass(frozen=True)
class Found:
    """The files of a source, in order, and what there is to say about them."""

    files: tuple[SourceFile, ...]
    warnings: tuple[Diagnostic, ...] = ()
    earlier: int = 0
    """How many there are besides, which earlier runs read."""


class NoFiles(IoError):
    """What a source should read is not there, or not yet."""


Left = Callable[[SourcePlan, list[SourceFile]], list[SourceFile]]
"""Which of the files of a source are left to read."""


def discover(
    node: SourcePlan, base: Path, now: dt.datetime, remote: RemoteFiles | None = None, left: Left | None = None
) -> Found:
    """The files that the source's path, glob, regex or paths means. Raises `IoError` when there is none. Without
    `remote`, nothing is known about files on remote storage but their addresses. `left` says which of them are new, for
    a source that reads only these."""
    config = node.config
    named = config.path is not None or config.paths is not None
    if named:
        names = [config.path] if config.path is not None else list(config.paths or ())
        there = [_named(node, base, name, i, remote) for i, name in enumerate(names)]
    else:
        is_far = config.glob is not None and is_remote(config.glob)
        found = _search_remote(node, remote) if is_far else _search(node, base)
        there = [f for f in sorted(found, key=lambda f: f.name) if _selected(config, f, now)]
    files = there if left is None or not node.only_new else left(node, there)
    earlier = len(there) - len(files)
    if not named:
        files = _ordered(config.files, files)
    if not files and not earlier:
        return _none_found(node, base)
    problems = [_no_text(node, file.name) for file in files if not _is_text(file.name)]
    if problems:
        raise IoError(problems)
    return Found(tuple(files), tuple(_found_twice(node, files)), earlier)


def _none_found(node: SourcePlan, base: Path) -> Found:
    config = node.config
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
    raise NoFiles([finding])


def is_remote(path: str) -> bool:
    """Does Spark, and not this process, open the path? (`s3a://bucket/x.csv`)"""
    return "://" in path and not path.startswith("file://")


def _named(node: SourcePlan, base: Path, name: str, i: int, remote: RemoteFiles | None) -> SourceFile:
    key: tuple[str | int, ...] = ("config", "path") if node.config.path is not None else ("config", "paths", i)
    if node.config.type == "dataset":
        return _dataset(node, base, name)
    if is_remote(name):
        return SourceFile(name, name) if remote is None else _far(node, name, key, remote)
    path = base / name.removeprefix("file://")
    try:
        info = path.stat()
        if stat.S_ISDIR(info.st_mode) and node.config.type != "parquet":
            raise IoError([_folder(node, name, key)])
        if not stat.S_ISDIR(info.st_mode) and not stat.S_ISREG(info.st_mode):
            raise IoError([_unusable(node, path, name, key)])
        return _local(node, path, name, info)
    except (OSError, ValueError) as error:  # ValueError: a NUL character
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        finding = node.diagnostic("E229", f"cannot read '{name}': {reason}", *key, help=_meant(path, base))
        raise (NoFiles if isinstance(error, FileNotFoundError) else IoError)([finding]) from None


def _far(node: SourcePlan, name: str, key: tuple[str | int, ...], remote: RemoteFiles) -> SourceFile:
    try:
        status = remote.status(name)
    except OSError as error:
        message, help_text = f"cannot read '{name}': {error}", "check the address and the settings of the storage"
        raise IoError([node.diagnostic("E229", message, *key, help=help_text)]) from None
    if status.is_folder and node.config.type != "parquet":
        raise IoError([_folder(node, name, key)])
    return SourceFile(name, name, status.size, status.modified)


def _dataset(node: SourcePlan, base: Path, name: str) -> SourceFile:
    """A dataset is its catalogue: whoever imports into it replaces that."""
    from clinker_spark.dataset.errors import DatasetError  # Arrow is slow to load, and few pipelines read datasets
    from clinker_spark.dataset.files.manifest import CATALOGUE, Dataset

    place = name if is_remote(name) else str(base / name.removeprefix("file://"))
    try:
        catalogue = Dataset.open(place).catalogue
        size = sum(segment.size for segment in catalogue.segments.values())
        if is_remote(name):
            return SourceFile(name, name, size)
        path = os.path.join(os.path.abspath(place), CATALOGUE)
        return SourceFile(path, name, size, stamps=(Stamp.of(path),))
    except DatasetError as error:
        [found] = error.diagnostics
        raise IoError([node.diagnostic(found.code, found.message, "config", "path", help=found.help)]) from None


def _is_text(name: str) -> bool:
    """Can the name be written down? The bytes of a file name need not be text."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _no_text(node: SourcePlan, name: str) -> Diagnostic:
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    message = f"cannot read '{shown}': its name is not UTF-8, and could not stand in a dead letter"
    return node.diagnostic("E229", message, "config", help="rename the file, or leave it out with 'exclude'")


def _found_twice(node: SourcePlan, files: list[SourceFile]) -> Iterator[Diagnostic]:
    """Files that are read more than once, by one name or by several."""
    seen: dict[tuple[int, int], str] = {}
    listed = node.config.paths is not None
    for i, file in enumerate(files):
        for stamp in file.stamps:
            first = seen.get(stamp.identity)
            seen.setdefault(stamp.identity, file.name)
            if first is None:
                continue
            same = "is read twice" if first == file.name else f"is the same file as '{first}', which is read too"
            key: tuple[str | int, ...] = ("paths", i) if listed else ("glob",) if node.config.glob else ("regex",)
            help_text = "remove one of the two" if listed else "leave one of the two out with 'exclude'"
            message = f"'{file.name}' {same}: its records come twice"
            yield node.diagnostic("W431", message, "config", *key, help=help_text)


def _folder(node: SourcePlan, name: str, key: tuple[str | int, ...]) -> Diagnostic:
    help_text = f"name the files: glob: {name.rstrip('/')}/*.{node.config.type}"
    return node.diagnostic("E229", f"'{name}' is a folder", *key, help=help_text)


def _meant(path: Path, base: Path) -> str:
    folder = path.parent
    if "\0" in str(path):
        return "remove the NUL character"
    if not folder.is_dir():
        return f"there is no folder '{folder}'"
    try:
        close = nearest(path.name, os.listdir(folder))
    except OSError:
        return f"check the permissions of '{folder}'"
    if close is not None:
        return f"did you mean '{os.path.relpath(folder / close, base)}'?"
    return f"paths start from the folder '{base}'"


def _search(node: SourcePlan, base: Path) -> Iterator[SourceFile]:
    """All files under the fixed beginning of the pattern that match it."""
    config = node.config
    key = "glob" if config.glob is not None else "regex"
    search = search_of(config, base)
    try:
        for entry in walk(search.start, search.levels):
            name = search.name(entry.path)
            if not search.takes(entry.path, name):
                continue
            if not entry.usable:
                raise IoError([_unusable(node, entry.path, name, ("config", key))])
            try:
                yield _local(node, entry.path, name, entry.path.stat())
            except FileNotFoundError:  # it was just removed, and nobody had chosen it
                continue
    except FileNotFoundError:
        return  # no such folder, so no file in it
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"cannot look for files in '{error.filename or search.start}': {reason}"
        help_text = "files in it would be missed: check its permissions, or exclude it by a narrower pattern"
        raise IoError([node.diagnostic("E229", message, "config", key, help=help_text)]) from None


def _local(node: SourcePlan, path: Path, name: str, info: os.stat_result) -> SourceFile:
    """A file of this machine as it is now. Raises OSError."""
    place = str(path.absolute())
    if stat.S_ISDIR(info.st_mode):
        stamps = tuple(Stamp.of(part) for part in parquet_parts(place))
    else:
        stamps = (Stamp.of(place, info),)
    return SourceFile(place, name, sum(stamp.size for stamp in stamps), stamps=stamps)


def _unusable(node: SourcePlan, path: Path, name: str, key: tuple[str | int, ...]) -> Diagnostic:
    """Why something that is neither a file nor a folder cannot be read."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        reason = "it is a link that leads nowhere" if error.errno == errno.ENOENT else str(error.strerror).lower()
        help_text = "mend the link, or leave it out with 'exclude'"
        return node.diagnostic("E229", f"cannot read '{name}': {reason}", *key, help=help_text)
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
    message = f"'{name}' is {kinds.get(stat.S_IFMT(mode), 'no file')}: it cannot be read more than once"
    return node.diagnostic("E435", message, *key, help="write what comes from it to a file, and read that")


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
        if not file.is_folder and not any(glob_matches(x, name) or glob_matches(x, short) for x in config.exclude):
            yield SourceFile(name, name, file.size, file.modified)


def _modified(file: SourceFile) -> float:
    return file.modified if is_remote(file.path) else file.stamps[0].modified_ns / 1e9


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
