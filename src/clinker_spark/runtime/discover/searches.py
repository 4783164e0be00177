"""Which files a `glob` or `regex` means: one answer for those that are there, and for those that a run will write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clinker_spark.config.paths.patterns import glob_matches

_SPECIAL = set("*?[{")
_UP = re.compile(r"(?:\\?\.\\?\./)+")
_LITERAL = re.compile(r"/(?:[\w -]+/)*")
HIDDEN = (".", "_")
"""Names that begin so are never taken; our own attempts are among them."""


@dataclass(frozen=True)
class Search:
    """A walk through `start`, at most `levels` folders deep (None: to the end)."""

    base: Path
    start: Path
    levels: int | None
    absolute: bool
    """Was the pattern written from the root? Then names are, too."""
    matches: Callable[[str, str], bool]
    """By the path from `start`, and by the name."""
    exclude: tuple[str, ...]

    @cached_property
    def real_start(self) -> str:
        return os.path.realpath(self.start)

    def name(self, path: Path) -> str:
        """What $source.file says: the path as the pattern would spell it."""
        return str(path) if self.absolute else _inside(str(path), str(self.base))

    def takes(self, path: Path, name: str) -> bool:
        """Is a file below `start` meant?"""
        if not self.matches(_inside(str(path), str(self.start)), name):
            return False
        if not self.exclude:
            return True
        spellings = (name, path.name, os.path.abspath(path))
        return not any(glob_matches(pattern, text) for pattern in self.exclude for text in spellings)

    def would_find(self, real: str) -> bool:
        """Would a file with this path, which has no links in it, be found if it were there?"""
        inside = _inside(real, self.real_start)
        parts = inside.split(os.sep)
        if any(part.startswith(HIDDEN) for part in parts):  # `..`, too: it lies elsewhere
            return False
        if self.levels is not None and len(parts) - 1 > self.levels:
            return False
        there = self.start / inside
        return self.takes(there, self.name(there))


def _inside(path: str, folder: str) -> str:
    """The path as seen from a folder."""
    if path.startswith(f"{folder}/") and "/../" not in path:  # so for nearly all, and there may be very many
        return path[len(folder) + 1 :]
    return os.path.relpath(path, folder)


def search_of(config: Any, base: Path) -> Search:
    """The search that a source with `glob` or `regex` asks for."""
    exclude = tuple(map(tidy, config.exclude))
    if config.glob is not None:
        return _glob(config, base, exclude)
    return _regex(config, base, exclude)


def _glob(config: Any, base: Path, exclude: tuple[str, ...]) -> Search:
    pattern = config.glob.removeprefix("file://")
    absolute = pattern.startswith("/")
    parts = pattern.split("/")
    fixed = 0
    while fixed < len(parts) - 1 and not _SPECIAL & set(parts[fixed]):
        fixed += 1
    root = "/".join(parts[:fixed]) or ("/" if absolute else "")
    rest = tidy("/".join(parts[fixed:]))
    recursive = config.files.recursive
    deep = "**" in rest if recursive is None else recursive
    levels = None if deep else rest.count("/")
    if deep and "**" not in rest:  # `data/*.csv` with recursive: also data/2024/x.csv
        head, slash, tail = rest.rpartition("/")
        rest = f"{head}{slash}**/{tail}"
    # Only what comes after the fixed beginning is compared: however that is spelled, it leads to the folder.
    return Search(base, base / root, levels, absolute, lambda inside, _: glob_matches(rest, inside), exclude)


def _regex(config: Any, base: Path, exclude: tuple[str, ...]) -> Search:
    from clinker_spark.cxl.regex.patterns import compile_regex  # few pipelines select files this way

    pattern = config.regex
    compiled = compile_regex(pattern)
    absolute = pattern.startswith("/")
    up = _UP.match(pattern)
    start = base
    if absolute:
        found = _LITERAL.match(pattern)
        start = Path("/" if found is None else found[0])
    elif up is not None:
        start = base / up[0].replace("\\", "")

    def matches(_: str, name: str) -> bool:
        return bool(compiled.full_match(name)) or (not absolute and bool(compiled.full_match(f"./{name}")))

    return Search(base, start, None if config.files.recursive is not False else 0, absolute, matches, exclude)


def tidy(pattern: str) -> str:
    """Without what changes nothing: `./a//b/../c` is `a/c`."""
    kept: list[str] = []
    for part in pattern.removeprefix("file://").split("/"):
        if part in ("", "."):
            continue
        if part == ".." and kept and kept[-1] != ".." and not _SPECIAL & set(kept[-1]):
            kept.pop()
        else:
            kept.append(part)
    return ("/" if pattern.removeprefix("file://").startswith("/") else "") + "/".join(kept)


@dataclass(frozen=True)
class Entry:
    """Something in a folder that is no folder. `usable` is False for links that lead nowhere, pipes and devices."""

    path: Path
    usable: bool


def walk(root: Path, levels: int | None, above: tuple[tuple[int, int], ...] = ()) -> Iterator[Entry]:
    """What is under a folder, without hidden names. Raises OSError for a folder that cannot be listed.

    Links to folders are followed, but not in circles: a folder is not looked into once more from inside."""
    info = os.stat(root)
    if (info.st_dev, info.st_ino) in above:
        return
    chain = (*above, (info.st_dev, info.st_ino))
    with os.scandir(root) as listed:
        entries = sorted(listed, key=lambda e: e.name)
    for entry in entries:
        if entry.name.startswith(HIDDEN):
            continue
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:  # a link to itself
            is_folder = is_file = False
        if not is_folder:
            yield Entry(Path(entry.path), is_file)
        elif levels is None or levels > 0:
            yield from walk(Path(entry.path), None if levels is None else levels - 1, chain)
