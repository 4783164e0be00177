"""Schedules: the budget and the worker, driven by a generator of random numbers in the place of threads.

Each step is one thing that could happen next: a fetch asks for memory, a fetch ends, the worker takes what has come,
somebody loses interest, a fetch fails. A schedule in which nothing can happen any more, and rows are missing, is a
deadlock.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from clinker_spark.dataset.files.chunk_bytes import Rows, encode
from clinker_spark.dataset.files.manifest import Chunk
from clinker_spark.dataset.flow.budget import PipelineBudget, Reservation
from clinker_spark.dataset.flow.io_loop import Fetch, fetches
from clinker_spark.dataset.flow.worker import Message, Worker
from clinker_spark.dataset.rows.pieces import Loaded, load
from clinker_spark.dataset.selection import Column, Layout, Part, Query, needed
from tests.dataset.model import Event, Row, answer


@dataclass
class Recording:
    """Parts of segments whose chunks are in memory already, and the rows that they make."""

    layout: Layout
    parts: tuple[Part, ...]
    loaded: dict[int, Loaded]
    """By the identity of what was needed."""
    expected: list[Row]


def recording(chance: random.Random) -> Recording:
    """A few segments of a few entities: chunks that overlap, ties, lists, static values, sometimes a single row."""
    events: list[Event] = []
    chunks: dict[str, list[tuple[Chunk, bytes]]] = {}
    for segment in [f"s{i}" for i in range(chance.randint(1, 5))]:
        chunks[segment] = []
        for entity in ("/a", "/b", "/c")[: chance.randint(1, 3)]:
            ids = 0
            for _ in range(chance.randint(0, 3)):
                count = chance.choice([1, 2, 7])
                start = chance.randint(0, 30)
                times = sorted(start + chance.randint(0, chance.choice([3, 25])) for _ in range(count))
                values = [chance.randint(0, 99) for _ in range(count)]
                rows = Rows(
                    entity,
                    np.arange(ids, ids + count),
                    {"frame": np.array(times, dtype=np.int64)},
                    {"v": pa.array(values, pa.int64())},
                )
                content, chunk = encode(rows, "pack", 0, "frame")
                chunks[segment].append((chunk, content))
                events += [Event(segment, entity, {"frame": t}, {"v": v}) for t, v in zip(times, values, strict=True)]
                ids += count
        if chance.random() < 0.3:
            rows = Rows("/still", np.arange(1), {}, {"v": pa.array([7], pa.int64())})
            content, chunk = encode(rows, "pack", 0, None)
            chunks[segment].append((chunk, content))
            events.append(Event(segment, "/still", {}, {"v": 7}))
    asked = Query("frame", fill=chance.random() < 0.8)
    entities = sorted({event.entity for event in events})
    layout = Layout(
        "frame",
        {"frame": "int64"},
        tuple(Column(entity, "v", pa.int64()) for entity in entities),
        asked.fill,
        False,
        False,
        False,
        ("frame",),
    )
    low, high = -(2**62), 2**62
    parts = tuple(
        Part(segment, low, high, needs=needs)
        for segment, found in sorted(chunks.items())
        if (needs := needed([chunk for chunk, _ in found], layout, Part(segment, low, high)))
    )
    contents = {id(chunk): content for found in chunks.values() for chunk, content in found}
    loaded = {id(need): load(contents[id(need.chunk)], need, layout) for part in parts for need in part.needs}
    return Recording(layout, parts, loaded, answer(events, ("frame",), asked))


@dataclass
class Outcome:
    rows: list[Row] = field(default_factory=list)
    ended: str = "finished"
    budget: PipelineBudget | None = None
    worker: Worker | None = None
    peak: int = 0


class Deadlock(AssertionError):
    """Nothing can happen any more."""


def run_schedule(made: Recording, chance: random.Random, size: int, *, trouble: bool) -> Outcome:
    """One schedule with a budget of `size` bytes. With `trouble`, somebody may lose interest or a fetch may fail."""
    budget = PipelineBudget(size)
    worker = Worker(made.layout, made.parts, budget, batch_rows=chance.choice([1, 3, 100]))
    found = Outcome(budget=budget, worker=worker)
    try:
        _steps(made, chance, budget, worker, found, trouble=trouble)
        if found.ended == "finished":
            worker.finish()
    finally:
        budget.close()
        worker.close()
    return found


def _steps(
    made: Recording, chance: random.Random, budget: PipelineBudget, worker: Worker, found: Outcome, *, trouble: bool
) -> None:
    left = fetches(made.parts, target=chance.choice([1, 100, 400]))
    if chance.random() < 0.5:
        chance.shuffle(left)  # nothing may depend on the order of requests
    at_once, room = chance.randint(1, 5), chance.randint(1, 3)
    asked: list[tuple[Reservation, Fetch]] = []
    channel: list[Message] = []
    for batch in worker.advance():
        found.rows += batch.to_pylist()
    while left or asked or channel:
        admitted = [item for item in asked if item[0].is_admitted]
        possible = ["request"] * (bool(left) and len(asked) < at_once)
        possible += ["end"] * (bool(admitted) and len(channel) < room)
        possible += ["deliver"] * bool(channel)
        if not possible:
            raise Deadlock(f"{len(asked)} fetches wait, {budget.current} of {budget.budget} bytes are held")
        if trouble and chance.random() < 0.03:
            found.ended = chance.choice(["cancelled", "failed"])
            for reservation in [item[0] for item in asked] + [message.reservation for message in channel]:
                reservation.refund()
            return
        match chance.choice(possible):
            case "request":
                fetching = left.pop(0)
                asked.append((budget.request(fetching.parts, fetching.estimate, fetching.key, lambda: None), fetching))
            case "end":
                item = chance.choice(admitted)
                asked.remove(item)
                reservation, fetching = item
                chunks = tuple((number, made.loaded[id(need)]) for number, need in fetching.needs)
                reservation.commit(sum(loaded.size for _, loaded in chunks))
                channel.append(Message(reservation, chunks))
            case _:
                budget.worker_waits(False)
                for batch in worker.receive(channel.pop(0)):
                    found.rows += batch.to_pylist()
        found.peak = max(found.peak, budget.current)
        if not channel:
            budget.worker_waits(True)


def facts(found: Outcome) -> dict[str, Any]:
    assert found.budget is not None
    return {"bytes": found.budget.current, "segments": found.budget.active_segments, "waiting": found.budget.waiting}
