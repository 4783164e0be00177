"""The calls that run in Python: which, why, and how they are cut out of the SQL.

Catalyst has no expression for a few operations (each row of the builtin table says why). Such a call is
evaluated by the interpreter in Arrow batches, as a column of its own; its arguments stay native. A closure
whose body holds such a call moves to Python as a whole, because a lambda cannot call out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import all_builtins
from clinker_spark.cxl.builtins.table import NOT_LITERAL
from clinker_spark.cxl.check.infer.overloads import literals_of
from clinker_spark.cxl.hidden import PYTHON_PREFIX
from clinker_spark.cxl.lower.errors import passed_on, passed_on_whole
from clinker_spark.cxl.lower.expressions.templates import sql_template
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import PythonColumn, Sql

BLOCK_REASON = "the emit each block holds a call without a Spark expression"
CLOSURE_REASON = "the closure holds a call without a Spark expression"


def python_operations() -> list[tuple[str, str]]:
    """Every builtin that may run in Python, and why: the one list of them."""
    found: dict[str, str] = {}
    for builtin in all_builtins():
        for overload in builtin.overloads:
            if overload.python_reason:
                found.setdefault(builtin.name, overload.python_reason)
    return list(found.items())


def python_reason(e: ir.TExpr) -> str | None:
    """Why this node itself must run in Python, or None when it has a Spark expression."""
    if isinstance(e, ir.Call):
        return _call_reason(e)
    if isinstance(e, ir.DynamicCall):
        return _dynamic_reason(e)
    if isinstance(e, ir.FanOut):
        return BLOCK_REASON
    if isinstance(e, ir.HigherOrder):
        return CLOSURE_REASON if any(python_reason(n) for n in e.body.walk()) else None
    if isinstance(e, ir.Comprehend):
        inner = (e.value,) if e.condition is None else (e.value, e.condition)
        return CLOSURE_REASON if any(python_reason(n) for part in inner for n in part.walk()) else None
    return None


def _call_reason(e: ir.Call) -> str | None:
    if not e.overload.python_reason and e.overload.sql is not None:
        return None
    if sql_template(e.overload, [a.type for a in e.args], literals_of(e.args)) is not None:
        return None
    return f"{e.builtin.name}: {e.overload.python_reason}"


def _dynamic_reason(e: ir.DynamicCall) -> str | None:
    for overload in e.overloads:
        types = [p if a.type.is_dynamic else a.type for p, a in zip(overload.params, e.args, strict=False)]
        if sql_template(overload, types, [NOT_LITERAL] * len(e.args)) is None:
            return f"{e.builtin.name}: {overload.python_reason}"
    return None


def lower_in_python(lowering: Lowering, e: ir.TExpr) -> Sql:
    """The node as a Python column: its inputs lowered natively, its errors passed on."""
    reason = python_reason(e)
    assert reason is not None
    inputs: list[tuple[str, Sql, ir.TExpr]] = []

    def cut(part: ir.TExpr) -> ir.TExpr:
        slot = f"py#{len(inputs)}"
        inputs.append((slot, lowering.bound(part), part))
        return ir.Slot(part.span, part.type, False, slot)

    if isinstance(e, ir.Call | ir.DynamicCall):
        args = tuple(a if isinstance(a, ir.Const) else cut(a) for a in e.args)
        expression: ir.TExpr = replace(e, args=args)
    else:
        expression = _cut_free(e, ir.filled_slots(e), cut)
    level = max((sql.level for _, sql, _ in inputs), default=0)
    name = lowering.builder.fresh(PYTHON_PREFIX)
    column = PythonColumn(name, expression, tuple((s, sql.text, part.type) for s, sql, part in inputs), reason)
    made = lowering.builder.python(column, level)
    failures = tuple(f for _, sql, _ in inputs for f in sql.failures)
    pass_on = passed_on_whole if isinstance(e, ir.FanOut) else passed_on
    own = pass_on(f"{made.text}.error", made.level) if e.fallible else None
    return Sql(f"{made.text}.value", made.level, 1, failures + ((own,) if own else ()), frozenset(), simple=True)


def _cut_free(node: Any, own: frozenset[str], cut: Callable[[ir.TExpr], ir.TExpr]) -> Any:
    """The tree with every reference to something outside of it cut out."""
    if isinstance(node, ir.Field | ir.SystemRef) or (isinstance(node, ir.Slot) and node.slot not in own):
        return cut(node)
    return node.with_children(lambda part: _cut_free(part, own, cut))
