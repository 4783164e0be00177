"""What a fetch makes of a chunk: for each component its values with their times, in order of time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.dataset.chunk_bytes import Rows, decode
from clinker_spark.dataset.indexes import NOTHING
from clinker_spark.dataset.selection import ChunkNeed, Layout


@dataclass(frozen=True, slots=True)
class Piece:
    """Values of one component, in order of time and, within one time, of row id. `others` are the other indexes of the
    same rows, where the chunk has them. Pieces of one chunk share arrays."""

    times: np.ndarray
    ids: np.ndarray
    values: pa.Array | None
    others: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.times)

    def slice(self, start: int, stop: int) -> Piece:
        values = None if self.values is None else self.values.slice(start, stop - start)
        others = {name: numbers[start:stop] for name, numbers in self.others.items()}
        return Piece(self.times[start:stop], self.ids[start:stop], values, others)


@dataclass(frozen=True)
class Loaded:
    """A chunk in memory."""

    need: ChunkNeed
    pieces: dict[int, Piece] = field(default_factory=dict)
    """By column of the layout."""
    size: int = 0
    time_min: int = NOTHING
    """The least and the greatest time that it really has."""
    time_max: int = NOTHING


def load(content: bytes, need: ChunkNeed, layout: Layout) -> Loaded:
    """Decode what is needed of a chunk."""
    chunk = need.chunk
    wanted = {name: layout.columns[layout.by_name[chunk.entity, name]] for name in need.components}
    # That a component has a value in every row is known without reading it.
    rows_of = chunk.components
    read = [n for n, c in wanted.items() if c.shown or chunk.is_static or rows_of[n].count < chunk.rows]
    indexes = (*layout.others, *([layout.index] if layout.index in chunk.indexes else []))
    rows = decode(content, chunk, dict.fromkeys(read), tuple(str(name) for name in indexes))
    if chunk.is_static:
        return _static(rows, need, layout)
    assert layout.index is not None
    rows = rows.sorted_by(layout.index)
    times = rows.indexes[layout.index]
    others = {name: numbers for name, numbers in rows.indexes.items() if name != layout.index}
    whole = Piece(times, rows.ids, None, others)
    size = times.nbytes + rows.ids.nbytes + sum(numbers.nbytes for numbers in others.values())
    pieces: dict[int, Piece] = {}
    for name, column in wanted.items():
        values = rows.components.get(name)
        piece = whole
        if values is not None:
            size += values.nbytes
            if values.null_count:
                logged = pc.is_valid(values).to_numpy(zero_copy_only=False)
                piece = _picked(whole, np.flatnonzero(logged))
                values = values.drop_null()
            if column.shown:
                values = values if values.type == column.type else values.cast(column.type)
                piece = Piece(piece.times, piece.ids, values, piece.others)
        pieces[layout.by_name[chunk.entity, name]] = piece
    first = min(int(piece.times[0]) for piece in pieces.values())
    last = max(int(piece.times[-1]) for piece in pieces.values())
    return Loaded(need, pieces, size, first, last)


def _picked(piece: Piece, places: np.ndarray) -> Piece:
    others = {name: numbers[places] for name, numbers in piece.others.items()}
    return Piece(piece.times[places], piece.ids[places], None, others)


def _static(rows: Rows, need: ChunkNeed, layout: Layout) -> Loaded:
    """Static values are in order of their ids; times are of no account."""
    rows = rows.sorted_by(None)
    pieces, size = {}, rows.ids.nbytes
    for name, values in rows.components.items():
        column = layout.by_name[rows.entity, name]
        logged = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        kind = layout.columns[column].type
        values = values.drop_null()
        values = values if values.type == kind else values.cast(kind)
        none = np.full(len(logged), NOTHING, dtype=np.int64)
        pieces[column] = Piece(none, rows.ids[logged], values, {})
        size += values.nbytes
    return Loaded(need, pieces, size)


def joined(pieces: list[Piece], *, all_values: bool) -> Piece:
    """Pieces of one component as one, one entry for each time: the value with the last row id, or a list of all."""
    if len(pieces) == 1:
        found = pieces[0]
    else:
        names = {name for piece in pieces for name in piece.others}
        found = Piece(
            np.concatenate([piece.times for piece in pieces]),
            np.concatenate([piece.ids for piece in pieces]),
            None if pieces[0].values is None else pa.concat_arrays([p.values for p in pieces if p.values is not None]),
            {name: np.concatenate([others_of(piece, name) for piece in pieces]) for name in names},
        )
        later = found.times[1:] > found.times[:-1]
        if not later.all():
            order = np.lexsort((found.ids, found.times))
            values = None if found.values is None else found.values.take(pa.array(order))
            others = {name: numbers[order] for name, numbers in found.others.items()}
            found = Piece(found.times[order], found.ids[order], values, others)
    return _grouped(found) if all_values else _last_of_each(found)


def others_of(piece: Piece, name: str) -> np.ndarray:
    found = piece.others.get(name)
    return np.full(len(piece), NOTHING, dtype=np.int64) if found is None else found


def _last_of_each(piece: Piece) -> Piece:
    last = np.append(piece.times[1:] != piece.times[:-1], True)
    if last.all():
        return piece
    places = np.flatnonzero(last)
    picked = _picked(piece, places)
    values = None if piece.values is None else piece.values.take(pa.array(places))
    return Piece(picked.times, picked.ids, values, picked.others)


def _grouped(piece: Piece) -> Piece:
    """A list of values for each time. The other indexes are the greatest of each list; `ids` are the last ones, the
    lists of all ids stand with the values."""
    first = np.flatnonzero(np.append(True, piece.times[1:] != piece.times[:-1]))
    offsets = pa.array(np.append(first, len(piece)), pa.int32())
    values = None
    if piece.values is not None:
        pairs = pa.StructArray.from_arrays([piece.values, pa.array(piece.ids)], ["value", "id"])
        values = pa.ListArray.from_arrays(offsets, pairs)
    others = {name: np.maximum.reduceat(numbers, first) for name, numbers in piece.others.items()}
    last = np.append(first[1:], len(piece)) - 1
    return Piece(piece.times[first], piece.ids[last], values, others)
