"""The plan of a read for the formats that Python parses record by record: JSON, XML and fixed width.

It is made once on the driver, from the files as they are then, and sent to every task.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, BinaryIO

import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import InputError
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.spark.fragments.task import Members
from clinker_spark.spark.scan.csv.header import file_name, unreadable
from clinker_spark.spark.scan.request import ReadRequest
from clinker_spark.spark.scan.text.streams import compression_of, open_binary

PIECE = 1 << 20
"""Bytes of a file that become one batch: some thousand records."""
FRAGMENT_PIECE = 4 << 20
"""The same, where the worker that reads them goes on: so many records that its steps are worth it."""
BOM = b"\xef\xbb\xbf"
READ_ERRORS = (OSError, EOFError, zlib.error, pa.ArrowException)


@dataclass(frozen=True)
class RecordFile:
    """A file that can be opened. `size` is that of its bytes on the disk."""

    path: str
    name: str
    compression: str
    size: int

    @property
    def seekable(self) -> bool:
        return self.compression == "none"

    def open(self) -> BinaryIO:
        return open_binary(self.path, self.compression, self.name)


@dataclass(frozen=True)
class RecordSplit:
    """A part of a file for one task: bytes, or the whole file (`end` None)."""

    file: int
    start: int = 0
    end: int | None = None
    first_row: int = 1
    """The number of its first record in the file, when positions are wanted."""
    take: int | None = None
    """The most records to give."""

    def bytes_of(self, size: int) -> int:
        """How many bytes of a file of this size it reads."""
        return (size if self.end is None else self.end) - self.start


@dataclass(frozen=True)
class RecordPlan:
    """Everything the tasks share. `reader` parses the format; it must survive pickling."""

    files: tuple[RecordFile, ...]
    names: tuple[str, ...]
    """All declared columns."""
    fields: tuple[tuple[str, str], ...]
    """The wanted columns and their Spark types."""
    reader: Any
    splits: tuple[RecordSplit, ...] = ()
    widened: tuple[str, ...] = ()
    typed: bool = False
    """Do the undeclared columns keep their types (see `spark.columns.undeclared`)?"""
    positions: bool = False
    record: bool = False
    row_offsets: tuple[int, ...] = ()
    members: tuple[Members, ...] = ()
    """Texts of members of JSON objects to give besides, where they stand in the file so."""

    @classmethod
    def of(
        cls,
        request: ReadRequest,
        files: tuple[RecordFile, ...],
        reader: Any,
        *,
        widened: tuple[str, ...] = (),
        typed: bool = False,
    ) -> RecordPlan:
        """The plan for what is asked for; it has no splits yet."""
        return cls(
            files,
            tuple(column.name for column in request.columns),
            tuple((column.name, physical(column.data_type)) for column in request.selected),
            reader,
            widened=widened,
            typed=typed,
            positions=request.positions,
            record=request.record,
        )


def local_files(request: ReadRequest, kind: str) -> tuple[RecordFile, ...]:
    """The files, each tried once. All that is wrong with them is told together."""
    problems: list[Diagnostic] = []
    found: list[RecordFile] = []
    for file in request.files:
        if "://" in file.path:
            problems.append(remote(file.path, kind))
            continue
        compression = compression_of(file.origin, request.conventions.compression)
        try:
            with open_binary(file.path, compression, file.name) as opened:
                opened.read(1)
            found.append(RecordFile(file.path, file.name, compression, os.path.getsize(file.path)))
        except READ_ERRORS as error:
            problems.append(unreadable(file.name, reason_of(error)))
        except InputError as error:
            problems.extend(error.diagnostics)
    if problems:
        raise InputError(problems)
    return tuple(found)


def remote(path: str, kind: str) -> Diagnostic:
    message = f"'{path}' is not on a file system that {kind} files can be read from"
    return Diagnostic("E248", message, help="mount the storage and give the mounted path, or keep the data as parquet")


def reason_of(error: Exception) -> str:
    return os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)


def malformed(name: str, what: str, help_text: str | None = None) -> InputError:
    """The error of a file that cannot be read to its end. The code is part of the text: tasks can only send text."""
    message = f"'{name}' {what}"
    found = InputError([Diagnostic("E246", message, help=help_text or "correct the file, or the format of the source")])
    found.args = (f"E246: {message}",)
    return found


def reject_undeclared(request: ReadRequest, name: str, undeclared: Sequence[str]) -> list[Diagnostic]:
    """Why `on_unmapped: reject` does not take a file with these fields."""
    declared = {file_name(column) for column in request.columns}
    found = []
    for extra in undeclared:
        help_text = did_you_mean(extra, declared) or "declare it, or set on_unmapped.mode to drop or auto_widen"
        message = f"'{name}' has the field '{extra}', which the schema does not declare"
        found.append(Diagnostic("E228", message, help=help_text))
    return found


# ---------------------------------------------------------------- splits


def with_splits(
    plan: RecordPlan, splits: Sequence[RecordSplit], limit: int | None, count: Callable[[RecordSplit], int]
) -> RecordPlan:
    """The plan with its splits: only those of the first `limit` records, and numbered if positions are wanted."""
    kept = list(splits)
    if limit is not None:
        kept, left = [], limit
        for i, split in enumerate(splits):
            if left <= 0:
                break
            kept.append(replace(split, take=left))
            if i + 1 < len(splits):
                left -= count(split)
    if not plan.positions:
        return replace(plan, splits=tuple(kept))
    # Nothing is numbered after the last split, so it is not counted.
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        counts = list(pool.map(count, kept[:-1]))
    totals = [0] * len(plan.files)
    numbered = []
    for split, records in zip(kept, [*counts, 0], strict=False):
        numbered.append(replace(split, first_row=totals[split.file] + 1))
        totals[split.file] += records
    offsets = [sum(totals[:i]) for i in range(len(totals))]
    return replace(plan, splits=tuple(numbered), row_offsets=tuple(offsets))


def line_splits(
    number: int, file: RecordFile, separator: bytes, *, bom: bool = True, **sizes: int
) -> Sequence[RecordSplit]:
    """A file with one record on each line, cut at its lines; as a whole where nobody can start in its middle."""
    if not file.seekable:
        return [RecordSplit(number)]
    return [RecordSplit(number, *found) for found in line_ranges(file.path, start_of(file, bom), separator, **sizes)]


def start_of(file: RecordFile, bom: bool) -> int:
    """Where the first record begins, in a file that can begin with a mark of its order of bytes."""
    return len(BOM) if bom and starts_with_bom(file) else 0


def line_ranges(
    path: str, start: int, separator: bytes, *, parallelism: int, target: int, smallest: int
) -> list[tuple[int, int]]:
    """Ranges (from, to) of about `target` bytes that end after a separator; `start` is where records begin."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if size <= start:
            return []
        pieces = _pieces(size - start, parallelism, target, smallest)
        if pieces <= 1:
            return [(start, size)]
        edges = {start, size}
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for i in range(1, pieces):
                # The separator may begin one byte early: a cut between its bytes would make two lines of one.
                found = data.find(separator, max(start + (size - start) * i // pieces - len(separator) + 1, start))
                if found >= 0:
                    edges.add(found + len(separator))
    return list(pairwise(sorted(edges)))


def stride_ranges(
    start: int, size: int, stride: int, *, parallelism: int, target: int, smallest: int
) -> list[tuple[int, int]]:
    """Ranges of whole records that follow each other without separators."""
    if size <= start:
        return []
    pieces = _pieces(size - start, parallelism, target, smallest)
    records = -(-(size - start) // stride)
    edges = {start + records * i // pieces * stride for i in range(pieces)}
    return list(pairwise(sorted({*edges, size})))


def _pieces(size: int, parallelism: int, target: int, smallest: int) -> int:
    return min(max(parallelism, -(-size // target)), max(size // max(smallest, 1), 1))


def line_pieces(file: RecordFile, split: RecordSplit, separator: bytes, piece: int = PIECE) -> Iterator[bytes]:
    """The bytes of a split in pieces that end after a separator, but for the last one."""
    with file.open() as opened:
        if split.start:
            opened.seek(split.start)
        left = None if split.end is None else split.end - split.start
        held: list[bytes] = []
        while data := opened.read(piece if left is None else min(piece, left)):
            if left is not None:
                left -= len(data)
            joined = b"".join([held.pop(), data]) if held and len(separator) > 1 else data
            cut = joined.rfind(separator)
            if cut < 0:
                held.append(joined)
                continue
            cut += len(separator)
            yield b"".join([*held, joined[:cut]])
            held = [joined[cut:]] if cut < len(joined) else []
        if held:
            yield b"".join(held)


def starts_with_bom(file: RecordFile) -> bool:
    with file.open() as opened:
        return opened.read(3) == BOM
