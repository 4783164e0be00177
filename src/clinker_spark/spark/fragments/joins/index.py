"""Where the records of a table are that a record may match: groups of equal keys, and in each of them those within a
range, found by halving.

>>> table = pl.DataFrame({"k": [7, 7, 9], "low": [0, 5, 0], "high": [4, 9, 9]})
>>> index = Index(table, ["k"], Span("low", "high"))
>>> looked = pl.DataFrame({"k": [9, 7, 8], "x": [3, 5, 5]})
>>> [(left.tolist(), rows.tolist()) for left, rows in index.pairs(looked, ["k"], ("x", "x"))]
[([0, 1], [2, 1])]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

Numbers = np.ndarray[Any, np.dtype[Any]]
MOST_AT_ONCE = 1 << 20
"""So many candidates are compared together."""
MOST_CLASSES = 12
_FEW = 64
"""Intervals of another length that are no reason for a class of their own."""


class TooMany(Exception):
    """The records of a batch have more matches than should be held at once."""


@dataclass(frozen=True)
class Span:
    """The columns of a table that say from where to where a record reaches; one of them may be missing. The ends
    themselves belong to it, if they are not `open`."""

    low: str | None
    high: str | None
    open_low: bool = False
    open_high: bool = False


@dataclass(frozen=True)
class _Ordered:
    """Rows of a table by group, and within a group by where they begin. `lows` and `highs` grow along them: numbers
    made of the group and of the place of an end among all ends."""

    rows: Numbers
    lows: Numbers
    highs: Numbers
    exact: bool
    """Is every row between two ends that were found a match?"""


@dataclass(frozen=True)
class _Hashes:
    """The hashes of keys, in order; each is that of a group, which hardly ever has keys with other values."""

    values: Numbers
    """One more than there are groups: the last is larger than all."""
    shift: np.uint64
    firsts: Numbers
    """By the first bits of a hash: where those begin that have them. Hashes are evenly spread, so that few have."""

    @classmethod
    def of(cls, hashes: Numbers) -> _Hashes:
        shift = np.uint64(64 - max(4, int(2 * len(hashes)).bit_length()))
        sizes = np.bincount((hashes >> shift).astype(np.int64), minlength=1 << (64 - int(shift)))
        return cls(np.append(hashes, np.uint64(2**64 - 1)), shift, np.concatenate([[0], np.cumsum(sizes)]))

    def find(self, hashes: Numbers) -> tuple[Numbers, Numbers]:
        """The group of each hash, and whether there is one."""
        slots = hashes >> self.shift
        found, last = self.firsts[slots], self.firsts[slots + np.uint64(1)]
        going = np.flatnonzero((found < last) & (self.values[found] < hashes))
        while len(going):
            found[going] += 1
            still = (found[going] < last[going]) & (self.values[found[going]] < hashes[going])
            going = going[still]
        return found, (found < last) & (self.values[found] == hashes)


class Index:
    """Made once for each table by each worker that looks up in it."""

    def __init__(self, table: pl.DataFrame, keys: Sequence[str], span: Span | None = None) -> None:
        self.table, self.keys, self.span = table, list(keys), span
        usable = np.ones(table.height, dtype=bool)
        needed = [*self.keys, *(name for name in (span.low, span.high) if name is not None)] if span else self.keys
        for name in needed:
            usable &= table[name].is_not_null().to_numpy()
        rows = np.flatnonzero(usable)
        self._known: _Hashes | None = None
        """Of the keys; without keys there is one group."""
        groups, count = np.zeros(len(rows), dtype=np.int64), 0
        if self.keys:
            hashes, groups = np.unique(hashed(table.select(self.keys))[rows], return_inverse=True)
            self._known, count = _Hashes.of(hashes), len(hashes)
        self.firsts_from: Numbers | None = None
        self.groups = np.zeros(table.height, dtype=np.int64)
        self.groups[rows] = groups
        keyed = table.select(self.keys)[rows] if self.keys and span is not None else None
        self.distinct = keyed is None or keyed.n_unique() == count
        self.lows = self.highs = np.empty(0)
        if span is None:
            order = np.argsort(groups, kind="stable")
            self.starts = np.searchsorted(groups[order], np.arange(max(count + 1, 2)), "left")
            self.parts = [_Ordered(rows[order], self.starts, self.starts, True)]
            return
        low = None if span.low is None else numbers(table[span.low])[rows]
        high = None if span.high is None else numbers(table[span.high])[rows]
        self.lows, low_places = _places(low, len(rows))
        self.highs, high_places = _places(high, len(rows))
        begins = groups * (len(self.lows) + 1) + low_places
        ends = groups * (len(self.highs) + 1) + high_places
        self.parts = []
        whole = self._part(rows, begins, ends, high_places if low is None else low_places)
        if whole.exact or low is None or high is None:
            self.parts.append(whole)
            return
        for chosen in _classes(low, high):
            self.parts.append(self._part(rows[chosen], begins[chosen], ends[chosen], low_places[chosen]))
        # Each part is a search more for each record, and its pairs must be put in order: are they worth that?
        apart = sum(self._candidates(part, groups, low) for part in self.parts)
        if self._candidates(whole, groups, low) <= 2 * apart:
            self.parts = [whole]

    def _candidates(self, part: _Ordered, groups: Numbers, at: Numbers) -> int:
        """How many there are for records where those of the table begin."""
        first, last = self._between(part, groups, at, at)
        return int(np.maximum(last - first, 0).sum())

    def _part(self, rows: Numbers, begins: Numbers, ends: Numbers, places: Numbers) -> _Ordered:
        only_high = self.span is not None and self.span.low is None
        order = np.argsort(ends if only_high else begins, kind="stable")
        reach = np.maximum.accumulate(ends[order]) if len(order) else ends
        return _Ordered(rows[order], begins[order], reach, bool((reach == ends[order]).all()))

    # ------------------------------------------------------------ lookups

    def groups_of(self, looked: pl.DataFrame, keys: Sequence[str]) -> tuple[Numbers, Numbers]:
        """The group of each record, and whether there is one."""
        if self._known is None:
            return np.zeros(looked.height, dtype=np.int64), np.ones(looked.height, dtype=bool)
        found, there = self._known.find(hashed(looked.select(keys)))
        for name in keys:
            if looked[name].null_count():
                there &= looked[name].is_not_null().to_numpy()
        return found, there

    def pairs(
        self, looked: pl.DataFrame, keys: Sequence[str], ends: tuple[str | None, str | None] = (None, None)
    ) -> Iterator[tuple[Numbers, Numbers]]:
        """Candidates, some at a time: positions in `looked` and rows of the table. `ends`: the columns that lie after
        the lower end and before the upper end of what is looked for. All pairs within the span are among them, and
        only such, if each part is exact; of equal keys only the hashes are compared."""
        for part, first, counts in self._searched(looked, keys, ends):
            yield from _expanded(part.rows, first, counts)

    @property
    def has_earliest(self) -> bool:
        """Is the first match of a record found without its other matches? So it is on one side of an end, where
        no two keys have one hash."""
        if self.span is None or (self.span.low is not None and self.span.high is not None):
            return False
        return self.distinct

    def earliest(
        self, looked: pl.DataFrame, keys: Sequence[str], ends: tuple[str | None, str | None]
    ) -> tuple[Numbers, Numbers]:
        """For each record that has candidates the first row among them."""
        assert self.span is not None
        [(part, first, counts)] = self._searched(looked, keys, ends)
        found = np.flatnonzero(counts)
        if self.firsts_from is None:
            self.firsts_from = _earliest(part, self.groups[part.rows], upwards=self.span.high is None)
        at = first[found] if self.span.low is None else first[found] + counts[found] - 1
        return found, self.firsts_from[at]

    def _searched(
        self, looked: pl.DataFrame, keys: Sequence[str], ends: tuple[str | None, str | None]
    ) -> Iterator[tuple[_Ordered, Numbers, Numbers]]:
        """For each part: where the candidates of each record begin, and how many they are."""
        groups, there = self.groups_of(looked, keys)
        after, before = (None if name is None else numbers(looked[name]) for name in ends)
        for name in ends:
            if name is not None:
                there = there & looked[name].is_not_null().to_numpy()
        for part in self.parts:
            first, last = self._between(part, groups, after, before)
            yield part, first, np.where(there, np.maximum(last - first, 0), 0)

    def _between(
        self, part: _Ordered, groups: Numbers, after: Numbers | None, before: Numbers | None
    ) -> tuple[Numbers, Numbers]:
        """From where to where the candidates of each record lie in a part."""
        if self.span is None:
            known = np.minimum(groups, len(self.starts) - 2)
            return self.starts[known], self.starts[known + 1]
        of_low, of_high = len(self.lows) + 1, len(self.highs) + 1
        if before is None:
            first = np.searchsorted(part.lows, groups * of_low, "left")
        else:
            place = np.searchsorted(self.highs, before, "right" if self.span.open_high else "left")
            first = np.searchsorted(part.highs, groups * of_high + place, "left")
        if after is None:
            last = np.searchsorted(part.highs, (groups + 1) * of_high, "left")
        else:
            place = np.searchsorted(self.lows, after, "left" if self.span.open_low else "right")
            last = np.searchsorted(part.lows, groups * of_low + place, "left")
        return first, last


def _earliest(part: _Ordered, groups: Numbers, *, upwards: bool) -> Numbers:
    """At each place of a part the first row among those of its group that lie before it, or behind it."""
    apart = groups * (int(part.rows.max(initial=0)) + 1)
    if upwards:  # rows of later groups are smaller than all before
        return np.minimum.accumulate(part.rows - apart) + apart
    return np.minimum.accumulate((part.rows + apart)[::-1])[::-1] - apart


def hashed(keys: pl.DataFrame) -> Numbers:
    """Equal keys have equal hashes, and -0.0 is 0.0."""
    floats = [name for name, kind in keys.schema.items() if kind == pl.Float64]
    return keys.with_columns([pl.col(name) + 0.0 for name in floats]).hash_rows(7).to_numpy()


def numbers(column: pl.Series) -> Numbers:
    """The values of a column, times and decimals as numbers; 0 for null."""
    physical = column.to_physical()
    if physical.dtype == pl.Int128:  # NumPy has none: those that are too large for 64 bits stay numbers of Python
        short = physical.cast(pl.Int64, strict=False)
        if short.null_count() > physical.null_count():
            digits = physical.cast(pl.String).fill_null("0")
            return np.array([int(text) for text in digits], dtype=object)
        physical = short
    return physical.fill_null(0).to_numpy()


def _places(values: Numbers | None, size: int) -> tuple[Numbers, Numbers]:
    """All values once, in order, and the place of each among them."""
    if values is None:
        return np.empty(0), np.zeros(size, dtype=np.int64)
    found, places = np.unique(values, return_inverse=True)
    return found, np.asarray(places, dtype=np.int64)


def _classes(low: Numbers, high: Numbers) -> Iterator[Numbers]:
    """Intervals of about the same length: a long one reaches over many short ones that begin after it, which would all
    be candidates of what lies behind them."""
    length = np.maximum(high.astype(np.float64) - low.astype(np.float64), 0.0)
    positive = length[length > 0]
    if not len(positive):
        yield np.arange(len(length))
        return
    size = np.log2(np.maximum(length, positive.min()))
    width = max(1.0, float(size.max() - size.min()) / MOST_CLASSES)
    number = ((size - size.min()) / width).astype(np.int64)
    waiting: list[Numbers] = []
    last = int(number.max())
    for i in range(last + 1):
        waiting.append(np.flatnonzero(number == i))
        if sum(map(len, waiting)) >= _FEW or i == last:
            yield np.sort(np.concatenate(waiting))
            waiting = []


def _expanded(rows: Numbers, first: Numbers, counts: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """One pair for each row from `first` on, so many for each record."""
    looked = np.flatnonzero(counts)
    starts, sizes = first[looked], counts[looked]
    if len(sizes) and sizes.max() == 1:
        yield looked, rows[starts]
        return
    until = np.cumsum(sizes)
    done = 0
    while done < len(looked):
        before = int(until[done - 1]) if done else 0
        stop = max(done + 1, int(np.searchsorted(until, before + MOST_AT_ONCE, "right")))
        part = slice(done, stop)
        of_each = np.arange(int(until[stop - 1]) - before) - np.repeat(until[part] - sizes[part] - before, sizes[part])
        yield np.repeat(looked[part], sizes[part]), rows[np.repeat(starts[part], sizes[part]) + of_each]
        done = stop
