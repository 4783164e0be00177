"""Typing rules of `if` and `match`."""

from __future__ import annotations

from clinker_spark.core.span import Span
from clinker_spark.core.types import NULL
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.operations import boolean, choose, compare
from clinker_spark.cxl.syntax import ast


def infer_if(inference: Inference, e: ast.If) -> ir.TExpr:
    branches: list[tuple[ir.TExpr, ir.TExpr, Span]] = []
    last: ast.Expr | None = e
    while isinstance(last, ast.If):
        condition = boolean(inference, inference.infer(last.condition), "if")
        branches.append((condition, inference.infer(last.then), last.span))
        end, last = last.span, last.otherwise
    typed = ir.Const(end, NULL, False, None) if last is None else inference.infer(last)
    for condition, then, span in reversed(branches):
        typed = choose(condition, then, typed, span)
    return typed


def infer_match(inference: Inference, e: ast.Match) -> ir.TExpr:
    wildcard = next((i for i, arm in enumerate(e.arms) if arm.pattern is None), None)
    if wildcard is None:
        return inference.error(
            "match must have a '_' arm, so that every value is answered", e.span, "add a last arm: _ => null"
        )
    subject = None if e.subject is None else inference.infer(e.subject)
    slot = None
    if subject is not None and not isinstance(subject, ir.Const | ir.Field | ir.Slot):
        slot = inference.new_slot("match")
        bound: ir.TExpr | None = ir.Slot(subject.span, subject.type, False, slot)
    else:
        bound = subject
    typed: list[tuple[ir.TExpr, ir.TExpr]] = []
    for arm in e.arms[:wildcard]:
        assert arm.pattern is not None
        pattern = inference.infer(arm.pattern)
        if bound is None:
            condition = boolean(inference, pattern, "match")
        else:
            condition = compare(inference, "==", bound, pattern, arm.pattern.span)
        typed.append((condition, inference.infer(arm.value)))
    result = inference.infer(e.arms[wildcard].value)
    for condition, value in reversed(typed):
        result = choose(condition, value, result, e.span)
    if slot is None or subject is None or isinstance(result, ir.Const):
        return result
    return ir.LetIn(e.span, result.type, subject.fallible or result.fallible, slot, subject, result)
