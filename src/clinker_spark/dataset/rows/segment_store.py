"""The chunks of one part of a segment that are in memory, and the rows that can be made of them so far.

Rows come out in windows: after `processed_through`, up to the horizon. What a window has used is let go, chunk by
chunk; of each column one value stays, copied, because later rows may still be filled with it. Without that copy a chunk
could not go as long as it has the newest value of a component; and to drop it because its times have passed would be
wrong.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.dataset.arrays import of_numbers
from clinker_spark.dataset.errors import DatasetDamaged
from clinker_spark.dataset.flow.budget import PipelineBudget
from clinker_spark.dataset.indexes import FIRST
from clinker_spark.dataset.rows.assemble import Filled, Window
from clinker_spark.dataset.rows.horizon import EVERYTHING, Expected
from clinker_spark.dataset.rows.pieces import Joins, Loaded, Moments, Piece, after
from clinker_spark.dataset.selection import Layout, Part


@dataclass
class Track:
    """A column of one part: pieces that wait, and the newest value that was used."""

    waiting: list[Piece] = field(default_factory=list)
    newest: Piece | None = None
    static: list[Piece] = field(default_factory=list)

    def taken_until(self, horizon: int) -> list[Piece]:
        """Cut off what is at or before the horizon."""
        taken, left = [], []
        for piece in self.waiting:
            if piece.times[-1] <= horizon:
                taken.append(piece)
            elif piece.times[0] > horizon:
                left.append(piece)
            else:
                cut = int(np.searchsorted(piece.times, horizon, "right"))
                taken.append(piece.slice(0, cut))
                left.append(piece.slice(cut, len(piece)))
        self.waiting = left
        return taken


class Held:
    """The bytes of the budget that the chunks of one part hold."""

    def __init__(self, budget: PipelineBudget) -> None:
        self.budget = budget
        self.size = 0
        self._chunks: list[tuple[int, int, int]] = []
        """(last time, number, bytes) of the chunks in memory, as a heap."""

    def take(self, last_time: int, number: int, size: int) -> None:
        """A chunk is there. No two have the same number."""
        self.size += size
        heapq.heappush(self._chunks, (last_time, number, size))

    def release_through(self, time: int) -> None:
        """Let go of the chunks whose last time has passed."""
        freed = 0
        while self._chunks and self._chunks[0][0] <= time:
            freed += heapq.heappop(self._chunks)[2]
        self._release(freed)

    def release_all(self) -> None:
        self._chunks = []
        self._release(self.size)

    def _release(self, size: int) -> None:
        if size:
            self.size -= size
            self.budget.release(size)


class SegmentStore:
    """One part in memory. Its bytes are released as it goes, and all of them by `close`, however it ends."""

    def __init__(self, layout: Layout, part: Part, budget: PipelineBudget, batch_rows: int) -> None:
        self.layout = layout
        self.part = part
        self.held = Held(budget)
        self.batch_rows = batch_rows
        temporal = [need for need in part.needs if not need.chunk.is_static]
        self.expected = Expected(
            ((need.chunk.entity, need.time_min) for need in temporal), len(part.needs) - len(temporal)
        )
        self.received = 0
        self.processed_through = FIRST - 1
        self.tracks = [Track() for _ in layout.columns]
        self.warnings: list[Diagnostic] = []
        self.done = False
        self._static_row_due = layout.index is None

    @property
    def is_complete(self) -> bool:
        return self.received >= len(self.part.needs)

    def add(self, loaded: Loaded) -> None:
        """Take a chunk and its bytes. Raises DatasetDamaged when it has rows that should have been emitted."""
        self.received += 1
        is_static = loaded.need.chunk.is_static
        self.held.take(EVERYTHING if is_static else loaded.time_max, self.received, loaded.size)
        if is_static:
            self.expected.record_static()
            for column, piece in loaded.pieces.items():
                self.tracks[column].static.append(piece)
            return
        fits = self.expected.record_arrival(loaded.need.chunk.entity, loaded.time_min)
        if not fits:
            self._diverges(loaded)
        for column, piece in loaded.pieces.items():
            # What lies after the part is never asked for.
            stop = int(np.searchsorted(piece.times, self.part.high, "right"))
            if stop:
                self.tracks[column].waiting.append(piece if stop == len(piece) else piece.slice(0, stop))

    def _diverges(self, loaded: Loaded) -> None:
        chunk = loaded.need.chunk
        what = f"a chunk of '{chunk.entity}' in segment '{self.part.segment}' begins at {loaded.time_min}"
        message = f"{what}, and its manifest says {loaded.need.time_min}"
        # The announced beginning will not come any more: rows after it must not wait for ever.
        self.expected.record_arrival(chunk.entity, loaded.need.time_min)
        if loaded.time_min <= self.processed_through:
            help_text = "rows before it were already given without its values: run `clinker dataset verify`"
            raise DatasetDamaged("E856", message, help_text)
        help_text = "its rows came in time and are in the result; run `clinker dataset verify`"
        self.warnings.append(Diagnostic("W850", message, help=help_text, severity=Severity.WARNING))

    # ------------------------------------------------------------ rows

    def flush(self) -> Iterator[pa.RecordBatch]:
        """The rows that are final and have not been given."""
        if self.layout.index is None:
            if self.is_complete and self._static_row_due:
                self._static_row_due = False
                yield from self._static_row()
            return
        horizon = self.expected.horizon
        if horizon is None:
            return
        horizon = min(horizon, self.part.high)
        if self.processed_through < self.part.low - 1 and horizon > self.processed_through:
            self._pass(min(horizon, self.part.low - 1))
        if horizon > self.processed_through:
            yield from self._window(horizon)
            self.processed_through = horizon
        self.held.release_through(self.processed_through)  # their newest values were copied

    def _pass(self, until: int) -> None:
        """Values from before the part: only the newest can be asked for."""
        joins, kept = Joins(all_values=self.layout.all_values), _Kept()
        for track in self.tracks:
            taken = track.taken_until(until)
            if taken and self.layout.fill:
                track.newest = kept.newest_of(joins.joined(taken))
        self.processed_through = until

    def _window(self, horizon: int) -> Iterator[pa.RecordBatch]:
        low = max(self.processed_through + 1, self.part.low)
        joins, kept = Joins(all_values=self.layout.all_values), _Kept()
        filled = []
        for track in self.tracks:
            taken = track.taken_until(horizon)
            column = self._filled(track, taken, joins)
            filled.append(column)
            # A consumer may stop at any batch: what later windows need is kept before the first one.
            if taken and self.layout.fill and column.piece is not None and not column.static:
                track.newest = kept.newest_of(column.piece)
        times = None
        if self.part.values is not None:
            given = self.part.values
            times = given[np.searchsorted(given, low) : np.searchsorted(given, horizon, "right")]
        yield from Window(self.layout, self.part.segment, filled, times).batches(self.batch_rows)

    def _filled(self, track: Track, taken: list[Piece], joins: Joins) -> Filled:
        if track.static:
            return Filled(joins.joined(track.static), static=True)
        if track.newest is None:
            return Filled(joins.joined(taken) if taken else None)
        if not taken:
            return Filled(track.newest, carried=1)
        if self.layout.all_values:  # the newest is a list already
            return Filled(after(track.newest, joins.joined(taken)), carried=1)
        return Filled(joins.joined([track.newest, *taken]), carried=1)

    def _static_row(self) -> Iterator[pa.RecordBatch]:
        joins = Joins(all_values=self.layout.all_values)
        filled = [self._filled(track, [], joins) for track in self.tracks]
        if any(track.static for track in self.tracks):
            once = np.zeros(1, dtype=np.int64)
            yield from Window(self.layout, self.part.segment, filled, once).batches(self.batch_rows)

    # ------------------------------------------------------------ memory

    def close(self) -> None:
        """Give back all memory and the segment's slot; once."""
        if self.done:
            return
        self.done = True
        self.tracks = []
        self.held.release_all()


class _Kept:
    """Copies of the newest values of columns: their chunks can go. Columns that share moments go on doing so."""

    def __init__(self) -> None:
        self._moments: dict[int, tuple[Moments, Moments]] = {}

    def newest_of(self, piece: Piece) -> Piece:
        whole = piece.moments
        if id(whole) not in self._moments:
            self._moments[id(whole)] = whole, whole.last()
        values = None if piece.values is None else piece.values.take(of_numbers(np.array([len(piece) - 1])))
        return Piece(self._moments[id(whole)][1], values)
