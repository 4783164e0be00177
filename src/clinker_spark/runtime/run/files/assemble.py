"""Parts become files: in order, with what the format has before, between and after the records.

Whole parts are copied by the system. Only outputs that become several files are looked into, and then in blocks.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np

from clinker_spark.config.model.output import Split
from clinker_spark.spark.operators.output import KEY_SEPARATOR, RECORD_SEPARATOR
from clinker_spark.spark.render.rendering import Rendering

_PART = re.compile(r"part-(\d+)-.*?(?:-c(\d+))?\.(?:[a-z0-9.]+)$")
_BLOCK = 8 * 1024 * 1024
_NEWLINE = 10


@dataclass(frozen=True)
class Made:
    """A finished file and its size; `key` is the input file it was made of, where that decides."""

    path: Path
    size: int
    key: str | None = None
    records: int | None = None


def part_files(folder: Path) -> list[Path]:
    """The parts that Spark wrote, in the order of the records, folder by folder; empty ones are left out."""
    found = []
    for path in folder.rglob("part-*"):
        match = _PART.fullmatch(path.name)
        if match is not None and path.stat().st_size:
            found.append((str(path.parent), int(match[1]), int(match[2] or 0), path))
    return [path for *_, path in sorted(found)]


def one_file(
    parts: list[Path],
    rendering: Rendering,
    place: Path,
    record_bytes: int | None = None,
    before: Path | None = None,
) -> Made:
    """All parts as one file; after the content of `before`, if there is one."""
    with open(place, "wb") as out:
        if before is not None:
            _go_on(before, rendering, out, more=bool(parts))
        if not parts:
            out.write(b"" if before is not None else rendering.empty)
            return Made(place, out.tell())
        out.write(b"" if before is not None else rendering.prefix)
        out.flush()
        unwanted = len(rendering.separator) or 1
        for i, part in enumerate(parts):
            size = part.stat().st_size
            if not rendering.separator:
                _copy_without_separators(part, out, record_bytes)
            else:
                copy(part, out, size - (unwanted if i == len(parts) - 1 else 0))
        out.write(rendering.suffix)
    return Made(place, place.stat().st_size)


def _go_on(before: Path, rendering: Rendering, out: IO[bytes], *, more: bool) -> None:
    """What is there, up to where the next record comes."""
    size = before.stat().st_size
    if not more or is_lines(rendering):
        copy(before, out, size)
        if more and not ends_with(before, rendering.separator):  # somebody edited it
            out.write(rendering.separator)
    elif _is_empty(before, rendering):
        out.write(rendering.prefix)
    else:
        copy(before, out, size - len(rendering.suffix))
        out.write(rendering.separator)


def is_lines(rendering: Rendering) -> bool:
    """Is a file just its records, one after the other?"""
    return rendering.suffix == rendering.separator


def can_go_on(path: Path, rendering: Rendering) -> bool:
    """Does a file end where more records can be added: with what comes after the last one?"""
    return _is_empty(path, rendering) or ends_with(path, rendering.suffix)


def _is_empty(path: Path, rendering: Rendering) -> bool:
    return path.stat().st_size == len(rendering.empty) and begins_with(path, rendering.empty)


def cut_lines(parts: list[Path], lines: np.ndarray, records: int) -> bool:
    """Take lines (sorted, counted from 0 over all parts) out of the parts, in place.

    False, and nothing is done, when records are not lines: there are `records` of them."""
    with ThreadPoolExecutor() as pool:
        counts = list(pool.map(_line_count, parts))
        if sum(counts) != records:
            return False
        ends = np.cumsum([0, *counts])
        mine = [
            lines[np.searchsorted(lines, start) : np.searchsorted(lines, end)] - start for start, end in pairwise(ends)
        ]
        for _ in pool.map(_rewrite_without, parts, mine):
            pass
    return True


def _line_count(part: Path) -> int:
    with open(part, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))


def _rewrite_without(part: Path, lines: np.ndarray) -> None:
    """Write what stays beside the part, and put it in its place."""
    if not len(lines):
        return
    beside = part.with_name(f".{part.name}.cut")
    at = 0  # the line that a block begins in
    with open(part, "rb") as file, open(beside, "wb") as out:
        while block := file.read(_BLOCK):
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE) + 1
            starts = np.concatenate([[0], ends])
            mine = lines[np.searchsorted(lines, at) : np.searchsorted(lines, at + len(ends), "right")] - at
            kept = 0
            for line in mine.tolist():
                out.write(block[kept : starts[line]])
                kept = starts[line + 1] if line < len(ends) else len(block)
            out.write(block[kept:])
            at += len(ends)
    beside.replace(part)


def part_folder(parts: list[Path], rendering: Rendering, folder: Path, suffix: str, first: int = 0) -> list[Made]:
    """Each part as a complete file of its own, for readers that work in parallel. They are counted from `first`."""
    made = []
    for i, part in enumerate(parts or [None], first):
        made.append(one_file([part] if part else [], rendering, folder / f"part-{i:05}{suffix}"))
    return made


def begins_with(path: Path, start: bytes) -> bool:
    """Are these the first bytes of a file?"""
    with open(path, "rb") as file:
        return file.read(len(start)) == start


def ends_with(path: Path, end: bytes) -> bool:
    """Are these the last bytes of a file?"""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - len(end)))
        return file.read() == end


def copy(source: Path, out: IO[bytes], size: int) -> None:
    """Append the first `size` bytes of a file, inside the kernel where it can."""
    with open(source, "rb") as file:
        out.flush()
        start = 0
        while start < size:
            try:
                done = os.copy_file_range(file.fileno(), out.fileno(), min(size - start, 1 << 30))
            except OSError:
                done = 0
            if not done:
                file.seek(start)
                block = file.read(min(_BLOCK, size - start))
                if not block:
                    raise OSError(errno.EIO, "it became shorter while it was read", str(source))
                out.write(block)
                out.flush()
                done = len(block)
            start += done
        out.seek(0, os.SEEK_END)


def _copy_without_separators(part: Path, out: IO[bytes], record_bytes: int | None) -> None:
    """Records that follow each other without anything between them: Spark had to put a line end there."""
    assert record_bytes is not None
    step = record_bytes + 1
    with open(part, "rb") as file:
        while block := file.read(step * max(1, _BLOCK // step)):
            rows = [block[i : i + record_bytes] for i in range(0, len(block), step)]
            out.write(b"".join(rows))


# ---------------------------------------------------------------- several files


def records(parts: list[Path]) -> Iterator[list[bytes]]:
    """The records of the parts, block by block."""
    mark = RECORD_SEPARATOR.encode()
    for part in parts:
        left = b""
        with open(part, "rb") as file:
            while block := file.read(_BLOCK):
                *whole, left = (left + block).split(mark)
                if whole:
                    yield whole


@dataclass
class _Group:
    """The records with one key, as far as they were written."""

    key: str | None = None
    records: int = 0
    bytes: int = 0


class _OpenFile:
    """The file that records are written into now."""

    def __init__(self, path: Path, rendering: Rendering, prefix: bytes, key: str | None) -> None:
        self.path = path
        self.key = key
        """That of its first record."""
        self.records = 0
        self.size = len(prefix)
        self._rendering = rendering
        self._out = open(path, "wb")  # noqa: SIM115 - closed by `close`
        self._out.write(prefix)

    def append(self, lines: list[bytes]) -> None:
        if not lines:
            return
        separator = self._rendering.separator
        text = separator.join(lines)
        if self.records:
            text = separator + text
        self._out.write(text)
        self.records += len(lines)
        self.size += len(text)

    def close(self, key: str | None) -> Made:
        """With what comes after the records; without records it becomes what an empty output is."""
        if self.records:
            self._out.write(self._rendering.suffix)
        else:
            self._out.seek(0)
            self._out.truncate()
            self._out.write(self._rendering.empty)
        self._out.close()
        return Made(self.path, self.path.stat().st_size, key, self.records)


class SeveralFiles:
    """Writes records into one file after the other; `begin` names the next one."""

    def __init__(
        self, rendering: Rendering, split: Split | None, keyed: bool, begin: Callable[[int, str | None], Path]
    ) -> None:
        self.rendering = rendering
        self.split = split
        self.keyed = keyed
        self.begin = begin
        self.made: list[Made] = []
        self.oversize: list[str] = []
        self._file: _OpenFile | None = None
        self._group = _Group()

    def write(self, parts: list[Path]) -> list[Made]:
        for block in records(parts):
            if self.keyed or self.split is None:
                for record in block:
                    self._add_keyed(record)
            else:
                self._add_block(block)
        if self._file is None and not self.made:
            self._opened(None)
        self._close()
        return self.made

    def _add_block(self, block: list[bytes]) -> None:
        """Records without a key: as many as fit are written together."""
        assert self.split is not None
        at = 0
        while at < len(block):
            if self._full():
                self._close()
            file = self._file or self._opened(None)
            room = len(block) - at
            if self.split.max_records is not None:
                room = min(room, self.split.max_records - file.records)
            if self.split.max_bytes is not None:
                room = self._fitting(file.size, block, at, room)
            file.append(block[at : at + room])
            at += room

    def _fitting(self, size: int, block: list[bytes], at: int, room: int) -> int:
        """How many records until the size is reached; at least one."""
        assert self.split is not None and self.split.max_bytes is not None
        for i in range(room):
            size += len(block[at + i]) + len(self.rendering.separator)
            if size >= self.split.max_bytes:
                return i + 1
        return room

    def _add_keyed(self, record: bytes) -> None:
        key, _, line = record.partition(KEY_SEPARATOR.encode())
        text = key.decode()
        changed = text != self._group.key
        if changed:
            self._check_group()
            self._group = _Group()
        if changed and (self.split is None or self._full()):
            self._close()
        file = self._file or self._opened(text)
        self._group.key = text
        self._group.records += 1
        self._group.bytes += len(line)
        file.append([line])

    def _check_group(self) -> None:
        split = self.split
        if split is None or self._group.key is None:
            return
        too_many = split.max_records is not None and self._group.records > split.max_records
        too_large = split.max_bytes is not None and self._group.bytes > split.max_bytes
        if too_many or too_large:
            self.oversize.append(self._group.key)

    def _full(self) -> bool:
        if self._file is None or self.split is None:
            return False
        records = self.split.max_records is not None and self._file.records >= self.split.max_records
        return records or (self.split.max_bytes is not None and self._file.size >= self.split.max_bytes)

    def _opened(self, key: str | None) -> _OpenFile:
        """The next file."""
        begins = not self.made or (self.rendering.repeat_prefix and (self.split is None or self.split.repeat_header))
        prefix = self.rendering.prefix if begins else b""
        self._file = _OpenFile(self.begin(len(self.made) + 1, key), self.rendering, prefix, key)
        return self._file

    def _close(self) -> None:
        if self._file is None:
            return
        if self.keyed and self.split is not None:
            self._check_group()
        self.made.append(self._file.close(self._file.key if self.split is None else None))
        self._file = None
