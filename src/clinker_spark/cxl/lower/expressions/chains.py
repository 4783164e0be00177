"""Lowering long chains of operators that can fail at every step, such as a sum of a thousand whole numbers.

Step by step, each would need the column of the one before it, and Spark's work grows with the square of the number
of columns that depend on each other. A loop over an array of the operands is one column, whatever its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ERROR_TYPE
from clinker_spark.cxl.lower.errors import NO_ERROR, first_error, passed_on
from clinker_spark.cxl.lower.expressions.python_calls import python_reason
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Failing, Sql, combine

Link = ir.Call | ir.DynamicCall
LONG = 16
"""Links from which on a chain is a loop. Spark compiles shorter ones to better code."""


def long_chain(e: Link) -> list[Link]:
    """The links of a long chain that ends here, first one first; none, when it is short.

    All are operators whose result, first operand and second operand are each of one type."""
    found: list[Link] = []
    node: ir.TExpr = e
    while _is_link(node, e):
        assert isinstance(node, Link)
        found.append(node)
        node = node.args[0]
    if len(found) < LONG or any(python_reason(link) is not None for link in found):
        return []
    return found[::-1]


def _is_link(node: ir.TExpr, last: Link) -> bool:
    if not isinstance(node, Link) or node.builtin.family != "operator" or len(node.args) != 2:
        return False
    if isinstance(node, ir.Call) and not node.overload.failures:
        return False
    same = node.type.unwrap() == node.args[0].type.unwrap() == last.type.unwrap()
    return same and node.args[1].type.unwrap() == last.args[1].type.unwrap() and node.builtin.name != "[]"


def lower_chain(lowering: Lowering, links: Sequence[Link]) -> Sql:
    """`aggregate` over the operands. Its state is the value so far, the number of steps, and the first error with the
    step at which it was found."""
    builder = lowering.builder
    first = lowering.bound(links[0].args[0])
    operands = [lowering.lower(link.args[1]) for link in links]
    operators = list({_operator(link): link for link in links}.values())
    state, item = builder.fresh("cxl_s"), builder.fresh("cxl_i")
    builder.open_lambda(state, item)
    lowering.slots["chain.state"] = Sql(f"{state}.v", variables=frozenset((state,)), simple=True)
    operand = f"{item}.x" if len(operators) > 1 else item
    lowering.slots["chain.item"] = Sql(operand, variables=frozenset((item,)), simple=True)
    steps = [lowering.lower(_with_slots(link)) for link in operators]
    if len(steps) > 1:
        arms = " ".join(f"WHEN {i} THEN {step.text}" for i, step in enumerate(steps))
        step = combine(f"CASE {item}.o {arms} END", [s.bare() for s in steps])
        failures = [f.guarded(f"{item}.o = {i}", s.level) for i, s in enumerate(steps) for f in s.failures]
    else:
        step, failures = steps[0], list(steps[0].failures)
    own = frozenset((state, item)).union(*(s.variables for s in steps))
    level = max([step.level, *(f.level for f in failures)])
    error = f"CAST({first_error([(f, None) for f in failures])} AS {ERROR_TYPE})"
    found = builder.bind(Sql(error, level, variables=own))
    body = (
        f"named_struct('v', {step.text}, 'n', {state}.n + 1, 'e', coalesce({state}.e, {found.text}), "
        f"'at', coalesce({state}.at, CASE WHEN {found.text} IS NOT NULL THEN {state}.n END))"
    )
    closed = builder.close_lambda(Sql(body, max(level, found.level), step.depth + 1))
    start = (
        f"named_struct('v', CAST({first.text} AS {physical(links[0].args[0].type)}), 'n', 0, 'e', {NO_ERROR}, "
        f"'at', CAST(NULL AS INT))"
    )
    items = [sql.text for sql in operands]
    if len(steps) > 1:
        places = {_operator(link): i for i, link in enumerate(operators)}
        items = [f"named_struct('x', {x}, 'o', {places[_operator(k)]})" for x, k in zip(items, links, strict=True)]
    text = f"aggregate(array({', '.join(items)}), {start}, ({state}, {item}) -> {closed.text})"
    parts = [part.bare() for part in (first, *operands, closed)]
    result = builder.bind(combine(text, parts))
    return Sql(
        f"{result.text}.v",
        result.level,
        1,
        (*first.failures, *_in_order(result, operands)),
        result.variables,
        simple=True,
    )


def _operator(link: Link) -> tuple[object, ...]:
    chosen = (link.overload,) if isinstance(link, ir.Call) else link.overloads
    return (link.builtin.name, *map(id, chosen))


def _with_slots(link: Link) -> Link:
    """The link over the loop's state and item."""
    names = ("chain.state", "chain.item")
    args = tuple(ir.Slot(a.span, a.type, False, name) for a, name in zip(link.args, names, strict=True))
    return replace(link, args=args)


def _in_order(result: Sql, operands: Sequence[Sql]) -> list[Failing]:
    """The failures of the steps between those of the operands: what is evaluated first fails first."""
    of_steps = passed_on(f"{result.text}.e", result.level)
    found: list[Failing] = []
    for i, operand in enumerate(operands):
        if operand.failures:
            if i:
                found.append(replace(of_steps, when=f"{result.text}.at < {i}"))
            found += operand.failures
    return [*found, of_steps]
