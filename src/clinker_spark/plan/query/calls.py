"""Calls of CXL's methods and of the free functions, as SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins import methods
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.table import FORMAT_HELP, NOT_LITERAL, PATTERN_HELP
from clinker_spark.cxl.check.overloads import params_for
from clinker_spark.cxl.lower.templates import sql_template
from clinker_spark.plan.query.guards import Guarding
from clinker_spark.plan.query.literals import ddl
from clinker_spark.plan.query.patterns import METHODS, pattern_function
from clinker_spark.plan.query.values import Column, Local, Value, wide, widened
from clinker_spark.query.failures import Failed
from clinker_spark.query.functions import FUNCTIONS, Function
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

_MARK = re.compile("\x01([0-9]+)\x01|[⟦⟧]")
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
    args = []
    for column, param in zip(columns, params, strict=True):
        different = param.kind is not Kind.ANY and param.kind is not to_core(column.type).kind
        args.append(f"CAST({column.text} AS {physical(param)})" if different else wide(column))
    template = sql_template(overload, types, literals)
    if template is None and name in METHODS and all(value is not NOT_LITERAL for value in literals[1:]):
        group = None if name != "capture" else int(literals[2]) if len(literals) > 2 else 0
        function = pattern_function(name, str(literals[1]), group)
        return Column(f"{function}({args[0]})", from_core(result))
    if template is None and overload.literal and any(literals[i] is NOT_LITERAL for i in overload.literal):
        message, help_text = f"the pattern of .{name}() is not known before the query runs", "write it as a text"
        raise Failed(message, help_text, span=span, code="E708")
    if template is None:
        raise Failed(f".{name}() runs in Python, not on Spark: {overload.python_reason}", span=span, code="E708")
    text = _fill(template, args)
    failing = overload.failures and not (overload.safe is not None and overload.safe(literals))
    if failing:
        when = _failing(text, overload.failures[0].when, args)
        message = f".{name}(): {overload.failures[0].message}"
        if rows.guard is not None:
            text = rows.guard.checked(text, when, message, columns[0].text)
        else:
            shown = f"concat({sql_string(f'{message}: ')}, coalesce(CAST({columns[0].text} AS STRING), 'null'))"
            text = f"IF({when}, raise_error({shown}), {text})"
    return Column(text, from_core(result))


def _fill(template: str, args: Sequence[str]) -> str:
    """The template with its arguments in place. They are text of the program: nothing is looked for in them."""
    return _MARK.sub(lambda m: args[int(m.group(1))] if m.group(1) else "", template)


def _failing(text: str, when: str, args: Sequence[str]) -> str:
    """The condition under which a call has no value."""
    if when:
        return _HOLE.sub(lambda m: f"({text})" if m.group(1) == "r" else args[int(m.group(1))], when)
    return " AND ".join([*(f"{a} IS NOT NULL" for a in args), f"({text}) IS NULL"])


def call_template(row: Function, columns: Sequence[Column], span: Span, rows: Guarding) -> Column:
    """A free function of scalar arguments."""
    types = [c.type for c in columns]
    special = _special(row.name, columns, rows)
    if special is not None:
        return special
    if row.sql is None or any(isinstance(t, ListType) for t in types):
        raise Failed(f"{row.name}() of {types[0]} cannot run on Spark", span=span, code="E708")
    highest = max(int(i) for i in _HOLE.findall(row.sql))
    if highest >= len(columns):
        raise Failed(f"{row.name}() needs {highest + 1} arguments on Spark", span=span, code="E708")
    text = _HOLE.sub(lambda m: wide(columns[int(m.group(1))]), row.sql)
    if row.name == "round" and len(columns) == 2:
        text = f"round({wide(columns[0])}, CAST({columns[1].text} AS INT))"
    result = widened(row.result_type(types))
    return Column(text, result.as_nullable() if any(t.nullable for t in types) else result)


def _special(name: str, columns: Sequence[Column], rows: Guarding) -> Column | None:
    """Functions whose SQL depends on the type of what they get."""
    first = columns[0]
    t: QType = first.type
    if name in ("str", "string"):
        text = first.text
        if is_kind(t, Kind.FLOAT):  # whole floats have no point, as `print` shows them
            whole = f"{text} = floor({text}) AND abs({text}) < 1e15"
            text = f"IF({whole}, CAST(CAST({text} AS BIGINT) AS STRING), CAST({text} AS STRING))"
        elif not is_kind(t, Kind.STRING):
            text = f"CAST({text} AS STRING)"
        return Column(f"coalesce({text}, 'null')" if t.nullable else text, STRING)
    if name in ("int", "float") and (is_number(t) or is_kind(t, Kind.STRING)):
        to = INT if name == "int" else FLOAT
        text = f"CAST({first.text} AS {ddl(to)})"
        if rows.guard is not None and not is_kind(t, Kind.INT, to.kind):
            text = rows.guard.converted(first, ddl(to), f"{name}(…)")
        return Column(text, to.as_nullable() if t.nullable else to)
    if name == "len" and is_kind(t, Kind.STRING):
        return Column(f"CAST(length({first.text}) AS BIGINT)", INT.as_nullable() if t.nullable else INT)
    if name == "len" and isinstance(t, ListType | MapType):
        return Column(f"CAST(size({first.text}) AS BIGINT)", INT)
    if name == "contains" and is_kind(t, Kind.STRING):
        return Column(f"coalesce(contains({first.text}, {columns[1].text}), FALSE)", BOOL)
    if name == "contains" and isinstance(t, ListType):
        return Column(f"coalesce(exists({first.text}, cq_i -> cq_i <=> {columns[1].text}), FALSE)", BOOL)
    if name == "reverse":
        return Column(f"reverse({first.text})", t)
    if name == "concat":
        return Column(f"concat({', '.join(c.text for c in columns)})", t)
    if name == "join" and isinstance(t, ListType):
        return Column(f"array_join({first.text}, {columns[1].text})", STRING)
    if name in ("append", "push") and isinstance(t, ListType):
        return Column(f"array_append({first.text}, {columns[1].text})", t)
    if name == "keys" and isinstance(t, MapType):
        return Column(f"map_keys({first.text})", ListType(t.key))
    if name == "values" and isinstance(t, MapType):
        return Column(f"map_values({first.text})", ListType(t.value))
    return None
