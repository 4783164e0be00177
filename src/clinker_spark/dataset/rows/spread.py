"""Where the values of a column stand among the rows of a window, and how they are laid out over them.

Values are in order of time, and rows are, too: a value begins at one row and, when values are filled in, counts up to
the row at which the next one begins. So nothing is looked up row by row: each value is repeated as often as needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from clinker_spark.dataset.arrays import of_numbers


@dataclass(frozen=True)
class Starts:
    """For each value the row at which it begins, ascending. `rows` is None where value n (after the one that was
    carried in) begins at row n. `places` are the values that are meant, if not all."""

    rows: np.ndarray | None
    places: np.ndarray | None = None
    carried: int = 0


def merged(logged: list[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray | None]]:
    """All times of several ascending arrays, once each; and for each array the places of its times among them (None:
    they are all there is)."""
    if len(logged) == 1:
        return logged[0], [None]
    times = np.concatenate(logged)
    order = times.argsort(kind="stable")  # merges the runs that it consists of: far quicker than a sort from scratch
    times = times[order]
    new = np.empty(len(times), dtype=bool)
    new[:1] = True
    np.not_equal(times[1:], times[:-1], out=new[1:])
    places = np.empty(len(times), dtype=np.int64)
    if new.all():
        places[order] = np.arange(len(times))
    else:
        places[order] = np.cumsum(new) - 1
        times = times[new]
    return times, list(np.split(places, np.cumsum([len(one) for one in logged])[:-1]))


def sampled(logged: np.ndarray, times: np.ndarray, carried: int, *, fill: bool) -> Starts:
    """Where values begin among rows at given times."""
    rows = np.searchsorted(times, logged)
    if fill:
        return Starts(rows, carried=carried)
    places = np.flatnonzero(rows < len(times))
    places = places[times[rows[places]] == logged[places]]
    return Starts(rows[places], places)


class Spread:
    """The values of a column over the rows from `start` to `stop`."""

    def __init__(self, starts: Starts, start: int, stop: int, *, fill: bool) -> None:
        self.rows = stop - start
        self.missing: np.ndarray | None = None
        """The rows without a value, if there are any."""
        self._counts: np.ndarray | None = None
        self._at: np.ndarray | None = None
        self._lead = 0
        self._picked: slice | np.ndarray
        if starts.rows is None:
            first = starts.carried + start
            self._picked = slice(first, first + self.rows)
        elif fill:
            self._fill(starts.rows, start, stop)
        else:
            low, high = np.searchsorted(starts.rows, [start, stop])
            self._at = starts.rows[low:high] - start
            self._picked = slice(low, high) if starts.places is None else starts.places[low:high]
            if high - low < self.rows:
                self.missing = np.ones(self.rows, dtype=bool)
                self.missing[self._at] = False

    def _fill(self, rows: np.ndarray, start: int, stop: int) -> None:
        first = int(np.searchsorted(rows, start, "right")) - 1
        last = int(np.searchsorted(rows, stop))
        if first < 0:
            first = 0
            self._lead = (int(rows[0]) if last else stop) - start
            self.missing = np.zeros(self.rows, dtype=bool)
            self.missing[: self._lead] = True
        bounds = np.append(rows[first:last], stop)
        bounds[0] = max(bounds[0], start)
        self._counts = np.diff(bounds)
        self._picked = slice(first, last)

    @classmethod
    def constant(cls, place: int, rows: int) -> Spread:
        """One value on all rows."""
        found = cls(Starts(None), 0, 0, fill=True)
        found.rows, found._counts, found._picked = rows, np.array([rows]), slice(place, place + 1)
        return found

    def over(self, numbers: np.ndarray) -> np.ndarray:
        """One number for each row, from one for each value; anything where values are missing."""
        picked = numbers[self._picked]
        if self._at is not None:
            if self.missing is None:
                return picked
            found = np.zeros(self.rows, dtype=numbers.dtype)
            found[self._at] = picked
            return found
        if self._counts is None:
            return picked
        found = np.repeat(picked, self._counts)
        return np.concatenate([np.zeros(self._lead, dtype=numbers.dtype), found]) if self._lead else found

    def cells(self, values: pa.Array) -> pa.Array:
        """A cell for each row."""
        if self._counts is None and self.missing is None and isinstance(self._picked, slice):
            return values.slice(self._picked.start, self.rows)
        numbers = fixed_width(values)
        if numbers is None:
            return values.take(of_numbers(self.over(np.arange(len(values))), self.missing))
        found = pa.py_buffer(self.over(numbers))
        if self.missing is None:
            return pa.Array.from_buffers(values.type, self.rows, [None, found], 0)
        valid = pa.py_buffer(np.packbits(~self.missing, bitorder="little"))
        return pa.Array.from_buffers(values.type, self.rows, [valid, found], int(self.missing.sum()))


def fixed_width(values: pa.Array) -> np.ndarray | None:
    """The bytes of values that all have the same small size, as numbers; nobody looks at what these mean."""
    kind = values.type
    if not pa.types.is_primitive(kind) or kind.bit_width < 8 or values.null_count:
        return None
    return np.frombuffer(values.buffers()[1], dtype=f"u{kind.bit_width // 8}")[values.offset :][: len(values)]


def sizes(values: pa.Array) -> np.ndarray | int:
    """The bytes of each value; one number, if all have the same."""
    kind = values.type
    if pa.types.is_list(kind):
        offsets = values.offsets.to_numpy(zero_copy_only=False)
        inner = sizes(values.values)
        ends = (
            np.append(0, np.cumsum(inner))
            if isinstance(inner, np.ndarray)
            else np.arange(len(values.values) + 1) * inner
        )
        return np.asarray(ends[offsets[1:]] - ends[offsets[:-1]]) + 4
    if pa.types.is_struct(kind):
        return sum((sizes(values.field(i)) for i in range(kind.num_fields)), start=0)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return np.diff(_offsets(values)) + 4
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return max(1, values.nbytes // max(len(values), 1))


def _offsets(values: pa.Array) -> np.ndarray:
    found = np.frombuffer(values.buffers()[1], dtype=np.int32) if values.buffers()[1] is not None else np.zeros(1, int)
    return found[values.offset :][: len(values) + 1].astype(np.int64)
