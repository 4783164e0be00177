"""Aggregates: one record per group."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from clinker_spark.config.model.aggregate import Hopping, Session, Tumbling
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.types import INT
from clinker_spark.cxl import ir
from clinker_spark.cxl.lower.aggregates import lower_aggregate
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import default_context
from clinker_spark.cxl.vector.reasons import totals_reason
from clinker_spark.plan.columns import CK_AGGREGATE_PREFIX, CK_PREFIX
from clinker_spark.plan.facts import Estimate, Keys, Required, Sorting
from clinker_spark.plan.memory import HASH_AGGREGATE, STREAMING_AGGREGATE, WORKER_TOTALS, Holder
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.fields import program_fields

ORDERED = ("collect",)
"""The functions whose result depends on the order of the records."""
REVERSIBLE = ("sum", "count", "collect", "any")
"""The functions from whose totals a record could be taken out again."""

FILES_WORDS = {"separate": "each file has groups of its own", "together": "groups reach over all files"}

LATE = "late_record"
"""The category of a record that comes after its window was closed."""
LATE_STAGE = "time_window"
"""What its dead letter calls the aggregate."""


@dataclass(frozen=True)
class Lateness:
    """When records are late: the watermark of these sources has passed the end of their window by more than this."""

    sources: tuple[str, ...]
    allowed: dt.timedelta


@dataclass(frozen=True, eq=False, kw_only=True)
class AggregatePlan(PlanNode):
    """One record per group, in order of first appearance."""

    kind = "aggregate"
    mark = "◇"
    shape = "box3d"
    category = "aggregate_type_error"
    made_category = "aggregate_finalize"
    totals = True
    made = True

    program: Program
    group_by: tuple[str, ...]
    strategy: str
    """`streaming` where the records of a group are known to stand together, else `hash`. Spark runs both alike."""
    documents: str | None = None
    """`separate` where groups do not reach over files, `together` where they do; None where there is one file."""
    window: Tumbling | Hopping | Session | None = None
    """Groups over time as well."""
    late: Lateness | None = None
    """Records that come late are dead letters; None where they count like others."""
    delays: tuple[dt.timedelta, ...] = ()
    """With windows: the delays of the sources that the times of its records come from. Times count less the delay."""

    multiplies = False
    type_word = "aggregation"

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)

    @property
    def can_fail(self) -> bool:
        return super().can_fail or self.late is not None

    def stage_of(self, category: str) -> str:
        return f"{LATE_STAGE}:{self.name}" if category == LATE else self.stage

    @property
    def totals_reason(self) -> str | None:
        if self.window is not None:
            return "'time_window' makes groups of times"
        if self.per_document:
            return "each file has groups of its own"
        if not self.group_by:
            return "it has no 'group_by'"
        return totals_reason(self.program.typed)

    @property
    def holder(self) -> Holder:
        return STREAMING_AGGREGATE if self.strategy == "streaming" else HASH_AGGREGATE

    @property
    def worker_holder(self) -> Holder:
        return WORKER_TOTALS

    @property
    def per_document(self) -> bool:
        """Has each file groups of its own?"""
        return self.documents == "separate"

    def several_documents(self, before: Sequence[bool]) -> bool:
        return self.per_document

    @property
    def stateful(self) -> bool:
        return self.window is not None

    @property
    def reach(self) -> dt.timedelta:
        if self.window is None:
            return dt.timedelta(0)
        return self.window.gap if isinstance(self.window, Session) else self.window.size

    def state_details(self) -> dict[str, object]:
        return {**self.details(), "program": self.program.typed.source.text}

    def not_in_streams(self) -> Iterator[Diagnostic]:
        if self.window is None:
            return
        if self.per_document:
            message = f"'{self.name}' has groups of their own for each file, and a stream makes no difference of files"
            yield self.diagnostic("E503", message, "config", help="write documents: together")
        if self.late is not None:
            message = "'late: dead_letter' cannot be used in a stream: late records are dropped and counted (W501)"
            yield self.diagnostic("E503", message, "config", "time_window", help="remove 'late'")
        if isinstance(self.window, Hopping) and self.window.slide > self.window.size:
            message = "windows of a stream cannot leave out time between them"
            help_text = "write a slide that is not above the size"
            yield self.diagnostic("E503", message, "config", "time_window", help=help_text)
        if len(set(self.delays)) > 1:
            message = (
                f"the records of '{self.name}' come from sources with different delays, by which windows are shifted"
            )
            yield self.diagnostic("E503", message, "config", "time_window", help="give these sources the same delay")
        calls = (part for e in self.expressions() for part in e.walk())
        if ordered := sorted({c.function for c in calls if isinstance(c, ir.AggregateCall) and c.function in ORDERED}):
            message = f"'{ordered[0]}' cannot be used in a stream: its records have no order"
            help_text = "leave it to a run over what the stream writes"
            yield self.diagnostic("E503", message, "config", "cxl", help=help_text)
        if lower_aggregate(self.program.typed, default_context(self.name)).row_error is not None:
            message = f"records may fail at '{self.name}' before they are added up"
            help_text = "compute in a transform before it what can fail, and add up the result"
            yield self.diagnostic("E503", message, "config", "cxl", help=help_text)

    @property
    def mixes_files(self) -> bool:
        return not self.per_document

    @property
    def adds_up(self) -> bool:
        return self.per_document

    def sorting(self, before: Sequence[Sorting]) -> Sorting:
        """Groups come in the order of their first records: sorted, as far as the order is part of the group."""
        emitted = {s.name for s in self.program.typed.statements if isinstance(s, ir.TEmit)}
        kept = set(self.group_by) - emitted
        return tuple(takewhile(lambda item: item.field in kept, before[0])) if self.window is None else ()

    def keys(self, before: Sequence[Keys]) -> Keys:
        columns = dict(before[0].columns)
        if self._is_relaxed(before[0]):  # the totals that a group is made of are one, if it says so
            columns = {name: t for name, t in columns.items() if name in self.group_by and name not in before[0].own}
            columns[self.index_column] = INT
        return Keys(columns, before[0].sources, False, (*self.schema, *columns))

    @property
    def shows_keys(self) -> bool:
        return any(name.startswith(CK_PREFIX) for name in self.group_by)

    @property
    def index_column(self) -> str:
        """The column with the number of each group, where groups cut across correlation groups."""
        return f"{CK_AGGREGATE_PREFIX}{self.name}"

    def _is_relaxed(self, before: Keys) -> bool:
        """Do its groups cut across correlation groups? Also when a key column is not what it was at the source."""
        if not before.columns:
            return False
        fields = {name.removeprefix(CK_PREFIX) for name in before.own}
        after_relaxed = len(before.own) < len(before.columns)
        by = set(self.group_by) - before.rewritten
        return after_relaxed or not fields <= {name.removeprefix(CK_PREFIX) for name in by}

    def estimate(self, before: Sequence[Estimate | None]) -> Estimate | None:
        return before[0]

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        columns = frozenset(program_fields(self.program) | set(self.group_by))
        document = self.per_document or self.reads_file_values or self.late is not None  # which has the source in it
        return Required(columns, True, document, self.window is not None, self.source_members)

    @property
    def tag(self) -> str:
        return f"{self.type_word}:{self.strategy}"

    @property
    def shown_program(self) -> Program:
        return self.program

    def retraction_lines(self, sources: Sequence[str], limit: str) -> Iterator[str]:
        calls = (part for e in self.expressions() for part in e.walk())
        functions = {part.function for part in calls if isinstance(part, ir.AggregateCall)}
        path = "Reversible" if functions <= set(REVERSIBLE) else "BufferRequired"
        by = ", ".join(self.group_by) or "<all>"
        yield f"aggregate '{self.name}' (source: {', '.join(sources)}, group_by: {by}):"
        yield f"  accumulators: {path}"
        held = "~8 bytes/row" if path == "Reversible" else "n/a (raw contributions are held instead)"
        yield f"  lineage: {held}"
        yield f"  synthetic CK column: {self.index_column}, ~16 bytes/output row"
        yield "  group cardinality: unknown at plan time"
        yield "  degrade fallback: DLQ entire affected group"
        yield "  on Spark: totals are made again from the records that are left, either way; nothing is ever degraded;"
        yield "    no lineage while data is clean, after a failure the number of each record's group"
        yield "  if a record after it fails: all records of its group are retracted"

    def property_lines(self, need: Required) -> Iterator[str]:
        if self.documents is not None:
            yield f"  documents: {self.documents} ({FILES_WORDS[self.documents]})"
        if self.window is not None:
            yield f"  windows: {self._window_words()}"
        if self.late is not None:
            after = f", more than {self.late.allowed} ago" if self.late.allowed else ""
            yield f"  late: a dead letter when the watermark has passed the end of the window{after}"
            yield f"  watermark: the latest time so far, of {', '.join(self.late.sources)} the least"
        if self.strategy == "streaming":
            yield "  groups: neighbours in the input; Spark adds up each split, then exchanges the totals"

    def _window_words(self) -> str:
        """`hopping, size 1:00:00, slide 0:05:00`."""
        assert self.window is not None
        parts = [f"{key} {value}" for key, value in self.window.model_dump().items()]
        return ", ".join([type(self.window).__name__.lower(), *parts])

    def details(self) -> dict[str, Any]:
        found = {"group_by": list(self.group_by), "strategy": self.strategy, "per_document": self.per_document}
        found |= {} if self.documents is None else {"documents": self.documents}
        found |= {} if self.window is None else {"time_window": self._window_words()}
        return found | (
            {} if self.late is None else {"late": "dead_letter", "allowed_lateness": str(self.late.allowed)}
        )
