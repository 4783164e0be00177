"""Typing rules of calls: the builtin's signature is chosen by the types of the arguments."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.core.span import Span
from clinker_spark.core.types import NUMERIC
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import methods, operators
from clinker_spark.cxl.builtins.families.collections import HIGHER_ORDER
from clinker_spark.cxl.builtins.table import FORMAT_HELP, NOT_LITERAL, PATTERN_HELP, Builtin, Overload
from clinker_spark.cxl.check.infer import overloads
from clinker_spark.cxl.check.infer.closures import infer_higher_order
from clinker_spark.cxl.check.infer.help import coercion_help, conversion_help
from clinker_spark.cxl.check.infer.inference import Inference
from clinker_spark.cxl.check.infer.operations import coalesce
from clinker_spark.cxl.syntax import ast


def infer_method(inference: Inference, e: ast.MethodCall, receiver: ir.TExpr) -> ir.TExpr:
    """`receiver.method(args)`."""
    closure = any(isinstance(a, ast.Closure) for a in e.args)
    if e.method in HIGHER_ORDER and (closure or e.method not in methods()):
        return infer_higher_order(inference, e, receiver)
    args = [inference.infer(a) for a in e.args]
    if e.method == "catch":
        if len(args) != 1:
            return wrong_arity(inference, e, "1 argument")
        return coalesce(receiver, args[0], e.span)
    return _call(inference, methods()[e.method], (receiver, *args), e.span, call=e)


def operate(inference: Inference, symbol: str, args: Sequence[ir.TExpr], span: Span) -> ir.TExpr:
    """An operator of the builtin table over typed operands."""
    return _call(inference, operators()[symbol], args, span)


def wrong_arity(inference: Inference, e: ast.MethodCall, expected: str) -> ir.TExpr:
    return inference.error(f"method '{e.method}' takes {expected}, but got {len(e.args)}", e.span, None)


def _call(
    inference: Inference, builtin: Builtin, args: Sequence[ir.TExpr], span: Span, call: ast.MethodCall | None = None
) -> ir.TExpr:
    arity_fits = any(overloads.params_for(o, len(args)) is not None for o in builtin.overloads)
    if call is not None and not arity_fits:
        return wrong_arity(inference, call, overloads.arity_text(builtin))
    found = overloads.candidates(builtin, args)
    if not found:
        if call is None:
            return _operator_mismatch(inference, builtin, args, span)
        return _method_mismatch(inference, builtin, args, call)
    for position, arg in enumerate(args):
        wanted = {NUMERIC if f[2][position].is_numeric else f[2][position] for f in found}
        if len(wanted) == 1:
            inference.use_as(arg, wanted.pop(), arg.span)
    problem = None if call is None else _check_literals(inference, found[0][1], args, call)
    return problem or overloads.make_call(builtin, args, span, found)


def _check_literals(
    inference: Inference, overload: Overload, args: Sequence[ir.TExpr], call: ast.MethodCall
) -> ir.TExpr | None:
    literals = overloads.literals_of(args)
    for position in sorted(overload.literal):
        literal = literals[position] if position < len(args) else ""
        if literal is NOT_LITERAL or literal is None:
            return inference.error(
                f"argument {position} of '{call.method}' must be a literal",
                args[position].span,
                "write the pattern as a string in quotes, so that it can be checked before the run",
            )
    problem = None if overload.check is None else overload.check(literals)
    if problem is None:
        return None
    return inference.error(problem[1], args[problem[0]].span, PATTERN_HELP if overload.literal else FORMAT_HELP)


def _operator_mismatch(inference: Inference, builtin: Builtin, args: Sequence[ir.TExpr], span: Span) -> ir.TExpr:
    if builtin.name == "[]":
        return inference.error(
            f"cannot index {args[0].type} with {args[1].type}", span, "arrays take an Int, maps a String key"
        )
    symbol = "-" if builtin.name == "negate" else builtin.name
    types = " and ".join(str(a.type) for a in args)
    help_text = coercion_help(args[0].type, args[-1].type) if len(args) == 2 else None
    return inference.error(f"cannot apply '{symbol}' to {types}", span, help_text)


def _method_mismatch(
    inference: Inference, builtin: Builtin, args: Sequence[ir.TExpr], call: ast.MethodCall
) -> ir.TExpr:
    position, expected = overloads.describe_mismatch(builtin, args) or (0, "another type")
    got = args[position].type
    if position == 0:
        message = f"method '{builtin.name}' expects a {expected} receiver, but got {got}"
        return inference.error(message, call.receiver.span, conversion_help(expected))
    message = f"argument {position} of '{builtin.name}' expects {expected}, but got {got}"
    return inference.error(message, args[position].span, conversion_help(expected))
