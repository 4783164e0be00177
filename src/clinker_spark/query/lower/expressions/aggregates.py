"""`sum`, `avg`, `min` and `max` of columns and of arrays, as SQL."""

from __future__ import annotations

from clinker_spark.core import types
from clinker_spark.core.span import Span
from clinker_spark.core.types import BOOL, FLOAT, INT, Kind, Type
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.floatsums import array_sum, filled, or_stop
from clinker_spark.query.lower.base import LoweringBase
from clinker_spark.query.lower.spelling import spark_type
from clinker_spark.query.lower.values import Column, wide, widened
from clinker_spark.query.types import ListType, QType, is_kind, is_number
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import BIGINT, DOUBLE, call, equals, long, marked, marks, there

ZERO = sql.Literal(0.0)


def in_parts(function: str, t: QType) -> bool:
    """Is this aggregate put together of several sums, so that it does not depend on the order of the rows?

    A sum of floats does (decision 0006), and Spark computes the mean of whole numbers from such a sum."""
    return (function == "sum" and is_kind(t, Kind.FLOAT)) or (function == "avg" and is_kind(t, Kind.FLOAT, Kind.INT))


def aggregate_of(
    function: str, column: Column, distinct: bool, lowering: LoweringBase, span: Span, *, empty: bool
) -> Column:
    """`sum`, `avg`, `min` or `max` of a column. `empty` says that there may be no row: the result is then 0."""
    t = column.type
    may_be_empty = empty or t.nullable
    if function in ("sum", "avg") and not is_number(t):
        lowering.no_form(span, f"{function}() of {t:?} has no Spark form")
    if in_parts(function, t):
        return Column(call("coalesce", _in_parts(function, wide(column), t, distinct), ZERO), FLOAT)
    made: sql.Expr = sql.Call(function, (wide(column),), distinct=distinct)
    if function == "avg":
        made = sql.Cast(made, DOUBLE)
        return Column(call("coalesce", made, ZERO) if may_be_empty else made, FLOAT)
    if not is_number(t):
        return Column(made, t.as_nullable() if may_be_empty else t)
    zero = long(0) if is_kind(t, Kind.INT) else ZERO if is_kind(t, Kind.FLOAT) else sql.Literal(0)
    return Column(call("coalesce", made, zero) if may_be_empty else made, widened(t.unwrap()))


def _in_parts(function: str, value: sql.Expr, t: QType, distinct: bool) -> sql.Expr:
    if not distinct:
        core = types.FLOAT if is_kind(t, Kind.FLOAT) else types.INT
        parts = AGGREGATES[function].sql(marks(1), [core])
        if parts.overflow:
            return marked(or_stop(parts.final, parts.overflow, function, parts.partials), value)
        return marked(filled(parts.final, parts.partials), value)
    values = call("collect_set", value)
    if is_kind(t, Kind.FLOAT):
        total = exact_sum(values)
    else:
        wider = sql.Cast(value, sql.Named("DECIMAL(38, 0)"))
        total = sql.Cast(sql.Call("sum", (wider,), distinct=True), DOUBLE)
    if function == "sum":
        return total
    return sql.Binary("/", total, call("nullif", call("size", values), sql.Literal(0)))


def exact_sum(array: sql.Expr) -> sql.Expr:
    """The sum of an array of floats without nulls, which is the same in any order."""
    return marked(array_sum(marks(1)[0]), array)


def array_aggregate(function: str, array: Column, distinct: bool, lowering: LoweringBase, span: Span) -> Column:
    """An aggregate of a list inside a row."""
    assert isinstance(array.type, ListType)
    element = array.type.element
    values = call("array_distinct", array.sql) if distinct else array.sql
    size = call("size", values)
    match function:
        case "count":
            made = sql.Cast(size, BIGINT)
            return Column(call("coalesce", made, long(0)) if array.type.nullable else made, INT)
        case "len":
            return Column(sql.Cast(size, BIGINT), INT.as_nullable() if array.type.nullable else INT)
        case "exists":
            return Column(sql.Binary(">", size, sql.Literal(0)), BOOL)
        case "first":
            return Column(call("get", values, sql.Literal(0)), element.as_nullable())
        case "last":
            return Column(call("try_element_at", values, sql.Literal(-1)), element.as_nullable())
        case "min" | "max":
            found = call(f"array_{function}", values)
            if is_number(element):
                return Column(call("coalesce", found, sql.Literal(0)), widened(element.unwrap()))
            return Column(found, element.as_nullable())
    if not is_number(element):
        lowering.no_form(span, f"{function}() of {element:?} has no Spark form")
    present = call("filter", values, sql.Lambda(("cq_e",), there(sql.Variable("cq_e"))))
    if function == "sum":
        return _array_total(present, element, widened(element.unwrap()))
    exact = Type(Kind.DECIMAL, scale=0) if is_kind(element, Kind.INT) else widened(element.unwrap())
    count = call("size", present)
    mean = sql.Binary("/", sql.Cast(_array_total(present, element, exact).sql, DOUBLE), count)
    return Column(call("IF", equals(count, sql.Literal(0)), ZERO, mean), FLOAT)


def _array_total(array: sql.Expr, element: QType, kind: QType) -> Column:
    """The sum of the numbers of an array without nulls, computed as numbers of a kind."""
    wider = wide(Column(sql.Variable("cq_e"), element))
    if is_kind(element, Kind.FLOAT):
        same = element == widened(element)
        return Column(exact_sum(array if same else call("transform", array, sql.Lambda(("cq_e",), wider))), FLOAT)
    to = spark_type(kind)
    add = sql.Lambda(("cq_a", "cq_e"), sql.Cast(sql.Binary("+", sql.Variable("cq_a"), wider), to))
    return Column(call("aggregate", array, sql.Cast(sql.Literal(0), to), add), kind)
