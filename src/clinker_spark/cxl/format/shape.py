"""The parts of an expression as they are laid out: chains of operators, of calls and of else-ifs as one list.

The printer breaks these lists over lines and the comments inside an expression hang on their parts, so both
must see the same lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clinker_spark.core.span import Span
from clinker_spark.cxl.syntax import ast
from clinker_spark.cxl.syntax.expressions import BINDING, COALESCE, COMPARISON, NOT, POSTFIX, UNARY

LOOSEST = 0
"""Binding of `if`, which swallows everything to its right."""


def binding(node: ast.Expr) -> int:
    """How tightly the outermost operator of an expression binds."""
    if isinstance(node, ast.Binary):
        return BINDING[node.op]
    if isinstance(node, ast.Unary):
        return NOT if node.op == "not" else UNARY
    if isinstance(node, ast.If):
        return LOOSEST
    if isinstance(node, ast.Literal) and type(node.value) is int and node.value < 0:
        return UNARY
    return POSTFIX


def operator_chain(node: ast.Binary) -> tuple[list[ast.Expr], list[str]]:
    """Operands and operators of `a + b - c`, without a level for each operator."""
    level = BINDING[node.op]
    if level == COALESCE:
        return _right_chain(node)
    operands: list[ast.Expr] = []
    operators: list[str] = []
    left: ast.Expr = node
    while isinstance(left, ast.Binary) and BINDING[left.op] == level and not (operands and level == COMPARISON):
        operands.append(left.right)
        operators.append(left.op)
        left = left.left
    return [left, *reversed(operands)], operators[::-1]


def _right_chain(node: ast.Binary) -> tuple[list[ast.Expr], list[str]]:
    operands: list[ast.Expr] = []
    right: ast.Expr = node
    while isinstance(right, ast.Binary) and right.op == node.op:
        operands.append(right.left)
        right = right.right
    return [*operands, right], [node.op] * len(operands)


Step = ast.Member | ast.MethodCall | ast.Index


def postfix_chain(node: Step) -> tuple[ast.Expr, list[Step]]:
    """`a` and the steps `.b`, `.c(d)`, `[e]` behind it."""
    steps: list[Step] = []
    base: ast.Expr = node
    while isinstance(base, Step):
        steps.append(base)
        base = base.receiver if isinstance(base, ast.MethodCall) else base.target
    return base, steps[::-1]


def segments(steps: list[Step]) -> list[list[Step]]:
    """Steps that stay on one line together: a `[e]` never begins a line. The first list follows the base."""
    found: list[list[Step]] = [[]]
    for step in steps:
        if isinstance(step, ast.Index):
            found[-1].append(step)
        else:
            found.append([step])
    return found


def if_chain(node: ast.If) -> tuple[list[ast.If], ast.Expr | None]:
    """`if … then …`, each `else if … then …`, and the last `else`."""
    branches = [node]
    while isinstance(branches[-1].otherwise, ast.If):
        branches.append(branches[-1].otherwise)
    return branches, branches[-1].otherwise


@dataclass(frozen=True)
class Shape:
    """The spans of a list's items, the sub-expressions to look into, and where comments may stand.

    `inside` is the bracketed range; without brackets comments can only stand between two items.
    """

    items: list[Span]
    children: list[ast.Expr]
    inside: Span | None


def shape(node: ast.Expr) -> Shape:
    """How an expression is made of parts; one that is no list has no items."""
    if isinstance(node, ast.Binary):
        operands, _ = operator_chain(node)
        return Shape([o.span for o in operands], operands, None)
    if isinstance(node, ast.If):
        branches, last = if_chain(node)
        items = [branch.condition.span.to(branch.then.span) for branch in branches]
        parts = [part for branch in branches for part in (branch.condition, branch.then)]
        return Shape(items + ([last.span] if last else []), parts + ([last] if last else []), None)
    if isinstance(node, Step):
        return _postfix_shape(node)
    if isinstance(node, ast.Match):
        parts = [part for arm in node.arms for part in (arm.pattern, arm.value) if part is not None]
        start = node.subject.span.end if node.subject else node.span.start
        first = [node.subject] if node.subject else []
        return Shape([arm.span for arm in node.arms], first + parts, Span(start, node.span.end))
    if isinstance(node, ast.WindowCall) or (isinstance(node, ast.Call) and not node.star):
        return _list_shape(node.args, Span(node.name_span.end, node.span.end))
    if isinstance(node, ast.ArrayLiteral):
        return _list_shape(node.items, node.span)
    if isinstance(node, ast.MapLiteral):
        parts = [part for entry in node.entries for part in (entry.key, entry.value)]
        return Shape([entry.span for entry in node.entries], parts, node.span)
    if isinstance(node, ast.Comprehension):
        loop = node.binding_span.to(node.source.span)
        last_part = [node.condition] if node.condition else []
        return Shape(
            [node.value.span, loop, *(p.span for p in last_part)], [node.value, node.source, *last_part], node.span
        )
    return Shape([], list(_operands(node)), None)


def _list_shape(parts: tuple[ast.Expr, ...], inside: Span) -> Shape:
    return Shape([part.span for part in parts], list(parts), inside)


def _postfix_shape(node: Step) -> Shape:
    base, steps = postfix_chain(node)
    children = [base]
    for step in steps:
        children.extend((step.index,) if isinstance(step, ast.Index) else ())
        children.extend(step.args if isinstance(step, ast.MethodCall) else ())
    first, *rest = segments(steps)
    items = [base.span.to(first[-1].span) if first else base.span]
    items += [_start(segment[0]).to(segment[-1].span) for segment in rest]
    return Shape(items, children, None)


def _start(step: Step) -> Span:
    return step.index.span if isinstance(step, ast.Index) else step.name_span


def arguments_shape(call: ast.MethodCall) -> Shape:
    """The argument list of one call in a chain."""
    return _list_shape(call.args, Span(call.name_span.end, call.span.end))


def _operands(node: ast.Expr) -> Iterator[ast.Expr]:
    if isinstance(node, ast.Unary):
        yield node.operand
    elif isinstance(node, ast.Closure):
        yield node.body
