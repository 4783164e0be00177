"""Lowering calls whose overload is chosen on each record: a CASE over the kinds of the dynamic arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinker_spark.core.types import Kind
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Nulls
from clinker_spark.cxl.lower.plan import Failing, Sql, combine

if TYPE_CHECKING:
    from clinker_spark.cxl.lower.expressions import Lowering


def lower_dynamic_call(lowering: Lowering, e: ir.DynamicCall) -> Sql:
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
        value = lowering.call(e.builtin, overload, fitted, types, literals)
        result_type = overload.result_type(types)
        arms.append(f"WHEN {taken.text} THEN {ph.widen_sql(value.text, result_type, e.type)}")
        guard = " AND ".join([taken.text, *(f"{t} IS NOT TRUE" for t in earlier)])
        failures += [f.guarded(guard, taken.level) for f in value.failures]
        earlier.append(taken.text)
        parts += [taken.bare(), value.bare()]
    return combine(f"CASE {' '.join(arms)} END", parts, failures)
