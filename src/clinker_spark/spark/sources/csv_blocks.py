"""Delimited text as Arrow batches: parsed to text, ragged rows put back in their places, then typed.

Arrow's parser reads a stream in blocks and hands rows with the wrong number of cells to us, with their numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from clinker_spark.spark.sources import meter
from clinker_spark.spark.sources.csv_header import CsvFile
from clinker_spark.spark.sources.csv_plan import CsvPlan, CsvSplit
from clinker_spark.spark.sources.text_streams import TextStream, utf8_with_marks

BLOCK = 2 << 20
_LARGEST_BLOCK = 1 << 30


@dataclass(frozen=True)
class RaggedRow:
    """A row with too few or too many cells."""

    number: int
    cells: int
    text: str


@dataclass(frozen=True)
class Block:
    """Records in order. `columns` are texts by place in the file, null in the rows of `ragged` (row -> what it was)."""

    rows: int
    columns: dict[int, pa.Array]
    ragged: dict[int, RaggedRow] = field(default_factory=dict)
    marked: bool = False
    """Some cells may hold marks of bytes that could not be decoded."""


@dataclass
class _Input:
    """Bytes for the parser, or a stream, which learns only while it is read whether it needs marks."""

    source: bytes | TextStream
    bytes_marked: bool = False

    @property
    def marked(self) -> bool:
        return self.source.marked if isinstance(self.source, TextStream) else self.bytes_marked

    def opened(self) -> Any:
        return pa.BufferReader(self.source) if isinstance(self.source, bytes) else pa.PythonFile(self.source, mode="r")

    def close(self) -> None:
        if isinstance(self.source, TextStream):
            self.source.close()


def parsed_batches(plan: CsvPlan, split: CsvSplit, places: Sequence[int], block_size: int = BLOCK) -> Iterator[Block]:
    """The records of a split as text: the cells at `places`, or all cells where bytes could not be decoded.

    A record longer than a block stops the parser; it then starts again with larger blocks, and what was already
    given is passed over.
    """
    given = split.skip
    size = block_size
    left = split.take
    while True:
        source = _open(plan, split)
        try:
            for block in _parse(plan, plan.files[split.file], source, places, size):
                if given_before := min(given, block.rows):
                    block = _part(block, given_before, block.rows)
                    given -= given_before
                if left is not None and block.rows >= left:
                    yield _part(block, 0, left)
                    return
                if block.rows:
                    yield block
                    split = _after(split, block.rows)
                    left = None if left is None else left - block.rows
            return
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or size >= _LARGEST_BLOCK:
                raise
            given, size = split.skip, size * 8
        finally:
            source.close()


def _after(split: CsvSplit, rows: int) -> CsvSplit:
    """The split once so many more of its records were given: a new start passes them over."""
    return CsvSplit(split.file, split.start, split.end, split.skip + rows, split.first_row, split.take)


def _open(plan: CsvPlan, split: CsvSplit) -> _Input:
    file = plan.files[split.file]
    if split.end is None:
        return _Input(TextStream(file.path, file.compression, file.encoding, file.name))
    with open(file.path, "rb") as opened:
        opened.seek(split.start)
        data = opened.read(split.end - split.start)
    meter.add(len(data))
    decoded = utf8_with_marks(data, file.encoding)
    return _Input(decoded, decoded is not data)


def _parse(plan: CsvPlan, file: CsvFile, source: _Input, places: Sequence[int], size: int) -> Iterator[Block]:
    ragged: deque[RaggedRow] = deque()

    def keep(row: Any) -> str:
        ragged.append(RaggedRow(row.number, row.actual_columns, row.text))
        return "skip"

    names = [str(i) for i in range(file.width)]
    # Which cells are needed must be said before it is known whether a stream has marks: then all of them.
    every = source.marked or isinstance(source.source, TextStream)
    wanted = list(range(file.width)) if every else sorted(set(places)) or [0]
    try:
        reader = pacsv.open_csv(
            source.opened(),
            pacsv.ReadOptions(use_threads=False, block_size=size, column_names=names),
            pacsv.ParseOptions(
                delimiter=plan.dialect.delimiter,
                quote_char=plan.dialect.quote,
                newlines_in_values=True,
                invalid_row_handler=keep,
            ),
            pacsv.ConvertOptions(
                check_utf8=False,  # the bytes were checked before
                include_columns=[str(i) for i in wanted],
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                null_values=[],
            ),
        )
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return
        raise
    next_number = 1
    for batch in reader:
        block = _with_ragged(batch, wanted, ragged, next_number, source.marked)
        next_number += block.rows
        yield block
    if ragged:
        nothing = pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(wanted), [str(i) for i in wanted])
        yield _with_ragged(nothing, wanted, ragged, next_number, source.marked)


def _with_ragged(batch: pa.RecordBatch, wanted: list[int], ragged: deque[RaggedRow], first: int, marked: bool) -> Block:
    """The batch with the ragged rows among and right after its records; their cells are null."""
    columns = dict(zip(wanted, batch.columns, strict=True))
    found: dict[int, RaggedRow] = {}
    while ragged and ragged[0].number <= first + batch.num_rows + len(found):
        row = ragged.popleft()
        found[row.number - first] = row
    if not found:
        return Block(batch.num_rows, columns, marked=marked)
    rows = batch.num_rows + len(found)
    is_ragged = np.zeros(rows, dtype=bool)
    is_ragged[list(found)] = True
    order = pa.array(np.cumsum(~is_ragged) - 1, mask=is_ragged)
    return Block(rows, {place: column.take(order) for place, column in columns.items()}, found, marked)


def _part(block: Block, start: int, end: int) -> Block:
    columns = {place: column.slice(start, end - start) for place, column in block.columns.items()}
    ragged = {row - start: what for row, what in block.ragged.items() if start <= row < end}
    return Block(end - start, columns, ragged, block.marked)
