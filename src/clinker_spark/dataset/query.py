"""Asking a dataset: batches of rows, in order, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.dataset.constants import CHANNEL_MESSAGES, FLUSH_BATCH_ROWS, budget_bytes
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.files.store import Store
from clinker_spark.dataset.flow.budget import PipelineBudget
from clinker_spark.dataset.flow.channel import Channel
from clinker_spark.dataset.flow.io_loop import IoLoop
from clinker_spark.dataset.flow.worker import Message, Worker
from clinker_spark.dataset.selection import Layout, Part, Query, Selection, select

Tell = Callable[[Diagnostic], None]


def query(dataset: Dataset, asked: Query, tell: Tell = lambda found: None) -> Iterator[pa.RecordBatch]:
    """The rows of a query, from this process."""
    selection: Selection = select(dataset, asked)
    budget = PipelineBudget(budget_bytes(selection.size, 1))
    return run(dataset.store, selection.layout, selection.parts, budget, tell=tell)


def run(
    store: Store,
    layout: Layout,
    parts: tuple[Part, ...],
    budget: PipelineBudget,
    batch_rows: int = FLUSH_BATCH_ROWS,
    tell: Tell = lambda found: None,
) -> Iterator[pa.RecordBatch]:
    """The rows of some parts. This thread is the worker; others fetch. However it ends, also because the caller wants
    no more rows, all memory is given back and no thread is left."""
    channel: Channel[Message | BaseException] = Channel(CHANNEL_MESSAGES)
    worker = Worker(layout, parts, budget, batch_rows)
    io = IoLoop(store, layout, parts, budget, channel)
    io.start()
    try:
        yield from worker.advance()  # parts that need no chunk
        while (message := _next(channel, budget)) is not None:
            if isinstance(message, BaseException):
                raise message
            yield from worker.receive(message)
        worker.finish()
    finally:
        io.stop()
        worker.close()
        for found in worker.warnings:
            tell(found)


def _next(channel: Channel[Message | BaseException], budget: PipelineBudget) -> Message | BaseException | None:
    found = channel.get_nowait()
    if found is None:
        budget.worker_waits(True)
        found = channel.get()
        budget.worker_waits(False)
    return found
