"""Lowering calls of builtins: those whose overload is known, and those that choose it on each record."""

from __future__ import annotations

import re
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Nulls
from clinker_spark.cxl.check.infer.overloads import is_safe, literals_of
from clinker_spark.cxl.lower.expressions.chains import long_chain, lower_chain
from clinker_spark.cxl.lower.expressions.templates import filled_call
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Failing, Sql, combine

_PLAIN_KEY = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_CONCAT = "concat({0}, {1})"


def lower_call(lowering: Lowering, e: ir.Call) -> Sql:
    if e.builtin.name == "[]" and isinstance(e.args[0], ir.Narrow) and isinstance(e.args[1], ir.Const):
        return _variant_index(lowering, e.args[0].arg, e.args[1].value)
    if e.overload.sql == _CONCAT and isinstance(e.args[0], ir.Call) and e.args[0].overload is e.overload:
        parts = [lowering.lower(part) for part in _texts(e)]
        return combine(f"concat({', '.join(part.text for part in parts)})", parts)
    if links := long_chain(e):
        return lower_chain(lowering, links)
    args = [lowering.lower(a) for a in e.args]
    types = [a.type for a in e.args]
    safe = is_safe(e.builtin, e.overload, e.args)
    return filled_call(lowering.builder, e.builtin, e.overload, args, types, literals_of(e.args), safe=safe)


def _texts(e: ir.Call) -> list[ir.TExpr]:
    """The texts that are joined by a tree of `+`, in order."""
    found: list[ir.TExpr] = []
    waiting: list[ir.TExpr] = [e]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Call) and node.overload is e.overload:
            waiting += reversed(node.args)
        else:
            found.append(node)
    return found


def _variant_index(lowering: Lowering, target: ir.TExpr, key: Any) -> Sql:
    """A step into a dynamic value: no need to unpack all of it."""
    sql = lowering.lower(target)
    path = _variant_path(key)
    if path is not None:
        return combine(f"try_variant_get({sql.text}, {sql_string(path)}, 'variant')", [sql])
    sql = lowering.builder.bind(sql)
    if not isinstance(key, str):
        return combine("CAST(NULL AS VARIANT)", [sql])
    step = ph.narrow_sql(sql.text, Type(Kind.MAP))
    return combine(f"try_element_at({step}, {sql_string(key)})", [sql])


def _variant_path(key: Any) -> str | None:
    """A key or index in the path language of variants, which has no escapes; None: it cannot say it."""
    if isinstance(key, int):
        return f"$[{key}]" if 0 <= key < 2**31 - 1 else None
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return f"$.{key}"
    if isinstance(key, str) and not set(key) & set("'\"\\[]"):
        return f"$['{key}']"
    return None


def lower_dynamic_call(lowering: Lowering, e: ir.DynamicCall) -> Sql:
    """A CASE over the kinds of the dynamic arguments."""
    if links := long_chain(e):
        return lower_chain(lowering, links)
    args = [lowering.bound(a) for a in e.args]
    arms: list[str] = []
    bare = [a.bare() for a in args]
    parts: list[Sql] = list(bare)
    failures: list[Failing] = [f for a in args for f in a.failures]
    earlier: list[str] = []
    for overload in e.overloads:
        conditions: list[str] = []
        fitted: list[Sql] = []
        types = []
        literals = []
        for arg, sql, param in zip(e.args, args, overload.params, strict=False):
            if arg.type.is_dynamic and param.kind is not Kind.ANY:
                fits = ph.variant_is(ph.kind_sql(sql.text), param.kind)
                # A null goes into every parameter. Where it makes the result null anyway, no overload need be taken.
                sees_null = e.builtin.nulls is not Nulls.PROPAGATE
                conditions.append(f"({ph.is_null_sql(sql.text, arg.type)} OR {fits})" if sees_null else fits)
                fitted.append(combine(ph.get_sql(sql.text, param), [sql.bare()]))
                types.append(param)
                literals.append(NOT_LITERAL)
            else:
                target = arg.type if param.kind in (Kind.ANY, arg.type.kind) else param
                fitted.append(combine(ph.widen_sql(sql.text, arg.type, target), [sql.bare()]))
                types.append(target)
                literals.append(arg.value if isinstance(arg, ir.Const) and target == arg.type else NOT_LITERAL)
        taken = lowering.builder.bind(combine(" AND ".join(conditions) or "TRUE", bare))
        value = filled_call(lowering.builder, e.builtin, overload, fitted, types, literals)
        result_type = overload.result_type(types)
        arms.append(f"WHEN {taken.text} THEN {ph.widen_sql(value.text, result_type, e.type)}")
        guard = " AND ".join([taken.text, *(f"{t} IS NOT TRUE" for t in earlier)])
        failures += [f.guarded(guard, taken.level) for f in value.failures]
        earlier.append(taken.text)
        parts += [taken.bare(), value.bare()]
    return combine(f"CASE {' '.join(arms)} END", parts, failures)
