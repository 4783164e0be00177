"""Delimited text as Arrow batches: parsed to text, broken rows put back in their places, then typed.

Arrow's parser reads a piece in blocks and hands rows with the wrong number of cells to us, with their numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from clinker_spark.spark.scan.csv.pieces import Piece, pieces
from clinker_spark.spark.scan.csv.plan import CsvPlan, CsvSplit
from clinker_spark.spark.scan.record_plan import BOM
from clinker_spark.spark.scan.text.streams import MARK

BLOCK = 2 << 20
_LARGEST_BLOCK = 1 << 30


@dataclass(frozen=True)
class RaggedRow:
    """A row with too few or too many cells, or, with `unclosed`, with a quote in this line that nobody closed."""

    number: int
    cells: int
    text: str
    unclosed: int | None = None


@dataclass(frozen=True)
class Block:
    """Records in order. `columns` are texts by place in the file, null in the rows of `ragged` (row -> what it was)."""

    rows: int
    columns: dict[int, pa.Array]
    piece: Piece
    records: np.ndarray
    """Which records of the piece they are."""
    ragged: dict[int, RaggedRow] = field(default_factory=dict)
    marked: bool = False
    """Some cells may hold marks of bytes that could not be decoded."""

    def lines(self) -> pa.Array:
        """The bytes of the records, in the form of `source_lines`."""
        return self.piece.lines(self.records)


def parsed_batches(plan: CsvPlan, split: CsvSplit, places: Sequence[int], block_size: int = BLOCK) -> Iterator[Block]:
    """The records of a split as text: the cells at `places`, or all cells where bytes could not be decoded."""
    skip, left = split.skip, split.take
    for piece in pieces(plan, split):
        for block in _parsed(plan, plan.files[split.file].width, piece, places, block_size):
            if passed := min(skip, block.rows):
                block = _part(block, passed, block.rows)
                skip -= passed
            if left is not None and block.rows >= left:
                yield _part(block, 0, left)
                return
            if block.rows:
                yield block
                left = None if left is None else left - block.rows


def _parsed(plan: CsvPlan, width: int, piece: Piece, places: Sequence[int], size: int) -> Iterator[Block]:
    """The records of a piece. One that is longer than a block stops the parser; it then starts again with larger
    blocks, and what was already given is passed over."""
    text = piece.text(width)
    marked = text is not piece.raw and MARK.encode() in text
    given = 0
    while True:
        seen = 0
        try:
            for block in _parse(plan, width, piece, text, places, size, marked):
                start, seen = seen, seen + block.rows
                if seen > given:
                    yield block if start >= given else _part(block, given - start, block.rows)
                    given = seen
            return
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or size >= _LARGEST_BLOCK:
                raise
            size *= 8


def _parse(
    plan: CsvPlan, width: int, piece: Piece, text: bytes, places: Sequence[int], size: int, marked: bool
) -> Iterator[Block]:
    ragged: deque[RaggedRow] = deque()

    def keep(row: Any) -> str:
        unclosed = piece.stands_for(row.text) if piece.unclosed else None
        if unclosed is None:
            ragged.append(RaggedRow(row.number, row.actual_columns, row.text))
        else:
            ragged.append(RaggedRow(row.number, 0, piece.unclosed_text(unclosed), unclosed.line))
        return "skip"

    names = [str(i) for i in range(width)]
    wanted = list(range(width)) if marked else sorted(set(places)) or [0]
    try:
        reader = pacsv.open_csv(
            pa.BufferReader(BOM + text if text.startswith(BOM) else text),  # it would leave out the first one it sees
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
    first = 0
    for batch in reader:
        block = _with_ragged(batch, wanted, ragged, first, piece, marked)
        first += block.rows
        yield block
    if ragged:
        nothing = pa.RecordBatch.from_arrays([pa.array([], pa.string())] * len(wanted), [str(i) for i in wanted])
        yield _with_ragged(nothing, wanted, ragged, first, piece, marked)


def _with_ragged(
    batch: pa.RecordBatch, wanted: list[int], ragged: deque[RaggedRow], first: int, piece: Piece, marked: bool
) -> Block:
    """The batch with the ragged rows among and right after its records; their cells are null."""
    columns = dict(zip(wanted, batch.columns, strict=True))
    found: dict[int, RaggedRow] = {}
    while ragged and ragged[0].number <= first + 1 + batch.num_rows + len(found):
        row = ragged.popleft()
        found[row.number - first - 1] = row
    rows = batch.num_rows + len(found)
    records = np.arange(first, first + rows)
    if not found:
        return Block(rows, columns, piece, records, marked=marked)
    is_ragged = np.zeros(rows, dtype=bool)
    is_ragged[list(found)] = True
    order = pa.array(np.cumsum(~is_ragged) - 1, mask=is_ragged)
    return Block(rows, {place: column.take(order) for place, column in columns.items()}, piece, records, found, marked)


def _part(block: Block, start: int, end: int) -> Block:
    columns = {place: column.slice(start, end - start) for place, column in block.columns.items()}
    ragged = {row - start: what for row, what in block.ragged.items() if start <= row < end}
    return Block(end - start, columns, block.piece, block.records[start:end], ragged, block.marked)
