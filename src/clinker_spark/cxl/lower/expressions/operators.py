"""Lowering the lazy operators, choices, lets and changes of representation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.check.infer.overloads import may_overflow
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.lower.errors import failing
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Failing, Sql, combine
from clinker_spark.cxl.values import DECIMAL_OVERFLOW


def lower_widen(lowering: Lowering, e: ir.Widen) -> Sql:
    sql = lowering.lower(e.arg)
    a, b = e.arg.type, e.type
    if a.kind is Kind.DECIMAL or may_overflow(a, b):
        sql = lowering.builder.bind(sql)
    wide = combine(ph.widen_sql(sql.text, a, b), [sql])
    if not may_overflow(a, b):
        return wide
    when, value = _overflowed(sql.text, a, b), sql_text(sql.text, a)
    own = failing(when, ErrorKind.INTEGER_OVERFLOW, DECIMAL_OVERFLOW, wide.level, value)
    return combine(wide.text, [wide], [own])


def _overflowed(sql: str, a: Type, b: Type) -> str:
    """Is there a decimal in the value that widening would lose?"""
    if a.kind in (Kind.ARRAY, Kind.MAP):
        elements = sql if a.kind is Kind.ARRAY else f"map_values({sql})"
        inner = _overflowed("cxl_e", a.element or ANY, b.element or ANY)
        return f"coalesce(exists({elements}, cxl_e -> {inner}), FALSE)"
    return f"({sql} IS NOT NULL AND {ph.widen_sql(sql, a, b)} IS NULL)"


def lower_narrow(lowering: Lowering, e: ir.Narrow) -> Sql:
    sql = lowering.bound(e.arg)
    return combine(ph.narrow_sql(sql.text, e.type), [sql])


def lower_not(lowering: Lowering, e: ir.Not) -> Sql:
    sql = lowering.lower(e.arg)
    return combine(f"(NOT {sql.text})", [sql])


def lower_logic(lowering: Lowering, e: ir.Logic) -> Sql:
    first, *others = _operands(e)
    if len(others) > 1 and not any(part.fallible for part in others):
        # Spark's parser reads a flat list in a loop, and takes very long for brackets in brackets.
        parts = [lowering.lower(part) for part in (first, *others)]
        return combine("(" + f" {e.op.upper()} ".join(part.text for part in parts) + ")", parts)
    left, right = lowering.lower(e.left), lowering.lower(e.right)
    if right.failures:
        left = lowering.builder.bind(left)
        taken = f"{left.text} IS NOT {'FALSE' if e.op == 'and' else 'TRUE'}"
        right = _guard(right, taken, left.level)
    return combine(f"({left.text} {e.op.upper()} {right.text})", [left, right])


def lower_coalesce(lowering: Lowering, e: ir.Coalesce) -> Sql:
    first, *others = _operands(e)
    if len(others) > 1 and not any(part.fallible for part in others) and not e.type.is_dynamic:
        parts = [lowering.lower(part) for part in (first, *others)]
        return combine(f"coalesce({', '.join(part.text for part in parts)})", parts)
    left, right = lowering.lower(e.left), lowering.lower(e.right)
    if right.failures or e.left.type.is_dynamic:
        left = lowering.builder.bind(left)
    missing = ph.is_null_sql(left.text, e.left.type)
    if right.failures:
        right = _guard(right, missing, left.level)
    if e.left.type.is_dynamic:
        return combine(f"CASE WHEN {missing} THEN {right.text} ELSE {left.text} END", [left, right])
    return combine(f"coalesce({left.text}, {right.text})", [left, right])


def _operands(e: ir.Logic | ir.Coalesce) -> list[ir.TExpr]:
    """What a tree of one lazy operator joins, in order."""
    found: list[ir.TExpr] = []
    waiting: list[ir.TExpr] = [e]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Logic | ir.Coalesce) and _same_operator(node, e):
            waiting += (node.right, node.left)
        else:
            found.append(node)
    return found


def _same_operator(a: ir.Logic | ir.Coalesce, b: ir.Logic | ir.Coalesce) -> bool:
    same = a.op == b.op if isinstance(a, ir.Logic) and isinstance(b, ir.Logic) else type(a) is type(b)
    return same and a.type.is_dynamic == b.type.is_dynamic


def lower_if(lowering: Lowering, e: ir.If) -> Sql:
    conditions = [lowering.lower(condition) for condition in e.conditions]
    values = [lowering.lower(value) for value in (*e.values, e.otherwise)]
    if len(conditions) == 1 and any(value.failures for value in values):
        condition = lowering.builder.bind(conditions[0])
        conditions = [condition]
        values = [
            _guard(values[0], f"{condition.text} IS TRUE", condition.level),
            _guard(values[1], f"{condition.text} IS NOT TRUE", condition.level),
        ]
    elif any(part.failures for part in (*conditions[1:], *values)):
        return _numbered(lowering, conditions, values)
    arms = " ".join(f"WHEN {c.text} THEN {v.text}" for c, v in zip(conditions, values, strict=False))
    return combine(f"CASE {arms} ELSE {values[-1].text} END", [*conditions, *values])


def _numbered(lowering: Lowering, conditions: Sequence[Sql], values: Sequence[Sql]) -> Sql:
    """Branches that can fail, by the number of the one that is taken: so each guard is short."""
    arms = " ".join(f"WHEN {c.text} THEN {i}" for i, c in enumerate(conditions))
    number = combine(f"CASE {arms} ELSE {len(conditions)} END", [c.bare() for c in conditions])
    taken = lowering.builder.bind(number)
    failures: list[Failing] = []
    for i, value in enumerate(values):
        if i < len(conditions):
            reached = _guard(conditions[i], f"{taken.text} >= {i}", taken.level) if i else conditions[i]
            failures += reached.failures
        failures += _guard(value, f"{taken.text} = {i}", taken.level).failures
    arms = " ".join(f"WHEN {i} THEN {v.text}" for i, v in enumerate(values[:-1]))
    text = f"CASE {taken.text} {arms} ELSE {values[-1].text} END"
    return combine(text, [taken, *(v.bare() for v in values)], failures)


def lower_let(lowering: Lowering, e: ir.LetIn) -> Sql:
    value = lowering.bound(e.value)
    lowering.slots[e.slot] = value
    body = lowering.lower(e.body)
    return replace(body, failures=value.failures + body.failures)


def _guard(sql: Sql, guard: str, level: int) -> Sql:
    """Failures only count where the branch is taken."""
    return replace(sql, failures=tuple(f.guarded(guard, level) for f in sql.failures))
