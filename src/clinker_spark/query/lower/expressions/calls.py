"""Calls of CXL's methods and of the free functions, as SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.core.types import BOOL, FLOAT, INT, STRING, Kind, Type
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.table import FORMAT_HELP, NOT_LITERAL, PATTERN_HELP, Overload
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.check.infer.overloads import params_for
from clinker_spark.cxl.lower.expressions.templates import sql_template
from clinker_spark.query.failures import Failed
from clinker_spark.query.functions import FUNCTIONS, Function
from clinker_spark.query.lower.expressions.conditions import has_element
from clinker_spark.query.lower.expressions.patterns import METHODS, pattern_call
from clinker_spark.query.lower.guards import Guarding, finite
from clinker_spark.query.lower.spelling import spark_type
from clinker_spark.query.lower.values import Column, Local, Value, wide
from clinker_spark.query.methods import choose, method
from clinker_spark.query.types import (
    ListType,
    MapType,
    QType,
    RecordType,
    from_core,
    is_any,
    is_kind,
    is_null,
    is_number,
    to_core,
)
from clinker_spark.sql import build
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import (
    BIGINT,
    all_of,
    any_of,
    call,
    equals,
    marked,
    marks,
    negated,
    never_null,
    template,
    there,
    when,
)

_HOLE = re.compile(r"\{([0-9]|r)\}")


def call_method(name: str, columns: Sequence[Column], values: Sequence[Value], span: Span, rows: Guarding) -> Column:
    """`receiver.name(args)` by CXL's table. A failing call stops the query with its reason."""
    receiver = columns[0].type
    row = FUNCTIONS.get(name)
    builtin = method(name)
    if row is not None and (builtin is None or isinstance(receiver, ListType | MapType | RecordType)):
        return call_template(row, columns, span, rows)
    if builtin is None:
        raise Failed(f"unknown method '{name}'", span=span, code="E701")
    found = choose(builtin, [c.type for c in columns])
    if found is None or found[1].is_dynamic:
        raise Failed(f".{name}() of {receiver:?} cannot run on Spark", span=span, code="E708")
    overload, result = found
    params = params_for(overload, len(columns)) or ()
    literals = [v.value if isinstance(v, Local) else NOT_LITERAL for v in values]
    problem = overload.check(literals) if overload.check is not None else None
    if problem is not None:  # of a pattern that is computed; others are checked before
        raise Failed(problem[1], PATTERN_HELP if overload.literal else FORMAT_HELP, span=span)
    args = [_as_declared(column, param) for column, param in zip(columns, params, strict=True)]
    text = sql_template(overload, [to_core(c.type) for c in columns], literals)
    if text is None:
        return Column(_without_template(name, overload, literals, args, span), from_core(result))
    made = marked(text, *args)
    if overload.failures and not (overload.safe is not None and overload.safe(literals)):
        condition = _failing(made, overload.failures[0].when, args)
        message = f".{name}(): {overload.failures[0].message}"
        made = _or_stop(made, condition, message, columns[0].sql, rows)
    return Column(made, from_core(result))


def _as_declared(column: Column, param: Type) -> sql.Expr:
    """An argument as the type that the builtin's SQL is written for."""
    different = param.kind is not Kind.ANY and param.kind is not to_core(column.type).kind
    return sql.Cast(column.sql, sql.Named(physical(param))) if different else wide(column)


def _without_template(
    name: str, overload: Overload, literals: Sequence[Any], args: Sequence[sql.Expr], span: Span
) -> sql.Expr:
    """A call that has no SQL of its own: of a pattern that RE2 runs, or none that Spark can do."""
    if name in METHODS and all(value is not NOT_LITERAL for value in literals[1:]):
        group = None if name != "capture" else int(literals[2]) if len(literals) > 2 else 0
        return pattern_call(name, str(literals[1]), group, args[0])
    if overload.literal and any(literals[i] is NOT_LITERAL for i in overload.literal):
        message, help_text = f"the pattern of .{name}() is not known before the query runs", "write it as a text"
        raise Failed(message, help_text, span=span, code="E708")
    raise Failed(f".{name}() runs in Python, not on Spark: {overload.python_reason}", span=span, code="E708")


def _or_stop(made: sql.Expr, condition: sql.Expr, message: str, value: sql.Expr, rows: Guarding) -> sql.Expr:
    """A value that ends the query, or diverts the record, on a condition."""
    if rows.guard is not None:
        return rows.guard.checked(made, condition, message, value)
    shown = call("coalesce", sql.Cast(value, build.STRING), sql.Literal("null"))
    return call("IF", condition, call("raise_error", call("concat", sql.Literal(f"{message}: "), shown)), made)


def _failing(made: sql.Expr, condition: str, args: Sequence[sql.Expr]) -> sql.Expr:
    """The condition under which a call has no value: a template in which `{r}` is the value."""
    value = sql.Fragment(("(", made, ")"))
    if not condition:
        return all_of([*(there(a) for a in args), sql.IsNull(value)])
    pieces = enumerate(_HOLE.split(condition))
    return sql.Fragment(tuple((value if p == "r" else args[int(p)]) if i % 2 else p for i, p in pieces))


def call_template(row: Function, columns: Sequence[Column], span: Span, rows: Guarding) -> Column:
    """A free function of scalar arguments."""
    types = [c.type for c in columns]
    nullable = any(t.nullable for t in types)
    special = _special(row.name, columns, rows)
    if special is not None:
        return special
    if row.sql is None or not all(is_number(t) for t in types):
        raise Failed(f"{row.name}() of {types[0]:?} cannot run on Spark", span=span, code="E708")
    args = [c.sql if is_kind(c.type, Kind.FLOAT) else sql.Cast(c.sql, build.DOUBLE) for c in columns]
    made = template(row.sql, *args)
    lost = all_of([*(never_null(finite(arg)) for arg in args), negated(never_null(finite(made)))])
    made = _or_stop(made, lost, f"{row.name}(): there is no such number", columns[0].sql, rows)
    return Column(made, FLOAT.as_nullable() if nullable else FLOAT)


def _special(name: str, columns: Sequence[Column], rows: Guarding) -> Column | None:
    """Functions whose SQL depends on the type of what they get."""
    t: QType = columns[0].type
    first, *others = [c.sql for c in columns]
    whole = INT.as_nullable() if t.nullable else INT
    match name:
        case "str" | "string":
            made = text_of(columns[0])
            return Column(call("coalesce", made, sql.Literal("null")) if t.nullable else made, STRING)
        case "int" | "float" if is_number(t) or is_kind(t, Kind.STRING):
            return _as_number(columns[0], INT if name == "int" else FLOAT, name, rows)
        case "len" if is_kind(t, Kind.STRING):
            return Column(sql.Cast(call("length", first), BIGINT), whole)
        case "len" if isinstance(t, ListType | MapType):
            return Column(sql.Cast(call("size", first), BIGINT), whole)
        case "contains" if is_kind(t, Kind.STRING):
            return Column(never_null(call("contains", first, others[0])), BOOL)
        case "contains" if isinstance(t, ListType):
            return Column(has_element(first, others[0]), BOOL)
        case "substring" if is_kind(t, Kind.STRING):
            return Column(_between(first, *others), STRING.as_nullable() if t.nullable else STRING)
        case "reverse":
            return Column(call("reverse", first), t)
        case "concat" if any(is_kind(c.type, Kind.STRING) for c in columns):
            nullable = any(c.type.nullable for c in columns)
            return Column(call("concat", *map(text_of, columns)), STRING.as_nullable() if nullable else STRING)
        case "concat":
            return Column(call("concat", first, *others), t)
        case "join" if isinstance(t, ListType):
            shown = text_of(Column(sql.Variable("cq_t"), t.element))
            texts = call("transform", first, sql.Lambda(("cq_t",), shown))
            return Column(call("array_join", texts, others[0], sql.Literal("null")), STRING)
        case "append" | "push" if isinstance(t, ListType):
            return Column(call("array_append", first, others[0]), t)
        case "keys" if isinstance(t, MapType):
            return Column(call("map_keys", first), ListType(t.key))
        case "values" if isinstance(t, MapType):
            return Column(call("map_values", first), ListType(t.value))
    return None


def _between(text: sql.Expr, start: sql.Expr, end: sql.Expr) -> sql.Expr:
    """A text from one position up to another; those below 0 count from the end."""
    first, last = (_position(text, sql.Cast(e, build.INT)) for e in (start, end))
    first = call("greatest", first, sql.Literal(0)) if not isinstance(first, sql.Cast) else first
    length = call("greatest", sql.Binary("-", last, first), sql.Literal(0))
    return call("substring", text, sql.Binary("+", first, sql.Literal(1)), length)


def _position(text: sql.Expr, place: sql.Cast) -> sql.Expr:
    written = build.written_number(place.value)
    if written is not None and written >= 0:
        return place
    return call("IF", sql.Binary("<", place, sql.Literal(0)), sql.Binary("+", place, call("length", text)), place)


def text_of(column: Column) -> sql.Expr:
    """A value as `print` shows it."""
    value, t = column.sql, column.type
    if is_kind(t, Kind.STRING):
        return value
    if not isinstance(t, Type) or is_any(t) or is_null(t):
        return sql.Cast(value, build.STRING)
    text = marked(sql_text(marks(1)[0], to_core(t.unwrap())), wide(column))
    if not is_kind(t, Kind.FLOAT):
        return text
    # Very large and very small numbers have an exponent, which CXL does not write.
    size = call("abs", wide(column))
    usual = all_of((sql.Binary(">=", size, sql.Literal(1e-4)), sql.Binary("<", size, sql.Literal(1e21))))
    return when(any_of((usual, equals(size, sql.Literal(0.0)))), text, sql.Cast(value, build.STRING))


def _as_number(column: Column, to: QType, name: str, rows: Guarding) -> Column:
    made: sql.Expr = sql.Cast(column.sql, spark_type(to))
    if rows.guard is not None and not is_kind(column.type, Kind.INT, Kind.INT if to == INT else Kind.FLOAT):
        made = rows.guard.converted(column, spark_type(to), f"{name}(…)")
    return Column(made, to.as_nullable() if column.type.nullable else to)
