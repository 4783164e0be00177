"""Rows of the result, made by array operations: for each column the positions of the values, then one take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.dataset import indexes
from clinker_spark.dataset.constants import ASSEMBLE_ROWS, FLUSH_BATCH_BYTES
from clinker_spark.dataset.indexes import NOTHING
from clinker_spark.dataset.pieces import Piece
from clinker_spark.dataset.selection import ORIGIN, ROW, SEGMENT, Column, Layout


@dataclass(frozen=True)
class Filled:
    """The values of one column for some rows: the newest value before them, if there is one and values are filled in,
    and those that were logged since. `carried` is how many entries of the piece come from before (0 or 1)."""

    piece: Piece | None
    carried: int = 0
    static: bool = False


def union_of_times(columns: list[Filled], low: int) -> np.ndarray:
    """The times from `low` on at which a value was logged, ascending."""
    arrays: dict[int, np.ndarray] = {}
    for column in columns:
        if column.piece is not None and not column.static and len(column.piece) > column.carried:
            times = column.piece.times
            arrays.setdefault(times.__array_interface__["data"][0], times[column.carried :])
    found = [times for times in arrays.values() if len(times)]
    if not found:
        return np.empty(0, dtype=np.int64)
    if len(found) == 1:
        times = found[0]
    else:
        times = np.concatenate(found)
        times.sort(kind="stable")  # a merge of the runs that it consists of: far quicker than a sort from scratch
        times = times[np.append(True, times[1:] != times[:-1])]
    return times[np.searchsorted(times, low) :]


def assemble(
    layout: Layout, segment: str, times: np.ndarray, columns: list[Filled], most: int
) -> Iterator[pa.RecordBatch]:
    """The rows at these times, in batches of at most `most` rows."""
    for start in range(0, len(times), max(ASSEMBLE_ROWS, most)):
        yield from _cut(_batch(layout, segment, times[start : start + max(ASSEMBLE_ROWS, most)], columns), most)


def _cut(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    rows = batch.num_rows
    if batch.nbytes > FLUSH_BATCH_BYTES:
        most = min(most, max(1, rows * FLUSH_BATCH_BYTES // batch.nbytes))
    for start in range(0, rows, most):
        yield batch.slice(start, most)


def _batch(layout: Layout, segment: str, times: np.ndarray, columns: list[Filled]) -> pa.RecordBatch:
    rows = len(times)
    found: dict[str, pa.Array] = {SEGMENT: pa.repeat(pa.scalar(segment), rows)} if layout.segment_shown else {}
    others = {name: np.full(rows, NOTHING, dtype=np.int64) for name in layout.others}
    cells: dict[str, pa.Array] = {}
    known: dict[tuple[int, int, int], np.ndarray] = {}
    for column, filled in zip(layout.columns, columns, strict=True):
        if column.shown or others:
            _column(layout, column, filled, times, cells, others, known)
    for name, numbers in others.items():
        found[name] = indexes.column(numbers, layout.index_types[name], numbers == NOTHING)
    if layout.index is not None and layout.index in layout.shown_indexes:
        found[layout.index] = indexes.column(times, layout.index_types[layout.index])
    found |= cells
    return pa.record_batch([found[name] for name in layout.schema.names], schema=layout.schema)


def _column(
    layout: Layout,
    column: Column,
    filled: Filled,
    times: np.ndarray,
    cells: dict[str, pa.Array],
    others: dict[str, np.ndarray],
    known: dict[tuple[int, int, int], np.ndarray],
) -> None:
    piece, rows = filled.piece, len(times)
    if piece is None or not len(piece):
        places, missing = np.zeros(rows, dtype=np.int64), np.ones(rows, dtype=bool)
    elif filled.static:
        places, missing = np.full(rows, len(piece) - 1, dtype=np.int64), None
    else:
        # Components of one entity have mostly the same times: what was found for one is so for all.
        key = (piece.times.__array_interface__["data"][0], len(piece), filled.carried)
        if key not in known:
            known[key] = _places(piece.times, times, filled.carried, fill=layout.fill)
        places = known[key]
        missing = places < 0 if len(places) and (places[0] < 0 or not layout.fill) else None
        for name, numbers in others.items():
            if name in piece.others:
                there = piece.others[name][np.maximum(places, 0)]
                np.maximum(numbers, there if missing is None else np.where(missing, NOTHING, there), out=numbers)
    if not column.shown:
        return
    picked = pa.array(places, mask=missing)
    if piece is None or piece.values is None or not len(piece):
        values, ids = pa.nulls(rows, layout.listed(column.type)), pa.nulls(rows, layout.listed(pa.int64()))
    else:
        values = piece.values.take(picked)
        ids = pa.array(piece.ids).take(picked) if layout.row_ids else None
        if layout.all_values:
            values, ids = _lists(values)
    cells[column.name] = values
    if layout.row_ids:
        cells[column.name + ROW] = ids
    if layout.origin_time and layout.index is not None:
        kind = layout.index_types[layout.index]
        if piece is None or filled.static or not len(piece):
            cells[column.name + ORIGIN] = pa.nulls(rows, indexes.ARROW[kind])
        else:
            cells[column.name + ORIGIN] = indexes.column(piece.times[np.maximum(places, 0)], kind, missing)


def _places(logged: np.ndarray, times: np.ndarray, carried: int, *, fill: bool) -> np.ndarray:
    """For each row the place of its value; -1 where there is none."""
    if not len(times):
        return np.empty(0, dtype=np.int64)
    start = max(int(np.searchsorted(logged, times[0], "right")) - 1, 0) if fill else np.searchsorted(logged, times[0])
    stop = int(np.searchsorted(logged, times[-1], "right"))
    near = logged[start:stop]
    if not len(near):
        return np.full(len(times), -1, dtype=np.int64)
    at = np.searchsorted(times, near, "left")  # fewer searches than one for each row
    if not fill:
        found = np.full(len(times), -1, dtype=np.int64)
        inside = at < len(times)
        at, near_places = at[inside], np.arange(start, stop)[inside]
        exact = times[at] == near[inside]
        found[at[exact]] = near_places[exact]
        return found
    # A value counts from the first row at or after its time. Several may begin at one row: the last of them counts.
    steps = np.bincount(at, minlength=len(times))[: len(times)]
    return np.cumsum(steps) + (int(start) - 1)


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
