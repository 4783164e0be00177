"""What a fetch makes of a chunk: for each component its values with their times, in order of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa

from clinker_spark.dataset.arrays import has_value, of_numbers
from clinker_spark.dataset.either import cast
from clinker_spark.dataset.files.chunk_bytes import Ids, Rows, decode, id_array
from clinker_spark.dataset.indexes import NOTHING
from clinker_spark.dataset.selection import ChunkNeed, Layout


class Moments:
    """When values were logged: times, row ids within one time, and the other indexes of the same rows where the chunk
    has them. Components of one entity mostly share one object, and what is computed for one of them is so for all."""

    __slots__ = ("_cut", "ids", "others", "times")

    def __init__(self, times: np.ndarray, ids: Ids, others: Mapping[str, np.ndarray]) -> None:
        self.times = times
        self.ids = ids
        self.others = others
        self._cut: tuple[int, int, Moments] | None = None

    def __len__(self) -> int:
        return len(self.times)

    def slice(self, start: int, stop: int) -> Moments:
        """From a place to another; the same object for all who ask the same."""
        if (start, stop) == (0, len(self)):
            return self
        if self._cut is None or self._cut[:2] != (start, stop):
            others = {name: numbers[start:stop] for name, numbers in self.others.items()}
            self._cut = start, stop, Moments(self.times[start:stop], self.ids[start:stop], others)
        return self._cut[2]

    def take(self, places: np.ndarray) -> Moments:
        others = {name: numbers[places] for name, numbers in self.others.items()}
        return Moments(self.times[places], id_array(self.ids)[places], others)

    def last(self) -> Moments:
        """A copy of the last one: what it was part of can go."""
        others = {name: numbers[-1:].copy() for name, numbers in self.others.items()}
        ids = self.ids[-1:]
        return Moments(self.times[-1:].copy(), ids if isinstance(ids, range) else ids.copy(), others)


@dataclass(frozen=True, slots=True)
class Piece:
    """Values of one component, in order of time and, within one time, of row id. None of them is null; without values
    it is only known that there are some."""

    moments: Moments
    values: pa.Array | None

    @property
    def times(self) -> np.ndarray:
        return self.moments.times

    def __len__(self) -> int:
        return len(self.moments)

    def slice(self, start: int, stop: int) -> Piece:
        values = None if self.values is None else self.values.slice(start, stop - start)
        return Piece(self.moments.slice(start, stop), values)


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


def load(content: bytes | memoryview, need: ChunkNeed, layout: Layout) -> Loaded:
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
    whole = Moments(times, rows.ids, others)
    size = times.nbytes + _bytes(rows.ids) + sum(numbers.nbytes for numbers in others.values())
    pieces: dict[int, Piece] = {}
    for name, column in wanted.items():
        values = rows.components.get(name)
        moments = whole
        if values is not None:
            size += values.nbytes
            if values.null_count:
                moments = whole.take(np.flatnonzero(has_value(values)))
                values = values.drop_null()
            values = cast(values, column.type) if column.shown else None
        pieces[layout.by_name[chunk.entity, name]] = Piece(moments, values)
    first = min(int(piece.times[0]) for piece in pieces.values())
    last = max(int(piece.times[-1]) for piece in pieces.values())
    return Loaded(need, pieces, size, first, last)


def _bytes(ids: Ids) -> int:
    return 0 if isinstance(ids, range) else ids.nbytes


def _static(rows: Rows, need: ChunkNeed, layout: Layout) -> Loaded:
    """Static values are in order of their ids; times are of no account."""
    rows = rows.sorted_by(None)
    ids = id_array(rows.ids)
    pieces, size = {}, ids.nbytes
    for name, values in rows.components.items():
        column = layout.by_name[rows.entity, name]
        logged = np.flatnonzero(has_value(values))
        values = cast(values.drop_null(), layout.columns[column].type)
        none = np.full(len(logged), NOTHING, dtype=np.int64)
        pieces[column] = Piece(Moments(none, ids[logged], {}), values)
        size += values.nbytes
    return Loaded(need, pieces, size)


# ----------------------------------------------------------------------- pieces as one


class Joins:
    """Makes one piece of several, with one entry for each time: the value with the last row id, or a list of all. What
    the order of their times says is found out once for all components that share it."""

    def __init__(self, *, all_values: bool) -> None:
        self.all_values = all_values
        self._known: dict[tuple[int, ...], tuple[list[Moments], Moments, np.ndarray | None]] = {}

    def joined(self, pieces: Sequence[Piece]) -> Piece:
        moments, places = self._moments([piece.moments for piece in pieces])
        arrays = [piece.values for piece in pieces if piece.values is not None]
        values = None if not arrays else arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        if values is not None and places is not None:
            values = values.take(of_numbers(places))
        found = Piece(moments, values)
        return _grouped(found) if self.all_values else found

    def _moments(self, several: list[Moments]) -> tuple[Moments, np.ndarray | None]:
        key = tuple(map(id, several))
        if key not in self._known:
            # The list keeps them alive: an id stands for one object only as long as there is that object.
            self._known[key] = (several, *_in_order(_concatenated(several), each=self.all_values))
        return self._known[key][1:]


def _in_order(moments: Moments, *, each: bool) -> tuple[Moments, np.ndarray | None]:
    """One entry for each time, or all of them; and the places of these, if they are not all in their order."""
    times = moments.times
    if (times[1:] > times[:-1]).all():
        return moments, None
    order = np.lexsort((id_array(moments.ids), times))
    if not each:
        times = times[order]
        order = order[np.append(times[1:] != times[:-1], True)]
    return moments.take(order), order


def _concatenated(several: list[Moments]) -> Moments:
    if len(several) == 1:
        return several[0]
    names = {name for moments in several for name in moments.others}
    ids: Ids
    runs = [moments.ids for moments in several if isinstance(moments.ids, range)]
    if len(runs) == len(several) and all(a.stop == b.start for a, b in pairwise(runs)):
        ids = range(runs[0].start, runs[-1].stop)
    else:
        ids = np.concatenate([id_array(moments.ids) for moments in several])
    return Moments(
        np.concatenate([moments.times for moments in several]),
        ids,
        {name: np.concatenate([_others(moments, name) for moments in several]) for name in names},
    )


def _others(moments: Moments, name: str) -> np.ndarray:
    found = moments.others.get(name)
    return np.full(len(moments), NOTHING, dtype=np.int64) if found is None else found


def after(newest: Piece, piece: Piece) -> Piece:
    """One value, and those after it, in the order they have."""
    values = None
    if piece.values is not None and newest.values is not None:
        values = pa.concat_arrays([newest.values, piece.values])
    return Piece(_concatenated([newest.moments, piece.moments]), values)


def _grouped(piece: Piece) -> Piece:
    """A list of values for each time. The other indexes are the greatest of each list; `ids` are the last ones, the
    lists of all ids stand with the values."""
    times, ids = piece.times, id_array(piece.moments.ids)
    first = np.flatnonzero(np.append(True, times[1:] != times[:-1]))
    offsets = pa.array(np.append(first, len(piece)), pa.int32())
    values = None
    if piece.values is not None:
        pairs = pa.StructArray.from_arrays([piece.values, pa.array(ids)], ["value", "id"])
        values = pa.ListArray.from_arrays(offsets, pairs)
    others = {name: np.maximum.reduceat(numbers, first) for name, numbers in piece.moments.others.items()}
    last = np.append(first[1:], len(piece)) - 1
    return Piece(Moments(times[first], ids[last], others), values)
