"""Typing rules of chains: what grows to the left by operators, calls and steps (`a + b + c`, `x.f().g`).

A long chain becomes a sequence of lets, so that no tree is as deep as a chain is long: the first operand is always
evaluated first, which is what a let does. Long chains of `and`, `or` and `??` become balanced trees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clinker_spark.cxl import ir
from clinker_spark.cxl.check.infer.calls import infer_method, operate
from clinker_spark.cxl.check.infer.inference import Inference, with_lets
from clinker_spark.cxl.check.infer.module_members import module_call
from clinker_spark.cxl.check.infer.names import infer_special, infer_step, is_special
from clinker_spark.cxl.check.infer.operations import COMPARISONS, coalesce, compare, logic
from clinker_spark.cxl.syntax import ast

CHAIN_CUT = 50
"""Links of a chain that become one tree."""
BALANCED = 8
"""Operands of `and`, `or` and `??` from which on they are grouped evenly."""


def infer_chain(inference: Inference, e: ast.Expr) -> ir.TExpr:
    """A chain, from its first operand on."""
    links: list[ast.Expr] = []
    inner = e
    while (first := _first_operand(inference, inner)) is not None:
        links.append(inner)
        inner = first
    typed = _leaf(inference, inner)
    if len(links) == 1:
        return _link(inference, links[0], typed)
    links.reverse()
    lets: list[tuple[str, ir.TExpr]] = []
    height = 0
    i = 0
    while i < len(links):
        height += 1
        if len(alike := _alike(links, i)) > 1:
            typed = _long_logic(inference, typed, alike)
            i += len(alike)
            continue
        typed = _link(inference, links[i], typed)
        i += 1
        if height >= CHAIN_CUT and i < len(links) and not isinstance(typed, ir.Const | ir.Field | ir.Slot):
            slot = inference.new_slot("chain")
            lets.append((slot, typed))
            typed = ir.Slot(typed.span, typed.type, False, slot)
            height = 0
    return with_lets(lets, typed, e.span)


def infer_binary(inference: Inference, e: ast.Binary) -> ir.TExpr:
    return _coalesced(inference, e) if e.op == "??" else infer_chain(inference, e)


def _first_operand(inference: Inference, e: ast.Expr) -> ast.Expr | None:
    """What an operator, a call or a step is applied to; None where something else begins."""
    match e:
        case ast.Binary():
            return None if e.op == "??" else e.left
        case ast.MethodCall():
            first = e.receiver
            if (
                isinstance(first, ast.Name)
                and first.name in inference.scope.modules
                and first.name not in inference.scope.names
            ):
                return None
            return first
        case ast.Member():
            return None if is_special(inference, e) else e.target
        case ast.Index():
            return e.target
    return None


def _leaf(inference: Inference, e: ast.Expr) -> ir.TExpr:
    match e:
        case ast.Member():
            return infer_special(inference, e)
        case ast.MethodCall():
            return module_call(inference, inference.scope.modules[e.receiver.name], e)  # type: ignore[attr-defined]
    return inference.infer(e)


def _link(inference: Inference, e: ast.Expr, first: ir.TExpr) -> ir.TExpr:
    """One link of a chain over what comes before it."""
    match e:
        case ast.Binary():
            right = inference.infer(e.right)
            if e.op in ("and", "or"):
                return logic(inference, e.op, first, right, e.span)
            if e.op in COMPARISONS:
                return compare(inference, e.op, first, right, e.span)
            return operate(inference, e.op, (first, right), e.span)
        case ast.MethodCall():
            return infer_method(inference, e, first)
        case ast.Index():
            return operate(inference, "[]", (first, inference.infer(e.index)), e.span)
        case ast.Member():
            return infer_step(inference, e, first)
    raise AssertionError(e)


def _alike(links: Sequence[ast.Expr], start: int) -> list[ast.Binary]:
    """The links from `start` on that are all `and`, or all `or`."""
    found: list[ast.Binary] = []
    for i in range(start, len(links)):
        link = links[i]
        if not isinstance(link, ast.Binary) or link.op not in ("and", "or") or (found and link.op != found[0].op):
            break
        found.append(link)
    return found


def _long_logic(inference: Inference, first: ir.TExpr, links: Sequence[ast.Binary]) -> ir.TExpr:
    """`a and b and c ...` as a balanced tree: grouping changes neither the result nor what is evaluated."""
    operands = [first, *(inference.infer(link.right) for link in links)]
    if len(operands) <= BALANCED:
        typed = first
        for link, operand in zip(links, operands[1:], strict=True):
            typed = logic(inference, link.op, typed, operand, link.span)
        return typed
    last = links[-1]
    return _balanced(operands, lambda left, right: logic(inference, last.op, left, right, last.span))


def _coalesced(inference: Inference, e: ast.Binary) -> ir.TExpr:
    """`a ?? b ?? c` groups to the right; operands of one type may be grouped in any way, so a long chain of them
    becomes a balanced tree."""
    links: list[ast.Binary] = [e]
    while isinstance(right := links[-1].right, ast.Binary) and right.op == "??":
        links.append(right)
    operands = [inference.infer(link.left) for link in links] + [inference.infer(links[-1].right)]
    if len(operands) > BALANCED and len({o.type.unwrap() for o in operands}) == 1:
        return _balanced(operands, lambda left, right: coalesce(left, right, e.span))
    typed = operands[-1]
    for link, operand in zip(reversed(links), reversed(operands[:-1]), strict=True):
        typed = coalesce(operand, typed, link.span)
    return typed


def _balanced(operands: Sequence[ir.TExpr], join: Callable[[ir.TExpr, ir.TExpr], ir.TExpr]) -> ir.TExpr:
    """The operands in their order, joined in pairs, and those in pairs, until one is left."""
    while len(operands) > 1:
        pairs = zip(operands[::2], operands[1::2], strict=False)
        joined = [join(left, right) for left, right in pairs]
        operands = joined if len(operands) % 2 == 0 else [*joined, operands[-1]]
    return operands[0]
