"""Groups: every use of `g` after `into g` becomes an aggregate of the rows, or an array of them where it must."""

from __future__ import annotations

from clinker_spark.core.span import Span
from clinker_spark.core.types import BOOL, INT
from clinker_spark.cxl.hidden import PARTIAL_PREFIX
from clinker_spark.query.hidden import PREPARED_PREFIX
from clinker_spark.query.lower.base import Env
from clinker_spark.query.lower.expressions.aggregates import aggregate_of, in_parts
from clinker_spark.query.lower.expressions.conditions import ConditionLowering
from clinker_spark.query.lower.order import ascending, in_places
from clinker_spark.query.lower.values import Column, GroupRef, OrderTerm, Record, Value, wide
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, GroupType, ListType, QType
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import FALSE, ROWS, TRUE, all_of, call, long, when


class GroupContext:
    """The group of one query. `aggregates` grow while the clauses after `into` are lowered."""

    def __init__(self, lowering: ConditionLowering, item: Value, rows: Env, order: tuple[OrderTerm, ...]) -> None:
        self.lowering = lowering
        self.item = item
        self.rows = rows
        self.order = order
        self.guard = lowering.guard
        self.key: Value = item
        self.type: GroupType = GroupType(ANY, ANY)
        self.keys: list[tuple[str, sql.Expr]] = []
        self.aggregates: dict[sql.Expr, str] = {}
        self.asked_for_order = False
        self.prepared: dict[sql.Expr, str] = {}
        """Values of the rows that aggregates use several times, as columns that are made before the groups."""
        self.step: tuple[sql.Step, ...] = ()
        """What must happen to the rows before they are grouped, so that their order can be told."""

    def add(self, made: sql.Expr, t: QType) -> Column:
        """An aggregate of the group; the same one is computed once."""
        if made not in self.aggregates:
            self.aggregates[made] = self.lowering.fresh(PARTIAL_PREFIX)
        return Column(sql.Column(self.aggregates[made]), t)

    def member(self, name: str) -> Value | None:
        if name == "key":
            return self.key
        if name == "items":
            return GroupRef(self, self.type)
        found = self.key.field(name) if isinstance(self.key, Record) else None
        if found is not None:
            return found
        return self.add(call("count", ROWS), INT) if name == "count" else None

    # ------------------------------------------------------------- aggregates

    def aggregate(self, function: str, q: ast.Query | None, distinct: bool, span: Span) -> Column | None:
        """`function(from x in g where p select e)` as an aggregate; None when it needs the rows as a list.

        `q` is None for the group itself.
        """
        if q is not None and (q.orders or q.skip is not None or q.take is not None or q.group is not None or q.lets):
            return None
        condition, column = None, None
        if q is not None:
            inner = Scope(self.rows, {q.sources[0].name: self.item})
            distinct = distinct or q.distinct
            with self.lowering.guarded_by(self.guard):
                if q.wheres:
                    condition = all_of([self.lowering.condition(w, inner, exact=False) for w in q.wheres])
                with self.lowering.branch(condition or TRUE):
                    selected = self.lowering.lower(q.select, inner)
                    if function not in ("count", "exists") or distinct:
                        column = self.lowering.to_column(selected)
        elif function not in ("count", "exists", "len") or distinct:
            column = self.lowering.to_column(self.item)
        if function in ("first", "last") and distinct:
            return None
        return self._aggregate(function, condition, column, distinct, span)

    def _aggregate(
        self, function: str, condition: sql.Expr | None, column: Column | None, distinct: bool, span: Span
    ) -> Column | None:
        if function in ("count", "len"):
            if distinct:
                assert column is not None
                return self._count_distinct(condition, column)
            # count_if() makes Catalyst compute its condition in a step of its own.
            return self.add(call("count", ROWS if condition is None else when(condition, sql.Literal(1))), INT)
        if function == "exists":
            some = sql.Binary(">", call("count", ROWS), sql.Literal(0))
            return self.add(some if condition is None else _some(condition), BOOL)
        assert column is not None
        if function in ("first", "last"):
            return self._first(function, condition, column)
        value = wide(column) if condition is None else when(condition, wide(column))
        if in_parts(function, column.type):
            value = self._prepare(value)
        prepared = Column(value, column.type if condition is None else column.type.as_nullable())
        made = aggregate_of(function, prepared, distinct, self.lowering, span, empty=condition is not None)
        return self.add(made.sql, made.type)

    def _prepare(self, value: sql.Expr) -> sql.Expr:
        if value not in self.prepared:
            self.prepared[value] = self.lowering.fresh(PREPARED_PREFIX)
        return sql.Column(self.prepared[value])

    def _count_distinct(self, condition: sql.Expr | None, column: Column) -> Column:
        value = column.sql if condition is None else when(condition, column.sql)
        count = sql.Call("count", (value,), distinct=True)
        if not column.type.nullable:
            return self.add(count, INT)
        missing = sql.IsNull(column.sql)
        null = missing if condition is None else all_of((condition, missing))
        return self.add(sql.Binary("+", count, call("IF", _some(null), long(1), long(0))), INT)

    def _first(self, function: str, condition: sql.Expr | None, column: Column) -> Column | None:
        self.asked_for_order = True
        if not self.order:
            # Either the second attempt follows, or the rows have no order and any of them will do.
            return self.add(sql.Call("any_value", (column.sql,), where=condition), column.type.as_nullable())
        by = "min_by" if function == "first" else "max_by"
        place = call("struct", *self._places())
        return self.add(sql.Call(by, (column.sql, place), where=condition), column.type.as_nullable())

    def array(self) -> Column:
        """All rows of the group, in order, as an array."""
        self.asked_for_order = True
        column = self.lowering.to_column(self.item)
        return self.add(in_places(self._places(), column.sql), ListType(column.type))

    def _places(self) -> tuple[sql.Expr, ...]:
        step, places = ascending(self.order)
        self.step = self.step or step
        return places


def _some(condition: sql.Expr) -> sql.Expr:
    """Does it hold for any row?"""
    return call("coalesce", call("bool_or", condition), FALSE)
