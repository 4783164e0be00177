"""Typecheck, module members: constants and functions are typed anew, and inlined, where they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from clinker_spark.core.span import Span
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.calls import wrong_arity
from clinker_spark.cxl.check.infer.inference import Inference, Scope, with_lets
from clinker_spark.cxl.check.modules import Module
from clinker_spark.cxl.syntax import ast


@contextmanager
def inside(inference: Inference, module: Module) -> Iterator[None]:
    """Inside a module only its own names are visible, and findings point into its file."""
    saved = inference.scope
    inference.scope = Scope(
        module.source, {}, dict(module.constants), dict(module.imports), functions=dict(module.functions)
    )
    yield
    inference.scope = saved


def module_constant(inference: Inference, module: Module, e: ast.Member) -> ir.TExpr:
    """`m.RATE`."""
    with inside(inference, module):
        typed = inference.infer(module.constants[e.name])
    return replace(typed, span=e.span)


def module_call(inference: Inference, module: Module, e: ast.MethodCall) -> ir.TExpr:
    """`m.gross(x)`: the arguments belong to the caller, the body to the module."""
    args = [inference.infer(a) for a in e.args]
    function = module.functions[e.method]
    if len(args) != len(function.params):
        return wrong_arity(inference, e, f"{len(function.params)} arguments")
    with inside(inference, module):
        return _apply(inference, function, args, e.span)


def sibling_call(inference: Inference, function: ast.FunctionDef, e: ast.Call) -> ir.TExpr:
    """`net(x)` inside the module that declares it."""
    args = [inference.infer(a) for a in e.args]
    if len(args) != len(function.params):
        return inference.error(
            f"function '{function.name}' takes {len(function.params)} arguments, but got {len(args)}", e.span
        )
    return _apply(inference, function, args, e.span)


def _apply(inference: Inference, function: ast.FunctionDef, args: Sequence[ir.TExpr], span: Span) -> ir.TExpr:
    """A function's body with its arguments bound; a costly argument is computed once."""
    bound: dict[str, ir.TExpr] = {}
    slots: list[tuple[str, ir.TExpr]] = []
    for name, arg in zip(function.params, args, strict=True):
        if isinstance(arg, ir.Const | ir.Field | ir.Slot):
            bound[name] = arg
        else:
            slot = inference.new_slot(name)
            slots.append((slot, arg))
            bound[name] = ir.Slot(arg.span, arg.type, False, slot)
    saved = inference.scope.names
    inference.scope.names = {**saved, **bound}
    body = inference.infer(function.body)
    inference.scope.names = saved
    return replace(with_lets(slots, body, span), span=span)
