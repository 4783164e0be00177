"""The worker: takes chunks of any segment as they come, and gives rows in the order of the result.

Only the first part that is not finished gives rows, because rows are promised in order of segments; others wait in
memory, which is why the budget admits few segments at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.dataset.constants import FLUSH_BATCH_ROWS
from clinker_spark.dataset.flow.budget import PipelineBudget, Reservation
from clinker_spark.dataset.rows.pieces import Loaded
from clinker_spark.dataset.rows.segment_store import SegmentStore
from clinker_spark.dataset.selection import Layout, Part


@dataclass(frozen=True)
class Message:
    """What a fetch brings: chunks of one or several parts, and the memory they take."""

    reservation: Reservation
    chunks: tuple[tuple[int, Loaded], ...]
    """Each with the number of its part."""


@dataclass
class Worker:
    """State of a query that is running. `close` gives everything back, whatever happened."""

    layout: Layout
    parts: tuple[Part, ...]
    budget: PipelineBudget
    batch_rows: int = FLUSH_BATCH_ROWS
    warnings: list[Diagnostic] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stores: dict[int, SegmentStore] = {}
        self._head = 0
        self.emitted = 0

    def receive(self, message: Message) -> Iterator[pa.RecordBatch]:
        """Chunks have come: the rows that are final now."""
        held = message.reservation.hand_over()
        # Each byte has one owner from here on, also when one of the chunks is refused.
        kept = 0
        try:
            for number, loaded in message.chunks:
                store = self._store(number)
                kept += loaded.size
                store.add(loaded)
        finally:
            if held > kept:
                self.budget.release(held - kept)
        before = self.emitted
        yield from self.advance()
        if self.emitted == before:
            self.budget.notify_empty_emit()

    def advance(self) -> Iterator[pa.RecordBatch]:
        """Rows of the head part; when it is finished, of the next."""
        while self._head < len(self.parts):
            head = self._head
            if head not in self._stores and self.parts[head].needs:
                return
            store = self._store(head)
            for batch in store.flush():
                self.emitted += batch.num_rows
                self.budget.notify_row_emitted()
                yield batch
            if not store.is_complete:
                return
            self._end(head)
            self._head += 1

    def finish(self) -> None:
        """No more chunks will come. Parts that are not complete are dropped: their rows could be wrong."""
        for number in sorted({*self._stores, *range(self._head, len(self.parts))}):
            part = self.parts[number]
            store = self._stores.get(number)
            got = 0 if store is None else store.received
            message = f"segment '{part.segment}' is not complete: {got} of {len(part.needs)} chunks came"
            help_text = "the rest of its rows is left out; run `clinker dataset verify`"
            self.warnings.append(Diagnostic("W851", message, help=help_text, severity=Severity.WARNING))
        self.close()

    def close(self) -> None:
        for number in list(self._stores):
            self._end(number)
        for number in range(len(self.parts)):
            self.budget.publish_segment_finalized(number)

    def _store(self, number: int) -> SegmentStore:
        if number not in self._stores:
            self._stores[number] = SegmentStore(self.layout, self.parts[number], self.budget, self.batch_rows)
        return self._stores[number]

    def _end(self, number: int) -> None:
        store = self._stores.pop(number)
        self.warnings += store.warnings
        store.close()
        self.budget.publish_segment_finalized(number)
