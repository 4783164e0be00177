"""The typing rules: every kind of expression gets its type, its overload and its changes of representation."""

from __future__ import annotations

from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.branches import infer_if, infer_match
from clinker_spark.cxl.check.infer.calls import operate
from clinker_spark.cxl.check.infer.chains import infer_binary, infer_chain
from clinker_spark.cxl.check.infer.closures import infer_closure, infer_comprehension
from clinker_spark.cxl.check.infer.groups import aggregate_call, window_call
from clinker_spark.cxl.check.infer.inference import Inference, Rules
from clinker_spark.cxl.check.infer.literals import infer_array, infer_literal, infer_map
from clinker_spark.cxl.check.infer.module_members import sibling_call
from clinker_spark.cxl.check.infer.names import infer_name, infer_now, infer_system
from clinker_spark.cxl.check.infer.operations import negation
from clinker_spark.cxl.syntax import ast


def _call(inference: Inference, e: ast.Call) -> ir.TExpr:
    function = inference.scope.functions.get(e.function)
    return aggregate_call(inference, e) if function is None else sibling_call(inference, function, e)


def _unary(inference: Inference, e: ast.Unary) -> ir.TExpr:
    operand = inference.infer(e.operand)
    if e.op == "not":
        return negation(inference, operand, e.span)
    return operate(inference, "negate", (operand,), e.span)


RULES: Rules = {
    ast.Literal: infer_literal,
    ast.Name: infer_name,
    ast.Now: infer_now,
    ast.SystemVar: infer_system,
    ast.Member: infer_chain,
    ast.Index: infer_chain,
    ast.MethodCall: infer_chain,
    ast.Binary: infer_binary,
    ast.Unary: _unary,
    ast.If: infer_if,
    ast.Match: infer_match,
    ast.ArrayLiteral: infer_array,
    ast.MapLiteral: infer_map,
    ast.Comprehension: infer_comprehension,
    ast.Closure: infer_closure,
    ast.Call: _call,
    ast.WindowCall: window_call,
}
