"""Groups: every use of `g` after `into g` becomes an aggregate of the rows, or an array of them where it must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clinker_spark.core import types
from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.floatsums import array_sum, filled, or_stop
from clinker_spark.cxl.hidden import PARTIAL_PREFIX
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.columns import PREPARED_PREFIX
from clinker_spark.plan.query.literals import ddl
from clinker_spark.plan.query.order import ascending
from clinker_spark.plan.query.values import Column, GroupRef, OrderTerm, Value, wide, widened
from clinker_spark.query.functions import FUNCTIONS
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    GroupType,
    ListType,
    QType,
    is_kind,
    is_number,
)

if TYPE_CHECKING:
    from clinker_spark.plan.query.arrays import ArrayLowering

MISSING = object()


class GroupContext:
    """The group of one query. `aggregates` grow while the clauses after `into` are lowered."""

    def __init__(self, lowering: ArrayLowering, item: Value, rows: Any, order: tuple[OrderTerm, ...]) -> None:
        self.lowering = lowering
        self.item = item
        self.rows = rows
        self.order = order
        self.guard = lowering.guard
        self.key: Value = item
        self.type: GroupType = GroupType(ANY, ANY)
        self.keys: list[tuple[str, str]] = []
        self.aggregates: list[tuple[str, str]] = []
        self.asked_for_order = False
        self.prepared: list[tuple[str, str]] = []
        """Values of the rows that aggregates use several times, as columns that are made before the groups."""
        self.step: tuple[str, ...] = ()
        """What must happen to the rows before they are grouped, so that their order can be told."""

    def add(self, text: str, t: QType) -> Column:
        """An aggregate of the group; the same one is computed once."""
        for name, known in self.aggregates:
            if known == text:
                return Column(quote(name), t)
        name = self.lowering.fresh(PARTIAL_PREFIX)
        self.aggregates.append((name, text))
        return Column(quote(name), t)

    def member(self, name: str) -> Value | None:
        if name == "key":
            return self.key
        if name == "items":
            return GroupRef(self, self.type)
        from clinker_spark.plan.query.values import Record

        found = self.key.field(name) if isinstance(self.key, Record) else None
        if found is not None:
            return found
        return self.add("count(*)", INT) if name == "count" else None

    # ------------------------------------------------------------- aggregates

    def aggregate(
        self, function: str, q: ast.Query | None, distinct: bool, span: Span, value: Value | None = None
    ) -> Column | None:
        """`function(from x in g where p select e)` as an aggregate; None when it needs the rows as a list.

        `q` is None for the group itself.
        """
        if q is not None and (q.orders or q.skip is not None or q.take is not None or q.group is not None or q.lets):
            return None
        condition, column = "", None
        if q is not None:
            inner = Scope(self.rows, {q.sources[0].name: self.item})
            distinct = distinct or q.distinct
            with self.lowering.guarded_by(self.guard):
                condition = " AND ".join(self.lowering.condition(w, inner, exact=False) for w in q.wheres)
                with self.lowering.branch(condition or "TRUE"):
                    selected = self.lowering.lower(q.select, inner)
                    if function not in ("count", "exists") or distinct:
                        column = self.lowering.to_column(selected)
        elif function not in ("count", "exists", "len") or distinct:
            column = self.lowering.to_column(self.item)
        if function in ("first", "last") and distinct:
            return None
        return self._aggregate(function, condition, column, distinct, span)

    def _aggregate(
        self, function: str, condition: str, column: Column | None, distinct: bool, span: Span
    ) -> Column | None:
        if function in ("count", "len"):
            if distinct:
                assert column is not None
                return self._count_distinct(condition, column)
            # count_if() makes Catalyst compute its condition in a step of its own.
            return self.add(f"count(CASE WHEN {condition} THEN 1 END)" if condition else "count(*)", INT)
        if function == "exists":
            return self.add(f"coalesce(bool_or({condition}), FALSE)" if condition else "(count(*) > 0)", BOOL)
        assert column is not None
        if function in ("first", "last"):
            return self._first(function, condition, column)
        value = f"CASE WHEN {condition} THEN {wide(column)} END" if condition else wide(column)
        if in_parts(function, column.type):
            value = self._prepare(value)
        prepared = Column(value, column.type.as_nullable() if condition else column.type)
        return self.add(*aggregate_sql(function, prepared, distinct, self.lowering, span, empty=bool(condition)))

    def _prepare(self, text: str) -> str:
        known = next((name for name, made in self.prepared if made == text), None)
        if known is None:
            known = self.lowering.fresh(PREPARED_PREFIX)
            self.prepared.append((known, text))
        return quote(known)

    def _count_distinct(self, condition: str, column: Column) -> Column:
        value = f"CASE WHEN {condition} THEN {column.text} END" if condition else column.text
        if not column.type.nullable:
            return self.add(f"count(DISTINCT {value})", INT)
        null = f"{condition} AND {column.text} IS NULL" if condition else f"{column.text} IS NULL"
        return self.add(f"(count(DISTINCT {value}) + IF(coalesce(bool_or({null}), FALSE), 1L, 0L))", INT)

    def _first(self, function: str, condition: str, column: Column) -> Column | None:
        self.asked_for_order = True
        if not self.order:
            # Either the second attempt follows, or the rows have no order and any of them will do.
            value = f"any_value({column.text})" + (f" FILTER (WHERE {condition})" if condition else "")
            return self.add(value, column.type.as_nullable())
        place = f"struct({', '.join(self._places())})"
        by = "min_by" if function == "first" else "max_by"
        where = f" FILTER (WHERE {condition})" if condition else ""
        return self.add(f"{by}({column.text}, {place}){where}", column.type.as_nullable())

    def array(self) -> Column:
        """All rows of the group, in order, as an array."""
        self.asked_for_order = True
        column = self.lowering.to_column(self.item)
        element = column.type
        parts = "".join(f"'p{i}', {text}, " for i, text in enumerate(self._places()))
        listed = f"collect_list(named_struct({parts}'v', {column.text}))"
        made = f"transform({f'array_sort({listed})' if parts else listed}, cq_s -> cq_s.v)"
        return self.add(made, ListType(element))

    def _places(self) -> tuple[str, ...]:
        step, places = ascending(self.order)
        self.step = self.step or step
        return places


def in_parts(function: str, t: QType) -> bool:
    """Is this aggregate put together of several sums, so that it does not depend on the order of the rows?

    A sum of floats does (decision 0006), and Spark computes the mean of whole numbers from such a sum."""
    return (function == "sum" and is_kind(t, Kind.FLOAT)) or (function == "avg" and is_kind(t, Kind.FLOAT, Kind.INT))


def _sum_in_parts(function: str, value: str, t: QType, distinct: bool) -> str:
    if not distinct:
        core = types.FLOAT if is_kind(t, Kind.FLOAT) else types.INT
        parts = AGGREGATES[function].sql([value], [core])
        final = or_stop(parts.final, parts.overflow, function) if parts.overflow else parts.final
        return filled(final, parts.partials)
    values = f"collect_set({value})"
    if is_kind(t, Kind.FLOAT):
        total = array_sum(values)
    else:
        total = f"CAST(sum(DISTINCT CAST({value} AS DECIMAL(38, 0))) AS DOUBLE)"
    return total if function == "sum" else f"({total} / nullif(size({values}), 0))"


def aggregate_sql(
    function: str, column: Column, distinct: bool, lowering: Any, span: Span, *, empty: bool
) -> tuple[str, QType]:
    """`sum`, `avg`, `min` or `max` of a column. `empty` says that there may be no row: the result is then 0."""
    t = column.type
    value = wide(column)
    inner = f"DISTINCT {value}" if distinct else value
    may_be_empty = empty or t.nullable
    if function in ("sum", "avg") and not is_number(t):
        lowering.no_form(span, f"{function}() of {t} has no Spark form")
    if in_parts(function, t):
        return f"coalesce({_sum_in_parts(function, value, t, distinct)}, 0D)", FLOAT
    if function == "avg":
        text = f"CAST(avg({inner}) AS {ddl(FLOAT)})"
        return (f"coalesce({text}, 0D)" if may_be_empty else text), FLOAT
    result = widened(t.present())
    text = f"{function}({inner})"
    if not is_number(t):
        return text, t.as_nullable() if may_be_empty else t
    zero = "0L" if is_kind(t, Kind.INT) else "0D" if is_kind(t, Kind.FLOAT) else "0"
    if not (function == "sum" and is_kind(t, Kind.DECIMAL)):
        text = text if not may_be_empty else f"coalesce({text}, {zero})"
    elif may_be_empty:
        text = f"coalesce({text}, {zero})"
    return text, result


__all__ = ["FUNCTIONS", "GroupContext", "aggregate_sql", "cxl"]
