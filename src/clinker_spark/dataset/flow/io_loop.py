"""The IO loop: fetches chunks in order of segments and times, several at once, inside of the budget."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from clinker_spark.dataset.constants import FETCH_TARGET_BYTES, MAX_CONCURRENT_SEGMENTS
from clinker_spark.dataset.errors import DatasetDamaged
from clinker_spark.dataset.files.chunk_bytes import check
from clinker_spark.dataset.files.store import Store
from clinker_spark.dataset.flow.budget import PipelineBudget
from clinker_spark.dataset.flow.channel import Channel, Closed
from clinker_spark.dataset.flow.worker import Message
from clinker_spark.dataset.rows.pieces import Loaded, load
from clinker_spark.dataset.selection import ChunkNeed, Layout, Part

LOCAL_FETCHES, REMOTE_FETCHES = 2, 8
"""Fetches at one time: more than the cores help only where most of the time is waiting."""
_NEAR = 1 << 16
"""Chunks with at most so many bytes between them are read together."""


@dataclass(frozen=True)
class Fetch:
    """Chunks that are fetched together."""

    order: int
    needs: tuple[tuple[int, ChunkNeed], ...]
    """Each with the number of its part."""

    @property
    def estimate(self) -> int:
        return sum(need.size for _, need in self.needs)

    @property
    def parts(self) -> list[int]:
        return sorted({number for number, _ in self.needs})

    @property
    def key(self) -> tuple[int, int]:
        """Whoever has the smallest key is let in first: the first part, and in it the earliest time."""
        number, need = self.needs[0]
        return number, need.time_min


def fetches(parts: tuple[Part, ...], target: int = FETCH_TARGET_BYTES) -> list[Fetch]:
    """The chunks of all parts, in groups of about `target` bytes."""
    found: list[Fetch] = []
    group: list[tuple[int, ChunkNeed]] = []
    size = 0

    def close() -> None:
        if group:
            found.append(Fetch(len(found), tuple(group)))
            group.clear()

    for number, part in enumerate(parts):
        for need in part.needs:
            together = {n for n, _ in group} | {number}
            if size + need.size > target or len(together) > MAX_CONCURRENT_SEGMENTS:
                close()
                size = 0
            group.append((number, need))
            size += need.size
    close()
    return found


def fetch(store: Store, layout: Layout, needs: Iterable[tuple[int, ChunkNeed]]) -> tuple[tuple[int, Loaded], ...]:
    """Read, check and decode chunks."""
    asked = list(needs)
    contents = _read(store, [need for _, need in asked])
    return tuple((number, load(content, need, layout)) for (number, need), content in zip(asked, contents, strict=True))


def _read(store: Store, needs: list[ChunkNeed]) -> list[memoryview]:
    found: dict[int, memoryview] = {}
    order = sorted(range(len(needs)), key=lambda i: (needs[i].chunk.pack, needs[i].chunk.offset))
    runs: list[list[int]] = []
    for i in order:
        chunk = needs[i].chunk
        last = needs[runs[-1][-1]].chunk if runs else None
        near = last is not None and last.pack == chunk.pack and chunk.offset - last.offset - last.length <= _NEAR
        if near and store.remote:
            runs[-1].append(i)
        else:
            runs.append([i])
    for run in runs:
        first, last = needs[run[0]].chunk, needs[run[-1]].chunk
        try:
            content = _checked(store, [needs[i] for i in run], first.offset, last.offset + last.length)
        except FileNotFoundError as error:
            message = f"'{first.pack}' is not there, which has chunks of '{first.entity}'"
            raise DatasetDamaged("E851", message, "restore the file from a copy, or import the events again") from error
        except OSError as error:
            raise DatasetDamaged("E855", f"cannot read '{first.pack}': {error}") from error
        found |= dict(zip(run, content, strict=True))
    return [found[i] for i in range(len(needs))]


def _checked(store: Store, needs: list[ChunkNeed], start: int, stop: int) -> list[memoryview]:
    pack = needs[0].chunk.pack
    for again in (store.remote, False):  # what came over a network damaged may come whole the second time
        content = memoryview(store.read(pack, start, stop - start))
        pieces = [content[n.chunk.offset - start : n.chunk.offset - start + n.chunk.length] for n in needs]
        try:
            for piece, need in zip(pieces, needs, strict=True):
                check(piece, need.chunk)
        except DatasetDamaged:
            if not again:
                raise
        else:
            return pieces
    raise AssertionError("unreachable")


class IoLoop:
    """Threads that fetch, each one group of chunks at a time. An error goes to the worker as a message."""

    def __init__(
        self,
        store: Store,
        layout: Layout,
        parts: tuple[Part, ...],
        budget: PipelineBudget,
        channel: Channel[Message | BaseException],
        threads: int | None = None,
    ) -> None:
        self.store = store
        self.layout = layout
        self.parts = parts
        self.budget = budget
        self.channel = channel
        self._left = iter(fetches(parts))
        self._lock = threading.Lock()
        count = threads or (REMOTE_FETCHES if store.remote else LOCAL_FETCHES)
        self._running = count
        self._threads = [threading.Thread(target=self._run, name=f"fetch-{i}", daemon=True) for i in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Nobody wants more: wait until every thread has given back what it has."""
        self.budget.close()
        for item in self.channel.close():
            if isinstance(item, Message):
                item.reservation.refund()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _run(self) -> None:
        try:
            while self._fetch_one():
                pass
        except Closed:
            pass
        except BaseException as error:  # whatever it is, the worker must not wait for ever
            with contextlib.suppress(Closed):
                self.channel.put(error)
        finally:
            with self._lock:
                self._running -= 1
                if not self._running:
                    self.channel.finish()

    def _fetch_one(self) -> bool:
        admitted = threading.Event()
        with self._lock:  # the order of requests is the order of fetches
            fetching = next(self._left, None)
            if fetching is None:
                return False
            reservation = self.budget.request(fetching.parts, fetching.estimate, fetching.key, admitted.set)
        try:
            admitted.wait()
            if not reservation.is_admitted:
                return False
            chunks = fetch(self.store, self.layout, fetching.needs)
            reservation.commit(sum(loaded.size for _, loaded in chunks))
            self.channel.put(Message(reservation, chunks))  # whoever takes it from there has the memory, too
        except BaseException:
            reservation.refund()
            raise
        return True
