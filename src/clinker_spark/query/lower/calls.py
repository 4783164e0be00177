"""Calls of CXL's methods and of the free functions, as SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.table import FORMAT_HELP, NOT_LITERAL, PATTERN_HELP
from clinker_spark.cxl.check.overloads import params_for
from clinker_spark.cxl.lower.expressions import sql_template
from clinker_spark.query.failures import Failed
from clinker_spark.query.functions import FUNCTIONS, Function
from clinker_spark.query.lower.conditions import has_element
from clinker_spark.query.lower.guards import Guarding
from clinker_spark.query.lower.patterns import METHODS, pattern_call
from clinker_spark.query.lower.spelling import spark_type
from clinker_spark.query.lower.values import Column, Local, Value, wide, widened
from clinker_spark.query.methods import choose
from clinker_spark.query.types import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    ListType,
    MapType,
    QType,
    RecordType,
    from_core,
    is_kind,
    is_number,
    to_core,
)
from clinker_spark.sql import build
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import BIGINT, all_of, call, equals, holes, marked, never_null, template, there

_HOLE = re.compile(r"\{([0-9]|r)\}")


def call_method(name: str, columns: Sequence[Column], values: Sequence[Value], span: Span, rows: Guarding) -> Column:
    """`receiver.name(args)` by CXL's table. A failing call stops the query with its reason."""
    receiver = columns[0].type
    row = FUNCTIONS.get(name)
    builtin = methods().get(name)
    if row is not None and (builtin is None or isinstance(receiver, ListType | MapType | RecordType)):
        return call_template(row, columns, span, rows)
    if builtin is None:
        raise Failed(f"unknown method '{name}'", span=span, code="E701")
    found = choose(builtin, [c.type for c in columns])
    if found is None or found[1].is_dynamic:
        raise Failed(f".{name}() of {receiver} cannot run on Spark", span=span, code="E708")
    overload, result = found
    params = params_for(overload, len(columns)) or ()
    literals = [v.value if isinstance(v, Local) else NOT_LITERAL for v in values]
    problem = overload.check(literals) if overload.check is not None else None
    if problem is not None:  # of a pattern that is computed; others are checked before
        raise Failed(problem[1], PATTERN_HELP if overload.literal else FORMAT_HELP, span=span)
    types = [to_core(c.type) for c in columns]
    args: list[sql.Expr] = []
    for column, param in zip(columns, params, strict=True):
        different = param.kind is not Kind.ANY and param.kind is not to_core(column.type).kind
        args.append(sql.Cast(column.sql, sql.Named(physical(param))) if different else wide(column))
    text = sql_template(overload, types, literals)
    if text is None and name in METHODS and all(value is not NOT_LITERAL for value in literals[1:]):
        group = None if name != "capture" else int(literals[2]) if len(literals) > 2 else 0
        return Column(pattern_call(name, str(literals[1]), group, args[0]), from_core(result))
    if text is None and overload.literal and any(literals[i] is NOT_LITERAL for i in overload.literal):
        message, help_text = f"the pattern of .{name}() is not known before the query runs", "write it as a text"
        raise Failed(message, help_text, span=span, code="E708")
    if text is None:
        raise Failed(f".{name}() runs in Python, not on Spark: {overload.python_reason}", span=span, code="E708")
    made = marked(text, *args)
    failing = overload.failures and not (overload.safe is not None and overload.safe(literals))
    if failing:
        condition = _failing(made, overload.failures[0].when, args)
        message = f".{name}(): {overload.failures[0].message}"
        if rows.guard is not None:
            made = rows.guard.checked(made, condition, message, columns[0].sql)
        else:
            value = call("coalesce", sql.Cast(columns[0].sql, build.STRING), sql.Literal("null"))
            shown = call("concat", sql.Literal(f"{message}: "), value)
            made = call("IF", condition, call("raise_error", shown), made)
    return Column(made, from_core(result))


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
    special = _special(row.name, columns, rows)
    if special is not None:
        return special
    if row.sql is None or any(isinstance(t, ListType) for t in types):
        raise Failed(f"{row.name}() of {types[0]} cannot run on Spark", span=span, code="E708")
    if holes(row.sql) > len(columns):
        raise Failed(f"{row.name}() needs {holes(row.sql)} arguments on Spark", span=span, code="E708")
    made = template(row.sql, *(wide(c) for c in columns))
    if row.name == "round" and len(columns) == 2:
        made = call("round", wide(columns[0]), sql.Cast(columns[1].sql, build.INT))
    result = widened(row.result_type(types))
    return Column(made, result.as_nullable() if any(t.nullable for t in types) else result)


def _special(name: str, columns: Sequence[Column], rows: Guarding) -> Column | None:
    """Functions whose SQL depends on the type of what they get."""
    t: QType = columns[0].type
    first, *others = [c.sql for c in columns]
    if name in ("str", "string"):
        return _as_text(columns[0])
    if name in ("int", "float") and (is_number(t) or is_kind(t, Kind.STRING)):
        return _as_number(columns[0], INT if name == "int" else FLOAT, name, rows)
    if name == "len" and is_kind(t, Kind.STRING):
        return Column(sql.Cast(call("length", first), BIGINT), INT.as_nullable() if t.nullable else INT)
    if name == "len" and isinstance(t, ListType | MapType):
        return Column(sql.Cast(call("size", first), BIGINT), INT)
    if name == "contains" and is_kind(t, Kind.STRING):
        return Column(never_null(call("contains", first, others[0])), BOOL)
    if name == "contains" and isinstance(t, ListType):
        return Column(has_element(first, others[0]), BOOL)
    if name == "reverse":
        return Column(call("reverse", first), t)
    if name == "concat":
        return Column(call("concat", first, *others), t)
    if name == "join" and isinstance(t, ListType):
        return Column(call("array_join", first, others[0]), STRING)
    if name in ("append", "push") and isinstance(t, ListType):
        return Column(call("array_append", first, others[0]), t)
    if name == "keys" and isinstance(t, MapType):
        return Column(call("map_keys", first), ListType(t.key))
    if name == "values" and isinstance(t, MapType):
        return Column(call("map_values", first), ListType(t.value))
    return None


def _as_text(column: Column) -> Column:
    value, made = column.sql, column.sql
    if not is_kind(column.type, Kind.STRING):
        made = sql.Cast(value, build.STRING)
    if is_kind(column.type, Kind.FLOAT):  # whole floats have no point, as `print` shows them
        small = sql.Binary("<", call("abs", value), sql.Literal(1e15))
        whole = all_of((equals(value, call("floor", value)), small))
        made = call("IF", whole, sql.Cast(sql.Cast(value, BIGINT), build.STRING), made)
    return Column(call("coalesce", made, sql.Literal("null")) if column.type.nullable else made, STRING)


def _as_number(column: Column, to: QType, name: str, rows: Guarding) -> Column:
    made: sql.Expr = sql.Cast(column.sql, spark_type(to))
    if rows.guard is not None and not is_kind(column.type, Kind.INT, Kind.INT if to == INT else Kind.FLOAT):
        made = rows.guard.converted(column, spark_type(to), f"{name}(…)")
    return Column(made, to.as_nullable() if column.type.nullable else to)
