"""The pipeline budget: how much a query may fetch ahead of what it has turned into rows.

A fetch asks for its bytes and its segments together: it gets both or waits for both (`try_admit`). Waiting fetches are
admitted strictly in the order of their keys, the earliest time first, because that is the one that moves the horizon.

Memory comes back as the worker emits rows. It could happen that all of it holds rows that wait for a fetch that waits
for memory. Two breakers let the first waiting fetch pass then, over the limit: many arrivals without a row while the
budget is full, and the exact condition, that fetches wait, none is under way and the worker has nothing to do.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from clinker_spark.dataset.constants import (
    ESTIMATE_EMA_ALPHA,
    INITIAL_ESTIMATE_MULTIPLIER,
    MAX_CONCURRENT_SEGMENTS,
    MAX_ESTIMATE_MULTIPLIER,
    MIN_ESTIMATE_MULTIPLIER,
    STALL_EMPTY_EMIT_THRESHOLD,
    STALL_SATURATION_THRESHOLD,
)

_log = logging.getLogger(__name__)
WAITING, ADMITTED, HANDED_OVER, ENDED = "waiting", "admitted", "handed over", "ended"


@dataclass
class Reservation:
    """The memory of one fetch, from its request until the worker has it."""

    budget: PipelineBudget
    segments: tuple[Any, ...]
    estimate: int
    key: tuple[Any, ...]
    wake: Callable[[], None]
    """Called once, when the reservation is admitted or the budget is closed. It must not block."""
    state: str = WAITING
    reserved: int = 0

    @property
    def is_admitted(self) -> bool:
        return self.state == ADMITTED

    def commit(self, actual: int) -> None:
        """What the fetch really took."""
        self.budget._commit(self, actual)

    def hand_over(self) -> int:
        """The worker has it now, and will release these bytes."""
        return self.budget._hand_over(self)

    def refund(self) -> None:
        """Give everything back, unless the worker has it."""
        self.budget._refund(self)

    def __lt__(self, other: Reservation) -> bool:
        return self.key < other.key


@dataclass
class Estimates:
    """How much larger chunks are in memory than they were announced, learned from those that came.

    >>> estimates = Estimates(multiplier=2.0)
    >>> estimates.reserved(100)
    200
    >>> estimates.learn(100, 100)
    >>> estimates.multiplier < 2.0
    True
    """

    multiplier: float = INITIAL_ESTIMATE_MULTIPLIER

    def reserved(self, estimate: int) -> int:
        """The bytes to ask for."""
        return int(estimate * self.multiplier)

    def learn(self, estimate: int, actual: int) -> None:
        """A chunk that was announced with `estimate` took `actual` bytes."""
        if estimate > 0:
            mixed = (1 - ESTIMATE_EMA_ALPHA) * self.multiplier + ESTIMATE_EMA_ALPHA * (actual / estimate)
            self.multiplier = min(max(mixed, MIN_ESTIMATE_MULTIPLIER), MAX_ESTIMATE_MULTIPLIER)


@dataclass
class Stalls:
    """The breakers: when may one fetch pass over the limit, because nothing would move without it?"""

    force_overcommit: bool = False
    overcommits: int = 0
    """How often it happened."""
    empty_emits: int = 0
    """So many arrivals without a row, one after the other."""
    worker_idle: bool = False

    def progress(self) -> None:
        """Rows came out, or memory came back: nothing stalls."""
        self.force_overcommit = False
        self.empty_emits = 0

    def pass_one(self) -> None:
        """A fetch passes. One for each stall: the limit is exceeded as little as possible."""
        self.overcommits += 1
        self.progress()

    def empty_emit(self, full: bool) -> bool:
        """Chunks came, and no row. Is that a stall, if the budget is `full` and fetches wait?"""
        self.empty_emits += 1
        stalls = full and self.empty_emits >= STALL_EMPTY_EMIT_THRESHOLD
        self.force_overcommit = self.force_overcommit or stalls
        return stalls


class PipelineBudget:
    """Bytes and segments that are in use. All methods can be called from any thread."""

    def __init__(self, budget: int, max_segments: int = MAX_CONCURRENT_SEGMENTS) -> None:
        self.budget = budget
        self.max_segments = max_segments
        self.current = 0
        self.peak = 0
        self.active_segments: set[Any] = set()
        self.estimates = Estimates()
        self.stalls = Stalls()
        self.closed = False
        self._lock = threading.RLock()
        self._waiting: list[Reservation] = []
        self._in_flight = 0
        self._numbers = 0

    # ------------------------------------------------------------ fetches

    def request(
        self, segments: Iterable[Any], estimate: int, key: tuple[Any, ...], wake: Callable[[], None]
    ) -> Reservation:
        """Ask for memory. It is admitted now or later, in the order of `key`; `wake` is called then."""
        with self._lock:
            self._numbers += 1
            found = Reservation(self, tuple(segments), estimate, (*key, self._numbers), wake)
            if self.closed:
                found.state = ENDED
                wake()
                return found
            heapq.heappush(self._waiting, found)
            self._wake()
            self._break_standstill()
            return found

    def try_admit(self, segments: Iterable[Any], reserved: int) -> bool:
        """Take bytes and segment slots together, or neither."""
        with self._lock:
            added = set(segments) - self.active_segments
            if self.stalls.force_overcommit:
                self.stalls.pass_one()
            else:
                # What is larger than the whole budget can never fit: it passes alone, and nothing waits for ever.
                alone = reserved > self.budget and self.current == 0
                if self.active_segments and len(self.active_segments) + len(added) > self.max_segments:
                    return False
                if not alone and self.current + reserved > self.budget:
                    return False
                if alone:
                    _log.warning("a fetch of %d bytes is larger than the budget of %d", reserved, self.budget)
            self.active_segments |= added
            self._add(reserved)
            return True

    def _wake(self) -> None:
        while self._waiting:
            first = self._waiting[0]
            reserved = self.estimates.reserved(first.estimate)
            if not self.try_admit(first.segments, reserved):
                return
            heapq.heappop(self._waiting)
            first.reserved, first.state = reserved, ADMITTED
            self._in_flight += 1
            first.wake()

    def _commit(self, reservation: Reservation, actual: int) -> None:
        with self._lock:
            if reservation.state != ADMITTED:
                return
            self.estimates.learn(reservation.estimate, actual)
            self._add(actual - reservation.reserved)
            freed = actual < reservation.reserved
            reservation.reserved = actual
            if freed:
                self._wake()

    def _hand_over(self, reservation: Reservation) -> int:
        with self._lock:
            if reservation.state != ADMITTED:
                return 0
            reservation.state = HANDED_OVER
            self._in_flight -= 1
            return reservation.reserved

    def _refund(self, reservation: Reservation) -> None:
        with self._lock:
            if reservation.state == ADMITTED:
                self._in_flight -= 1
                self._add(-reservation.reserved)
            elif reservation.state == WAITING and reservation in self._waiting:
                self._waiting.remove(reservation)
                heapq.heapify(self._waiting)
            if reservation.state in (ADMITTED, WAITING):
                reservation.state = ENDED
                self._wake()
                self._break_standstill()

    # ------------------------------------------------------------ the worker

    def release(self, size: int) -> None:
        """The worker has let go of so many bytes."""
        with self._lock:
            self._add(-size)
            if size:
                self.stalls.progress()
            self._wake()

    def publish_segment_finalized(self, segment: Any) -> None:
        """The worker holds nothing of a segment any more."""
        with self._lock:
            self.active_segments.discard(segment)
            self._wake()

    def notify_row_emitted(self) -> None:
        """There was progress."""
        with self._lock:
            self.stalls.progress()

    def notify_empty_emit(self) -> None:
        """Chunks came, and no row could be emitted."""
        with self._lock:
            full = self.current >= self.budget * STALL_SATURATION_THRESHOLD
            if self.stalls.empty_emit(full and bool(self._waiting)):
                self._wake()

    def worker_waits(self, waits: bool) -> None:
        """Is the worker out of work?"""
        with self._lock:
            self.stalls.worker_idle = waits
            self._break_standstill()

    def _break_standstill(self) -> None:
        """Nothing is under way, and nothing will be unless a waiting fetch passes."""
        if self.stalls.worker_idle and self._waiting and not self._in_flight and not self.closed:
            self.stalls.force_overcommit = True
            self._wake()

    # ------------------------------------------------------------ all

    def close(self) -> None:
        """Nobody waits any longer: the query has ended, one way or another."""
        with self._lock:
            self.closed = True
            ended, self._waiting = self._waiting, []
            for reservation in ended:
                reservation.state = ENDED
                reservation.wake()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _add(self, size: int) -> None:
        self.current += size
        self.peak = max(self.peak, self.current)
