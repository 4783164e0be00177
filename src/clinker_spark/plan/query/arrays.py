"""Aggregates over rows, groups and arrays, and queries over arrays inside a row (with Spark's array functions)."""

from __future__ import annotations

from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.floatsums import array_sum
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.plan.query.base import Env
from clinker_spark.plan.query.expressions import ExpressionLowering
from clinker_spark.plan.query.groups import aggregate_sql
from clinker_spark.plan.query.literals import ddl
from clinker_spark.plan.query.order import ascending
from clinker_spark.plan.query.pieces import STEP, nested
from clinker_spark.plan.query.values import (
    VALUE,
    Column,
    GroupRef,
    Local,
    Record,
    Relation,
    Rows,
    Value,
    columns_of,
    wide,
    widened,
)
from clinker_spark.query.functions import FUNCTIONS
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import (
    BOOL,
    FLOAT,
    INT,
    ListType,
    QType,
    RecordType,
    Scalar,
    is_kind,
    is_number,
)


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
            found = group.context.aggregate(function, q, distinct, e.span)
            if found is not None:
                return found  # type: ignore[no-any-return]
        value = self.lower(arg, scope)
        if (isinstance(value, Local) and isinstance(value.value, list | str | dict)) or value == Local(None):
            given = FUNCTIONS["distinct"].run(value.value) if distinct else value.value
            return Local(FUNCTIONS[function].run(given))
        if isinstance(value, Rows):
            return self.aggregate_rows(function, value.relation, distinct, e.span)
        if isinstance(value, Column | GroupRef):
            column = self.to_column(value)
            if isinstance(column.type, ListType):
                return self._aggregate_array(function, column, distinct, e.span)
        if function == "len":
            return None
        self.no_form(e.span, f"{function}() of {self.type_of(value)} has no Spark form")

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
            from clinker_spark.plan.query.sets import distinct_relation

            return Rows(distinct_relation(value.relation))
        column = self.to_column(value)
        return Column(f"array_distinct({column.text})", column.type)

    def aggregate_rows(self, function: str, relation: Relation, distinct: bool, span: Span) -> Column:
        """An aggregate of a whole relation, as a sub-query. Correlated ones become joins in Catalyst."""
        if distinct:
            from clinker_spark.plan.query.sets import distinct_relation

            relation = distinct_relation(relation)
        if function == "exists":
            return Column(f"EXISTS {nested(relation.build(False).text)}", BOOL)
        if function in ("first", "last"):
            return self._first_row(function, relation, span)
        text = relation.build(False).text
        if function in ("count", "len"):
            return _single(f"{text}{STEP}AGGREGATE count(*) AS {VALUE}", INT)
        columns = columns_of(relation.row)
        if columns[0][0] != VALUE:
            self.no_form(span, f"{function}() of {relation.row} has no Spark form", "select one value of each row")
        sql, t = aggregate_sql(function, Column(VALUE, columns[0][1]), False, self, span, empty=True)
        return _single(f"{text}{STEP}AGGREGATE {sql} AS {VALUE}", t)

    def _first_row(self, function: str, relation: Relation, span: Span) -> Column:
        rendered = relation.build(True)
        if function == "last":
            self.no_form(span, "last() of rows has no Spark form", "sort them the other way round and take the first")
        order = f"{STEP}ORDER BY {', '.join(t.sql() for t in rendered.order)}" if rendered.order else ""
        row, t = row_struct(relation.row)
        text = f"{rendered.text}{order}{STEP}LIMIT 1{STEP}SELECT {row} AS {VALUE}"
        return Column(nested(text), t.as_nullable())

    def rows_as_array(self, relation: Relation) -> Column:
        rendered = relation.build(True)
        step, places = ascending(rendered.order)
        row, t = row_struct(relation.row)
        parts = "".join(f"'p{i}', {text}, " for i, text in enumerate(places))
        collected = f"collect_list(named_struct({parts}'v', {row}))"
        if places:
            collected = f"array_sort({collected})"
        made = f"transform({collected}, cq_s -> cq_s.v)"
        text = nested(STEP.join([rendered.text, *step, f"AGGREGATE {made} AS {VALUE}"]))
        return Column(f"coalesce({text}, array())", ListType(t))

    def group_as_array(self, group: GroupRef) -> Column:
        return group.context.array()  # type: ignore[no-any-return]

    def contains_row(self, relation: Relation, value: Value, *, exact: bool) -> Column:
        text = relation.build(False).text
        columns = columns_of(relation.row)
        if isinstance(value, Record) and columns[0][0] != VALUE:
            pairs = [(self.to_column(value.fields[n]), Column(quote(n), t)) for n, t in columns if n in value.fields]
        else:
            pairs = [(self.to_column(value), Column(quote(columns[0][0]), columns[0][1]))]
        if not exact and not any(a.type.nullable or b.type.nullable for a, b in pairs):
            # Catalyst carries an IN over to the other side of a join on the same key, which it does not do for EXISTS.
            # Under a NOT it stays EXISTS: NOT IN has to look for nulls, and may end in a nested loop.
            needles = ", ".join(a.text for a, _ in pairs)
            if len(pairs) < len(columns):
                text += f"{STEP}SELECT {', '.join(b.text for _, b in pairs)}"
            return Column(f"({needles}) IN {nested(text)}", BOOL)
        tests = [f"{b.text} {'<=>' if a.type.nullable or b.type.nullable else '='} {a.text}" for a, b in pairs]
        text += f"{STEP}WHERE {' AND '.join(tests)}"
        return Column(f"EXISTS {nested(text)}", BOOL)

    # ----------------------------------------------------------------- arrays

    def array_query(self, q: ast.Query, array: Column, scope: Env) -> Column:
        """A query over a list inside a row."""
        if not isinstance(array.type, ListType):
            self.no_form(q.sources[0].source.span, f"a query over {array.type} has no Spark form")
        if q.group is not None or q.lets:
            self.no_form(q.span, "grouping a list inside a row has no Spark form", "group the rows themselves")
        name, element, text = q.sources[0].name, array.type.element, array.text
        variable = self.fresh("cq_v")
        inner: Env = Scope(scope, {name: Column(variable, element)})
        for where in q.wheres:
            text = f"filter({text}, {variable} -> {self.condition(where, inner, exact=True)})"
        if q.orders:
            text = self._sorted_array(q, name, element, text, scope)
        start = self._bound(q.skip, 0)
        if q.take is not None or start:
            length = str(self._bound(q.take, 0)) if q.take is not None else f"greatest(size({text}) - {start}, 0)"
            text = f"slice({text}, {start + 1}, {length})"
        body = self.column(q.select, inner)
        if body.text != variable:
            text = f"transform({text}, {variable} -> {body.text})"
        if q.distinct:
            text = f"array_distinct({text})"
        return Column(text, ListType(body.type))

    def _bound(self, e: cxl.Expr | None, default: int) -> int:
        if e is None:
            return default
        if isinstance(e, cxl.Literal) and isinstance(e.value, int) and e.value >= 0:
            return e.value
        self.no_form(e.span, "skip and take inside a row need a written number from 0 up")

    def _sorted_array(self, q: ast.Query, name: str, element: QType, text: str, scope: Env) -> str:
        left, right = self.fresh("cq_l"), self.fresh("cq_r")
        arms = []
        for key in q.orders:
            a = self.column(key.value, Scope(scope, {name: Column(left, element)})).text
            b = self.column(key.value, Scope(scope, {name: Column(right, element)})).text
            lower, higher = ("1", "-1") if key.descending else ("-1", "1")
            arms.append(f"WHEN {a} IS NULL AND {b} IS NOT NULL THEN 1 WHEN {a} IS NOT NULL AND {b} IS NULL THEN -1")
            arms.append(f"WHEN {a} < {b} THEN {lower} WHEN {a} > {b} THEN {higher}")
        return f"array_sort({text}, ({left}, {right}) -> CASE {' '.join(arms)} ELSE 0 END)"

    def _aggregate_array(self, function: str, array: Column, distinct: bool, span: Span) -> Column:
        assert isinstance(array.type, ListType)
        element = array.type.element
        text = f"array_distinct({array.text})" if distinct else array.text
        there = f"filter({text}, cq_e -> cq_e IS NOT NULL)"
        if function in ("count", "len"):
            return Column(f"CAST(size({text}) AS BIGINT)", INT)
        if function == "exists":
            return Column(f"(size({text}) > 0)", BOOL)
        if function == "first":
            return Column(f"get({text}, 0)", element.as_nullable())
        if function == "last":
            return Column(f"try_element_at({text}, -1)", element.as_nullable())
        if function in ("min", "max"):
            found = f"array_{function}({text})"
            if is_number(element):
                return Column(f"coalesce({found}, 0)", widened(element.present()))
            return Column(found, element.as_nullable())
        if not is_number(element):
            self.no_form(span, f"{function}() of {element} has no Spark form")
        if function == "sum":
            return Column(*_array_total(there, element, widened(element.present())))
        exact = Scalar(Kind.DECIMAL, scale=0) if is_kind(element, Kind.INT) else widened(element.present())
        total, _ = _array_total(there, element, exact)
        return Column(f"IF(size({there}) = 0, 0D, CAST({total} AS DOUBLE) / size({there}))", FLOAT)


def _array_total(array: str, element: QType, kind: QType) -> tuple[str, QType]:
    """The sum of the numbers of an array without nulls, computed as numbers of a kind."""
    if is_kind(element, Kind.FLOAT):
        wider = f"transform({array}, cq_e -> {wide(Column('cq_e', element))})"
        return array_sum(wider if element != widened(element) else array), FLOAT
    add = f"(cq_a, cq_e) -> CAST(cq_a + {wide(Column('cq_e', element))} AS {ddl(kind)})"
    return f"aggregate({array}, CAST(0 AS {ddl(kind)}), {add})", kind


def _single(text: str, t: QType) -> Column:
    """The only row of a query as a value."""
    return Column(nested(text), t, text)


def row_struct(row: QType) -> tuple[str, QType]:
    """A row as one value."""
    columns = columns_of(row)
    if columns[0][0] == VALUE and not isinstance(row, RecordType):
        return VALUE, row
    if isinstance(row, RecordType) and row.null:
        return VALUE, row
    return f"named_struct({', '.join(f'{sql_string(n)}, {quote(n)}' for n, _ in columns)})", row
