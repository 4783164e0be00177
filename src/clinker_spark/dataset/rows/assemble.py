"""Rows of the result, made by array operations: where values begin is known for each column, and they are repeated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.dataset import indexes
from clinker_spark.dataset.arrays import of_numbers, repeated
from clinker_spark.dataset.constants import ASSEMBLE_ROWS, FLUSH_BATCH_BYTES
from clinker_spark.dataset.files.chunk_bytes import id_array
from clinker_spark.dataset.indexes import NOTHING
from clinker_spark.dataset.rows.pieces import Piece
from clinker_spark.dataset.rows.spread import Spread, Starts, fixed_width, merged, sampled, sizes
from clinker_spark.dataset.selection import ORIGIN, ROW, SEGMENT, Column, Layout


@dataclass(frozen=True)
class Filled:
    """The values of one column for some rows: the newest value before them, if there is one and values are filled in,
    and those that were logged since. `carried` is how many entries of the piece come from before (0 or 1)."""

    piece: Piece | None
    carried: int = 0
    static: bool = False


class Window:
    """Rows of one segment, from the values of all columns. Without given times, they are at all times at which
    something was logged."""

    def __init__(self, layout: Layout, segment: str, columns: list[Filled], times: np.ndarray | None = None) -> None:
        self.layout = layout
        self.segment = segment
        self.columns = columns
        self._starts: dict[int, Starts] = {}
        """By what columns share, their moments."""
        moving = {id(c.piece.moments): c for c in columns if c.piece is not None and not c.static and len(c.piece)}
        logged = {k: c.piece.times[c.carried :] for k, c in moving.items() if c.piece is not None}
        if times is not None:
            self.times = times
            for key, column in moving.items():
                assert column.piece is not None
                self._starts[key] = sampled(column.piece.times, times, column.carried, fill=layout.fill)
            return
        fresh = {key: found for key, found in logged.items() if len(found)}
        self.times, places = merged(list(fresh.values())) if fresh else (np.empty(0, dtype=np.int64), [])
        begins = dict(zip(fresh, places, strict=True))
        for key, column in moving.items():
            rows = begins.get(key, np.empty(0, dtype=np.int64))
            if rows is not None and column.carried:
                rows = np.append(0, rows)
            self._starts[key] = Starts(rows, carried=column.carried)

    def batches(self, most: int) -> Iterator[pa.RecordBatch]:
        """The rows, in batches of at most `most`."""
        step = max(ASSEMBLE_ROWS, most)
        varying = self._varying()
        for start in range(0, len(self.times), step):
            yield from self._batches(start, min(start + step, len(self.times)), most, varying)

    def _batches(
        self, start: int, stop: int, most: int, varying: list[tuple[Filled, np.ndarray | int]]
    ) -> Iterator[pa.RecordBatch]:
        # A large value that is filled in over many rows would be in memory many times over.
        if stop - start > 1 and self._bytes(start, stop, varying) > FLUSH_BATCH_BYTES:
            middle = (start + stop) // 2
            yield from self._batches(start, middle, most, varying)
            yield from self._batches(middle, stop, most, varying)
            return
        batch = self._batch(start, stop)
        for cut in range(0, batch.num_rows, most):
            yield batch.slice(cut, most)

    def _varying(self) -> list[tuple[Filled, np.ndarray | int]]:
        """Columns whose values are not all of one small size, and the sizes."""
        found = []
        for column, filled in zip(self.layout.columns, self.columns, strict=True):
            values = None if filled.piece is None else filled.piece.values
            if column.shown and values is not None and len(values) and fixed_width(values) is None:
                found.append((filled, sizes(values)))
        return found

    def _bytes(self, start: int, stop: int, varying: list[tuple[Filled, np.ndarray | int]]) -> int:
        found = 0
        for filled, each in varying:
            if isinstance(each, int):
                found += each * (stop - start)
                continue
            spread = self._spread(filled, start, stop)
            found += 0 if spread is None else int(spread.over(each).sum())
        return found

    def _spread(self, filled: Filled, start: int, stop: int) -> Spread | None:
        if filled.piece is None or not len(filled.piece):
            return None
        if filled.static:
            return Spread.constant(len(filled.piece) - 1, stop - start)
        return Spread(self._starts[id(filled.piece.moments)], start, stop, fill=self.layout.fill)

    def _batch(self, start: int, stop: int) -> pa.RecordBatch:
        layout, rows = self.layout, stop - start
        cells: dict[str, pa.Array] = {}
        if layout.segment_shown:
            cells[SEGMENT] = repeated(self.segment, rows)
        others = {name: np.full(rows, NOTHING, dtype=np.int64) for name in layout.others}
        known: dict[int, Spread] = {}
        for column, filled in zip(layout.columns, self.columns, strict=True):
            if not column.shown and not others:
                continue
            key = -1 if filled.piece is None else id(filled.piece.moments)
            spread = known.get(key) or self._spread(filled, start, stop)
            if spread is not None and key not in known and not filled.static:
                known[key] = spread
                _greatest(others, filled, spread)
            if column.shown:
                self._cells(column, filled, spread, rows, cells)
        for name, numbers in others.items():
            cells[name] = indexes.column(numbers, layout.index_types[name], numbers == NOTHING)
        if layout.index is not None and layout.index in layout.shown_indexes:
            cells[layout.index] = indexes.column(self.times[start:stop], layout.index_types[layout.index])
        return pa.record_batch([cells[name] for name in layout.schema.names], schema=layout.schema)

    def _cells(
        self, column: Column, filled: Filled, spread: Spread | None, rows: int, cells: dict[str, pa.Array]
    ) -> None:
        layout, piece = self.layout, filled.piece
        if spread is None or piece is None or piece.values is None:
            values, ids = pa.nulls(rows, layout.listed(column.type)), pa.nulls(rows, layout.listed(pa.int64()))
        else:
            values = spread.cells(piece.values)
            ids = spread.cells(of_numbers(id_array(piece.moments.ids))) if layout.row_ids else None
            if layout.all_values:
                values, ids = _lists(values)
        cells[column.name] = values
        if layout.row_ids:
            cells[column.name + ROW] = ids
        if layout.origin_time and layout.index is not None:
            kind = layout.index_types[layout.index]
            if spread is None or piece is None or filled.static:
                cells[column.name + ORIGIN] = pa.nulls(rows, indexes.ARROW[kind])
            else:
                cells[column.name + ORIGIN] = indexes.column(spread.over(piece.times), kind, spread.missing)


def _greatest(others: dict[str, np.ndarray], filled: Filled, spread: Spread) -> None:
    for name, numbers in others.items():
        if filled.piece is not None and name in filled.piece.moments.others:
            there = spread.over(filled.piece.moments.others[name])
            if spread.missing is not None:
                there = np.where(spread.missing, NOTHING, there)
            np.maximum(numbers, there, out=numbers)


def _lists(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Lists of pairs of value and id as a list of values and a list of ids."""
    flat = values.flatten()
    counts = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    gone = np.append(values.is_null().to_numpy(zero_copy_only=False), False) if values.null_count else None
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32(), mask=gone)
    return (
        pa.ListArray.from_arrays(offsets, flat.field("value")),
        pa.ListArray.from_arrays(offsets, flat.field("id")),
    )
