"""Typed operands put together: the lazy operators, comparisons and choices, which are in no table of builtins."""

from __future__ import annotations

from clinker_spark.core.span import Span
from clinker_spark.core.types import ANY, BOOL, Kind, unify
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.help import bool_help, coercion_help
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.overloads import narrow, promote, widen
from clinker_spark.cxl.values import holds

COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
_UNORDERED = {Kind.BOOL, Kind.ARRAY, Kind.MAP}


def boolean(inference: Inference, operand: ir.TExpr, where: str) -> ir.TExpr:
    """An operand where only a truth value makes sense."""
    t = operand.type
    if t.kind is Kind.BOOL and not t.is_dynamic:
        return operand
    if t.kind is Kind.NULL:
        return widen(operand, BOOL)
    if t.kind is Kind.ANY or (t.is_dynamic and t.kind is Kind.BOOL):
        inference.use_as(operand, BOOL, operand.span)
        known_null = isinstance(operand, ir.Const) and operand.value is None
        return widen(operand, BOOL) if known_null else narrow(operand, BOOL)
    return inference.error(f"'{where}' needs a Bool, but got {t}", operand.span, bool_help(t))


def logic(inference: Inference, op: str, left: ir.TExpr, right: ir.TExpr, span: Span) -> ir.TExpr:
    """`and`, `or`."""
    left, right = boolean(inference, left, op), boolean(inference, right, op)
    decides = op == "or"
    if isinstance(left, ir.Const) and left.value is decides:
        return left
    if isinstance(left, ir.Const) and left.value is (not decides):
        return right
    t = BOOL.as_nullable() if left.type.nullable or right.type.nullable else BOOL
    return ir.Logic(span, t, left.fallible or right.fallible, op, left, right)


def negation(inference: Inference, operand: ir.TExpr, span: Span) -> ir.TExpr:
    """`not`."""
    checked = boolean(inference, operand, "not")
    if isinstance(checked, ir.Const):
        return ir.Const(span, checked.type, False, None if checked.value is None else not checked.value)
    return ir.Not(span, checked.type, checked.fallible, checked)


def coalesce(left: ir.TExpr, right: ir.TExpr, span: Span) -> ir.TExpr:
    """`left ?? right`, in one type, Any when theirs clash."""
    if isinstance(left, ir.Const) and left.type.kind is not Kind.ANY:
        return right if left.value is None else left
    merged = unify(left.type.unwrap(), right.type) or ANY
    left, right = widen(left, merged), widen(right, merged)
    return ir.Coalesce(span, merged, left.fallible or right.fallible, left, right)


def compare(inference: Inference, op: str, left: ir.TExpr, right: ir.TExpr, span: Span) -> ir.TExpr:
    """A comparison. Equality is never null; an ordering is null when a side is."""
    equality = op in ("==", "!=")
    if left.type.is_dynamic or right.type.is_dynamic:
        if unify(left.type, right.type) is None:
            return _incomparable(inference, op, left, right, span)
        inference.use_as(left, right.type, span)
        inference.use_as(right, left.type, span)
    else:
        pair = promote(left, right)
        if pair is None or (not equality and _UNORDERED & {left.type.kind, right.type.kind}):
            return _incomparable(inference, op, left, right, span)
        left, right = pair
    nullable = not equality and any(side.type.nullable or side.type.kind is Kind.NULL for side in (left, right))
    t = BOOL.as_nullable() if nullable else BOOL
    if isinstance(left, ir.Const) and isinstance(right, ir.Const):
        return ir.Const(span, t, False, holds(op, left.value, right.value))
    return ir.Compare(span, t, left.fallible or right.fallible, op, left, right)


def _incomparable(inference: Inference, op: str, left: ir.TExpr, right: ir.TExpr, span: Span) -> ir.TExpr:
    how = "for equality" if op in ("==", "!=") else "with an ordering operator"
    help_text = coercion_help(left.type, right.type)
    return inference.error(f"cannot compare {left.type} and {right.type} {how}", span, help_text)


def choose(condition: ir.TExpr, then: ir.TExpr, otherwise: ir.TExpr, span: Span) -> ir.TExpr:
    """`if`: the branches in one type, Any when theirs clash."""
    merged = unify(then.type, otherwise.type) or ANY
    then, otherwise = widen(then, merged), widen(otherwise, merged)
    if isinstance(condition, ir.Const) and condition.type.kind is not Kind.ANY:
        return then if condition.value is True else otherwise
    fallible = condition.fallible or then.fallible or otherwise.fallible
    if not isinstance(otherwise, ir.If):
        return ir.If(span, merged, fallible, (condition,), (then,), otherwise)
    conditions, values = (condition, *otherwise.conditions), (then, *otherwise.values)
    return ir.If(span, merged, fallible, conditions, values, otherwise.otherwise)
