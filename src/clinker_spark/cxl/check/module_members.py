"""Typecheck, module members: constants and functions are typed anew, and inlined, where they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from clinker_spark.core.span import Span
from clinker_spark.cxl import ir
from clinker_spark.cxl.check.modules import Module
from clinker_spark.cxl.syntax import ast

if TYPE_CHECKING:
    from clinker_spark.cxl.check.infer import Inference


@contextmanager
def bound_name(inference: Inference, name: str, value: ir.TExpr) -> Iterator[None]:
    """A name visible for a while."""
    old = inference.names.get(name)
    inference.names[name] = value
    yield
    if old is None:
        del inference.names[name]
    else:
        inference.names[name] = old


@contextmanager
def inside(inference: Inference, module: Module) -> Iterator[None]:
    """Inside a module only its own names are visible, and findings point into its file."""
    i = inference
    saved = i.names, i.macros, i.modules, i.module_functions, i.source
    i.names, i.macros, i.modules = {}, dict(module.constants), dict(module.imports)
    i.module_functions, i.source = dict(module.functions), module.source
    yield
    i.names, i.macros, i.modules, i.module_functions, i.source = saved


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
        return inference.wrong_arity(e, f"{len(function.params)} arguments")
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
    saved = inference.names
    inference.names = {**saved, **bound}
    body = inference.infer(function.body)
    inference.names = saved
    for slot, arg in reversed(slots):
        # A constant result needs no argument, but an argument that can fail must still be evaluated.
        if arg.fallible or not isinstance(body, ir.Const):
            body = ir.LetIn(span, body.type, body.fallible or arg.fallible, slot, arg, body)
    return replace(body, span=span)
