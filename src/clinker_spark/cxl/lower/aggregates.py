"""Lowering aggregate programs: rows are prepared, grouped into partial columns, and finished per group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clinker_spark.core.recursion import deep_recursion
from clinker_spark.core.span import NO_SPAN
from clinker_spark.core.types import ANY
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES, Aggregate
from clinker_spark.cxl.builtins.floatsums import filled
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, GROUP_KEY_PREFIX, PARTIAL_PREFIX
from clinker_spark.cxl.lower.errors import Named, failing, first_error
from clinker_spark.cxl.lower.expressions.rules import rule_of
from clinker_spark.cxl.lower.keys import lower_key
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import LoweredProgram, PlanBuilder, Sql, Step, combine, quote
from clinker_spark.cxl.system import Context


@dataclass(frozen=True)
class LoweredAggregate:
    """`before` prepares rows (and finds those that fail), `partials` are the aggregate columns, `after` finishes."""

    before: tuple[Step, ...]
    row_error: str | None
    keys: tuple[tuple[str, str], ...]
    partials: tuple[tuple[str, str], ...]
    after: LoweredProgram


def lower_aggregate(
    program: ir.TypedProgram,
    context: Context,
    fields: Mapping[str, str] | None = None,
    system_columns: frozenset[str] = frozenset(),
    *,
    added_up: bool = False,
) -> LoweredAggregate:
    """An aggregate program as data for the Spark layer. `system_columns` are those that rows have, as `$source.row`.
    `added_up`: totals are columns that are there already, each with one that says whether it could not be made."""
    with deep_recursion():
        return _AggregateLowering(program, context, fields or {}, system_columns, added_up).run()


def total_columns(number: int) -> tuple[str, str]:
    """Where totals are added up already: the columns of a call, by its number among those of a program.

    >>> total_columns(0)
    ('$a0', '$a0.lost')
    """
    return f"{PARTIAL_PREFIX}{number}", f"{PARTIAL_PREFIX}{number}.lost"


class _AggregateLowering:
    def __init__(
        self,
        program: ir.TypedProgram,
        context: Context,
        fields: Mapping[str, str],
        system_columns: frozenset[str],
        added_up: bool,
    ) -> None:
        self.program = program
        self.numbers = {id(call): i for i, call in enumerate(ir.aggregate_calls(program))}
        self.added_up = added_up
        self.before = Lowering(rule_of, PlanBuilder("b"), context, fields, system_columns)
        self.after = Lowering(rule_of, PlanBuilder(), context, aggregates=self.aggregate)
        self.row_failures: list[Named] = []
        self.partials: list[tuple[str, str]] = []
        self._known: dict[str, str] = {}
        self._field: str | None = None

    def run(self) -> LoweredAggregate:
        filters = [s for s in self.program.statements if isinstance(s, ir.TFilter)]
        emits = [s for s in self.program.statements if isinstance(s, ir.TEmit)]
        row_error = None
        for condition in filters:
            predicate = self.before.bound(condition.predicate)
            self.row_failures += [(f, None) for f in predicate.failures]
            row_error = self._bind_error(row_error)
            self.before.builder.where(
                predicate.text if row_error is None else f"{row_error} IS NOT NULL OR {predicate.text}"
            )
        keys = [self._group_key(i, name) for i, name in enumerate(self.program.group_by)]
        outputs: list[tuple[str, str]] = [(name, quote(name)) for name in self.program.group_by]
        failures: list[Named] = []
        for s in emits:
            self._field = s.name
            sql = self.after.lower(s.value)
            failures += [(f, s.name) for f in sql.failures]
            bound = self.after.builder.bind(sql.bare())
            self.after.slots[s.slot] = bound
            outputs = [*(o for o in outputs if o[0] != s.name), (s.name, bound.text)]
        row_error = self._bind_error(row_error)
        self.before.builder.flush()
        error = None
        if failures:
            level = max(f.level for f, _ in failures)
            error = self.after.builder.bind(Sql(first_error(failures), level)).text
        self.after.builder.flush()
        after = LoweredProgram(tuple(self.after.builder.steps), tuple(outputs), (), error, True)
        return LoweredAggregate(tuple(self.before.builder.steps), row_error, tuple(keys), tuple(self.partials), after)

    def _group_key(self, number: int, name: str) -> tuple[str, str]:
        """A column to group by. Finishing reads `name`: the key itself or, where the values of a group can look
        different, that of its first record."""
        field = ir.Field(NO_SPAN, self.program.schema.get(name, ANY), False, name)
        lowered = lower_key(self.before, field, "group_by")
        self.row_failures += [(f, name) for f in lowered.failures]
        if not lowered.looks_differ:
            return name, lowered.key.text
        self.partials.append((name, f"min_by({lowered.shown.text}, {quote(ARRIVAL_COLUMN)})"))
        return f"{GROUP_KEY_PREFIX}{number}", lowered.key.text

    def _bind_error(self, error: str | None) -> str | None:
        """The error so far as one column; None when nothing can have failed."""
        if not self.row_failures:
            return error
        level = max(f.level for f, _ in self.row_failures)
        text = first_error(self.row_failures)
        self.row_failures = []
        return self.before.builder.bind(Sql(text if error is None else f"coalesce({error}, {text})", level)).text

    def aggregate(self, e: ir.AggregateCall) -> Sql:
        """Called while finishing: prepares the arguments, names the partials, gives the final text."""
        row = AGGREGATES[e.function]
        args = [self.before.bound(a) for a in e.args]
        self.row_failures += [(f, self._field) for a in args for f in a.failures]
        if self.added_up:
            return self._added_up(row, e)
        sql = row.sql([a.text for a in args], [a.type for a in e.args])
        names = [self._partial(p) for p in sql.partials]
        columns = [quote(name) for name in names]
        final = filled(sql.final, columns)
        result = Sql(final, 0, 3, simple=len(names) == 1 and sql.final == "{0}")
        if not sql.overflow and e.function != "sum":
            return result
        result = self.after.builder.bind(result)
        f = row.failure_for([a.type for a in e.args])
        when = f"{result.text} IS NULL AND {quote(names[0])} IS NOT NULL"
        if sql.overflow:
            when = filled(sql.overflow, columns, result.text)
        return combine(result.text, [result], [failing(when, f.kind, f.message, result.level)])

    def _added_up(self, row: Aggregate, e: ir.AggregateCall) -> Sql:
        value, lost = total_columns(self.numbers[id(e)])
        result = Sql(quote(value), 0, 3, simple=True)
        types = [a.type for a in e.args]
        if not row.loses_value(types):
            return result
        f = row.failure_for(types)
        return combine(result.text, [result], [failing(quote(lost), f.kind, f.message, result.level)])

    def _partial(self, text: str) -> str:
        name = self._known.get(text)
        if name is None:
            name = self._known[text] = f"{PARTIAL_PREFIX}{len(self.partials)}"
            self.partials.append((name, text))
        return name
