"""The SQL of builtins: templates of their rows in the table, with the arguments put in and the failures attached."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from clinker_spark.core.types import Type
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Nulls, Overload, SqlCall
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.lower.errors import NO_VALUE, failing
from clinker_spark.cxl.lower.plan import Failing, PlanBuilder, Sql, combine

_HOLE = re.compile(r"\{([0-9]|r)\}")
_MARK = re.compile("\x01([0-9]+)\x01")
_FILLED = re.compile("\x01([0-9]+)\x01|\\{r\\}")
_ONCE = re.compile("⟦([^⟧]*)⟧")
_ONCES = re.compile("(⟦[^⟧]*⟧)")


def sql_template(overload: Overload, types: Sequence[Type], literals: Sequence[Any]) -> str | None:
    """The overload's SQL with a mark for each argument; constants are filled in. None: it has no SQL."""
    if overload.sql is None:
        return None
    if isinstance(overload.sql, str):
        return _marked(overload.sql)
    marks = [f"\x01{i}\x01" for i in range(len(types))]
    return overload.sql(SqlCall(marks, literals, [t.unwrap() for t in types]))


def filled_call(
    builder: PlanBuilder,
    builtin: Builtin,
    overload: Overload,
    args: Sequence[Sql],
    types: Sequence[Type],
    literals: Sequence[Any],
    *,
    safe: bool = False,
) -> Sql:
    """One overload with its arguments filled in and, unless it is `safe`, its failures attached."""
    template = sql_template(overload, types, literals)
    assert template is not None, f"{builtin.name} has no SQL for these arguments"
    safe = safe or (overload.safe is not None and overload.safe(literals))
    if builtin.nulls is Nulls.PROPAGATE and any(value is None for value in literals):
        safe = True  # a written null makes the result null before anything can fail
    failures = () if safe else overload.failures
    conditions = [_condition(f, builtin, literals) for f in failures]
    uses = [0] * len(args)
    for text in (template, *conditions):
        for index in _MARK.findall(text):
            if int(index) < len(args):
                uses[int(index)] += 1
    for f in failures:
        if f.value is not None and f.value < len(args):
            uses[f.value] += 1
    shared = [builder.bind(a) if n > 1 else a for a, n in zip(args, uses, strict=True)]
    result = _filled(builder, template, shared)
    if not failures:
        return result
    result = builder.bind(result)
    own = tuple(_failing(f, when, shared, types, result) for f, when in zip(failures, conditions, strict=True))
    return Sql(result.text, result.level, 1, result.failures + own, result.variables, simple=True)


def _marked(template: str) -> str:
    """A written template, with marks that no text of a program can be taken for."""
    return _HOLE.sub(lambda m: "{r}" if m.group(1) == "r" else f"\x01{m.group(1)}\x01", template)


def _filled(builder: PlanBuilder, template: str, args: Sequence[Sql]) -> Sql:
    """The template with its arguments in place, and its marked parts bound to columns of their own.

    Only the template is looked at: the arguments are text of the program, in which anything may stand."""
    parts = list(args)

    def once(match: re.Match[str]) -> str:
        whole = combine("", args)
        made = Sql(_fill(match.group(1), args), whole.level, variables=whole.variables)
        parts.append(builder.bind(made))
        return parts[-1].text

    pieces = [once(m) if (m := _ONCE.fullmatch(piece)) else _fill(piece, args) for piece in _ONCES.split(template)]
    return combine("".join(pieces), parts)


def _condition(f: Failure, builtin: Builtin, literals: Sequence[Any]) -> str:
    """When a call fails, as a template with marks."""
    if f.when:
        return _marked(f.when)
    seen = range(len(literals)) if builtin.nulls is Nulls.PROPAGATE else range(1)
    present = [f"\x01{i}\x01 IS NOT NULL" for i in seen if literals[i] is NOT_LITERAL]
    return " AND ".join(["{r} IS NULL", *present])


def _failing(f: Failure, when: str, args: Sequence[Sql], types: Sequence[Type], result: Sql) -> Failing:
    value = NO_VALUE
    if f.value is not None and f.value < len(args):
        value = sql_text(args[f.value].text, types[f.value])
    return failing(_fill(when, args, result.text), f.kind, f.message, result.level, value)


def _fill(template: str, args: Sequence[Sql], result: str = "") -> str:
    """The template with its arguments in place, and `{r}`, where it stands, as the result."""
    return _FILLED.sub(lambda m: args[int(m.group(1))].text if m.group(1) else result, template)
