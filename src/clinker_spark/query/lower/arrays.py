"""Aggregates over rows, groups and arrays, and queries over arrays inside a row (with Spark's array functions)."""

from __future__ import annotations

from clinker_spark.core.span import Span
from clinker_spark.core.types import BOOL, INT
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.functions import FUNCTIONS
from clinker_spark.query.lower.base import Env
from clinker_spark.query.lower.expressions.aggregates import aggregate_of, array_aggregate
from clinker_spark.query.lower.expressions.rules import ExpressionLowering, over_elements, rest_from
from clinker_spark.query.lower.order import ascending, in_places
from clinker_spark.query.lower.sets import distinct_relation
from clinker_spark.query.lower.values import (
    VALUE,
    Column,
    GroupRef,
    Local,
    Record,
    Relation,
    Rows,
    Value,
    columns_of,
    sorted_by,
)
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ListType, QType, RecordType
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import ROWS, all_of, call, equals, own_columns, struct, there


class ArrayLowering(ExpressionLowering):
    # ------------------------------------------------------------- aggregates

    def aggregate(self, e: cxl.Call, scope: Env) -> Value | None:
        function, arg, distinct = e.function, e.args[0], False
        if function == "distinct":
            return None if not isinstance(arg, cxl.Expr) else self._distinct_list(e, scope)
        while (
            isinstance(arg, cxl.Call) and arg.function == "distinct" and len(arg.args) == 1 and "distinct" not in scope
        ):
            arg, distinct = arg.args[0], True
        group = self._group_of(arg, scope)
        if group is not None:
            q = arg if isinstance(arg, ast.Query) else None
            found: Column | None = group.context.aggregate(function, q, distinct, e.span)
            if found is not None:
                return found
        value = self.lower(arg, scope)
        if (isinstance(value, Local) and isinstance(value.value, list | str | dict)) or value == Local(None):
            given = FUNCTIONS["distinct"].run(value.value) if distinct else value.value
            return Local(FUNCTIONS[function].run(given))
        if isinstance(value, Rows):
            return self.aggregate_rows(function, value.relation, distinct, e.span)
        if isinstance(value, Column | GroupRef):
            column = self.to_column(value)
            if isinstance(column.type, ListType):
                return array_aggregate(function, column, distinct, self, e.span)
        if function == "len":
            return None
        self.no_form(e.span, f"{function}() of {self.type_of(value):?} has no Spark form")

    def _group_of(self, e: cxl.Expr, scope: Env) -> GroupRef | None:
        """The group that an argument goes through, if it is one: `g`, `g.items`, `from x in g ...`."""
        source = e
        if isinstance(e, ast.Query):
            if len(e.sources) != 1 or e.joins:
                return None
            source = e.sources[0].source
        if not isinstance(source, cxl.Name | cxl.Member):
            return None
        value = self.lower(source, scope)
        return value if isinstance(value, GroupRef) else None

    def _distinct_list(self, e: cxl.Call, scope: Env) -> Value:
        value = self.lower(e.args[0], scope)
        if isinstance(value, Rows):
            return Rows(distinct_relation(value.relation))
        column = self.to_column(value)
        return Column(call("array_distinct", column.sql), column.type)

    def aggregate_rows(self, function: str, relation: Relation, distinct: bool, span: Span) -> Column:
        """An aggregate of a whole relation, as a sub-query. Correlated ones become joins in Catalyst."""
        if distinct:
            relation = distinct_relation(relation)
        if function == "exists":
            return Column(sql.Exists(relation.build(False).query), BOOL)
        if function in ("first", "last"):
            return self._first_row(function, relation, span)
        made = Column(call("count", ROWS), INT)
        if function not in ("count", "len"):
            name, t = columns_of(relation.row)[0]
            if name != VALUE:
                message = f"{function}() of {relation.row:?} has no Spark form"
                self.no_form(span, message, "select one value of each row")
            made = aggregate_of(function, Column(sql.Column(VALUE), t), False, self, span, empty=True)
        step = sql.Aggregate((sql.As(made.sql, VALUE),))
        return Column(sql.Subquery(relation.build(False).query.then(step)), made.type)

    def _first_row(self, function: str, relation: Relation, span: Span) -> Column:
        rows = relation.build(True)
        if function == "last":
            self.no_form(span, "last() of rows has no Spark form", "sort them the other way round and take the first")
        order = (sorted_by(rows.order),) if rows.order else ()
        row = row_struct(relation.row)
        query = rows.query.then(*order, sql.Limit(1), sql.Select((sql.As(row.sql, VALUE),)))
        return Column(sql.Subquery(query), row.type.as_nullable())

    def rows_as_array(self, relation: Relation) -> Column:
        rows = relation.build(True)
        step, places = ascending(rows.order)
        row = row_struct(relation.row)
        collected = sql.Aggregate((sql.As(in_places(places, row.sql), VALUE),))
        made = sql.Subquery(rows.query.then(*step, collected))
        return Column(call("coalesce", made, call("array")), ListType(row.type))

    def contains_row(self, relation: Relation, value: Value, *, exact: bool) -> Column:
        query = relation.build(False).query
        columns = columns_of(relation.row)
        if isinstance(value, Record) and columns[0][0] != VALUE:
            pairs = [(self.to_column(value.fields[n]), n, t) for n, t in columns if n in value.fields]
        else:
            pairs = [(self.to_column(value), *columns[0])]
        if not exact and not any(a.type.nullable or t.nullable for a, _, t in pairs):
            # Catalyst carries an IN over to the other side of a join on the same key, which it does not do for EXISTS.
            # Under a NOT it stays EXISTS: NOT IN has to look for nulls, and may end in a nested loop.
            if len(pairs) < len(columns):
                query = query.then(sql.Select(own_columns(name for _, name, _ in pairs)))
            return Column(sql.In(tuple(a.sql for a, _, _ in pairs), query), BOOL)
        tests = [equals(sql.Column(n), a.sql, nulls=a.type.nullable or t.nullable) for a, n, t in pairs]
        return Column(sql.Exists(query.then(sql.Where(tuple(tests)))), BOOL)

    # ----------------------------------------------------------------- arrays

    def array_query(self, q: ast.Query, array: Column, scope: Env) -> Column:
        """A query over a list inside a row."""
        if not isinstance(array.type, ListType):
            self.no_form(q.sources[0].source.span, f"a query over {array.type:?} has no Spark form")
        if q.group is not None or q.lets:
            self.no_form(q.span, "grouping a list inside a row has no Spark form", "group the rows themselves")
        name, element, made = q.sources[0].name, array.type.element, array.sql
        variable = self.fresh("cq_v")
        inner: Env = Scope(scope, {name: Column(sql.Variable(variable), element)})
        for where in q.wheres:
            made = over_elements("filter", made, variable, self.condition(where, inner, exact=True))
        if q.orders:
            made = self._sorted_array(q, name, element, made, scope)
        start = self._bound(q.skip)
        if q.take is not None or start:
            length = sql.Literal(self._bound(q.take)) if q.take is not None else rest_from(made, start)
            made = call("slice", made, sql.Literal(start + 1), length)
        body = self.column(q.select, inner)
        if body.sql != sql.Variable(variable):
            made = over_elements("transform", made, variable, body.sql)
        if q.distinct:
            made = call("array_distinct", made)
        return Column(made, ListType(body.type))

    def _bound(self, e: cxl.Expr | None) -> int:
        if e is None:
            return 0
        if isinstance(e, cxl.Literal) and isinstance(e.value, int) and e.value >= 0:
            return e.value
        self.no_form(e.span, "skip and take inside a row need a written number from 0 up")

    def _sorted_array(self, q: ast.Query, name: str, element: QType, array: sql.Expr, scope: Env) -> sql.Expr:
        left, right = self.fresh("cq_l"), self.fresh("cq_r")
        arms: list[tuple[sql.Expr, sql.Expr]] = []
        for key in q.orders:
            a, b = (
                self.column(key.value, Scope(scope, {name: Column(sql.Variable(side), element)})).sql
                for side in (left, right)
            )
            before, after = sql.Literal(-1), sql.Literal(1)
            arms.append((all_of((sql.IsNull(a), there(b))), after))
            arms.append((all_of((there(a), sql.IsNull(b))), before))
            arms.append((sql.Binary("<", a, b), after if key.descending else before))
            arms.append((sql.Binary(">", a, b), before if key.descending else after))
        compare = sql.Lambda((left, right), sql.Case(tuple(arms), sql.Literal(0)))
        return call("array_sort", array, compare)


def row_struct(row: QType) -> Column:
    """A row as one value."""
    columns = columns_of(row)
    if columns[0][0] == VALUE and (not isinstance(row, RecordType) or row.nullable):
        return Column(sql.Column(VALUE), row)
    return Column(struct((n, sql.Column(n)) for n, _ in columns), row)
