"""Transforms: a program over each record, windows over others, checks and logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from clinker_spark.config.model.order import SortField
from clinker_spark.config.model.transform import Declaration, Frame, LogRule
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.cxl import ir
from clinker_spark.cxl.hidden import lookup_column
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.vector.reasons import program_reason
from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.facts import Estimate, Keys, Required, Sorting
from clinker_spark.plan.memory import NOTHING, SORT, WINDOW, Holder
from clinker_spark.plan.nodes.base import Schema
from clinker_spark.plan.nodes.fields import copies, fields_of, program_fields, written_variables
from clinker_spark.plan.nodes.narrow import NarrowPlan
from clinker_spark.plan.nodes.record_rules import Check, RecordLog


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowLookup:
    """How a record finds its partition among the records of another node."""

    schema: Schema
    """The columns of those records."""
    keys: Program
    """What stands on the side of the record, as `$key.0`, `$key.1`..."""
    there: Program
    """The columns to compare with, under the same names and in the same types."""
    values: Program
    """The `$window` functions over those records, as the columns that the transform reads."""

    @property
    def reads(self) -> set[str]:
        """The columns of those records that are needed."""
        return {name for p in (self.there, self.values) for e in p.typed.expressions() for name in fields_of(e)}


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowPlan:
    """The records that `$window` functions see."""

    group_by: tuple[str, ...]
    sort_by: tuple[SortField, ...]
    lookup: WindowLookup | None = None
    """For windows over the records of another node."""
    frame: Frame | None = None
    """The part of its partition that functions see from a record; all of it if this is None."""

    @property
    def columns(self) -> set[str]:
        """By which records are put together and sorted."""
        return set(self.group_by) | {item.field for item in self.sort_by}


@dataclass(frozen=True, eq=False, kw_only=True)
class TransformPlan(NarrowPlan):
    """Runs a program over each record. Its second input, if there is one, are records that its window looks into."""

    kind = "transform"
    failure_key = ("config", "cxl")

    program: Program
    window: WindowPlan | None = None
    checks: tuple[Check, ...] = ()
    declares: tuple[Declaration, ...] = ()
    phase: str = "runtime"
    log: tuple[LogRule, ...] = ()
    record_logs: tuple[RecordLog, ...] = ()

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program, *(check.program for check in self.checks))

    def expressions(self) -> Iterator[ir.TExpr]:
        yield from super().expressions()
        for log in self.record_logs:  # what they read must be there, but no record fails by them
            for program in log.programs:
                yield from program.typed.expressions()

    @property
    def written_variables(self) -> tuple[tuple[str, str], ...]:
        return tuple(written_variables(self.program.typed.statements))

    @property
    def lookup(self) -> WindowLookup | None:
        """How it looks into the records of another node."""
        return None if self.window is None else self.window.lookup

    @property
    def narrow(self) -> bool:
        return not self.exchanges

    @property
    def exchanges(self) -> bool:
        distinct = ir.has_statement(self.program.typed.statements, (ir.TDistinct,))
        return distinct or self.window is not None

    @property
    def holder(self) -> Holder:
        # `distinct` numbers the records of each key, which a sort brings together.
        return WINDOW if self.window is not None else SORT if self.exchanges else NOTHING

    @property
    def multiplies(self) -> bool:
        return ir.has_statement(self.program.typed.statements, (ir.TEach,))

    @property
    def conserves(self) -> bool:
        return not self.multiplies

    @property
    def one_for_one(self) -> bool:
        return not ir.has_statement(self.program.typed.statements, (ir.TFilter, ir.TEach, ir.TDistinct))

    @property
    def can_fail(self) -> bool:
        if any(check.severity == "error" for check in self.checks):
            return True
        # A window over other records fails by a sum of floats that does not exist.
        return super().can_fail or (self.lookup is not None and self.lookup.values.fallible)

    @property
    def vector_reason(self) -> str | None:
        if self.window is not None:
            return "'analytic_window' looks at several records"
        if self.declares:
            return "it writes variables for other nodes"
        return next((why for p in self.programs if (why := program_reason(p.typed)) is not None), None)

    def in_order(self, before: Sequence[bool]) -> bool:
        return all(before) and not self.exchanges

    def sorting(self, before: Sequence[Sorting]) -> Sorting:
        rewritten = self.rewritten
        return tuple(takewhile(lambda item: item.field not in rewritten, before[0]))

    def keys(self, before: Sequence[Keys]) -> Keys:
        first = before[0]
        order = (*first.order, *(name for name in self.schema if name not in first.order))
        return Keys(first.columns, first.sources, first.single, order)

    @property
    def rewritten(self) -> frozenset[str]:
        return frozenset(name for name in self.program.output if not copies(self.program, name))

    @property
    def written(self) -> frozenset[str]:
        return frozenset(self.program.output)

    def estimate(self, before: Sequence[Estimate | None]) -> Estimate | None:
        return None if self.multiplies or None in before else before[0]

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        if i:
            assert self.window is not None and self.lookup is not None
            return Required(frozenset(self.lookup.reads | self.window.columns), arrival=True)
        columns = (set(need.columns) - self.written) | program_fields(*self.programs)
        columns -= set(self.schema) - set(self.program.typed.schema)
        for log in self.record_logs:
            columns |= set(log.rule.fields) | program_fields(*log.programs)
        if self.lookup is not None:
            columns -= {lookup_column(i) for i in range(len(self.program.typed.lookups))}
            columns |= program_fields(self.lookup.keys)
        elif self.window is not None:
            columns |= self.window.columns
        scopes = {declared.scope for declared in self.declares}
        ordered = self.exchanges or bool(scopes & {"pipeline", "source"}) or bool(self.record_logs)
        return Required(
            frozenset(columns),
            need.arrival or ordered,
            need.document or self.reads_file_values or "source" in scopes,
            need.event,
            self.source_members | need.members,
        )

    def idle_keys(self, before: Sequence[Keys]) -> Iterator[Diagnostic]:
        if self.window is not None and not self._looks_through():
            yield self.idle_key("analytic_window", "the program has no $window function")

    def _looks_through(self) -> bool:
        """Does the program have a `$window` function?"""
        if self.program.typed.lookups:
            return True
        parts = (part for expression in self.program.typed.expressions() for part in expression.walk())
        return any(isinstance(part, ir.WindowRef) for part in parts)

    @property
    def shows_keys(self) -> bool:
        return self.window is not None and any(name.startswith(CK_PREFIX) for name in self.window.columns)

    @property
    def partitioned_by(self) -> tuple[str, ...] | None:
        return None if self.window is None else self.window.group_by

    def retraction_lines(self, sources: Sequence[str], limit: str) -> Iterator[str]:
        by = ", ".join(self.partitioned_by or ()) or "<all>"
        yield f"window '{self.name}' (source: {', '.join(sources)}, partition_by: {by}):"
        fields = sorted(program_fields(*self.programs) | (self.window.columns if self.window else set()))
        yield f"  buffer: {len(fields)} Value slots a row ({', '.join(fields)})"
        yield f"  worst case: the largest partition, at most the memory limit of {limit}; unknown at plan time"
        yield "  degrade fallback: DLQ entire affected partition"
        yield "  on Spark: computed again over the records that are left; a partition that does not fit goes to disk,"
        yield "    so nothing is ever degraded"

    @property
    def shown_program(self) -> Program:
        return self.program

    def property_lines(self, need: Required) -> Iterator[str]:
        if self.window is not None and self.lookup is not None:
            by = ", ".join(self.window.group_by) or "nothing: it is one"
            yield f"  window: partitions of '{self.inputs[1]}' by {by}; one record of each is joined"
