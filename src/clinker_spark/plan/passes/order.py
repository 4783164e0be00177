"""Whether each node's records lie in their order already, or must be sorted when order counts."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan


def find_order(plan: Plan, facts: Facts) -> Facts:
    found: dict[str, bool] = {}
    for node in plan.nodes:
        before = [found[ref.node] for ref in node.inputs]
        found[node.name] = node.in_order(before) and not (plan.moved and not node.inputs)
    in_order = frozenset(name for name, here in found.items() if here)
    sorts = [node for node in plan.nodes if node.inputs and node.sorts(in_order=found[node.inputs[0].node])]
    order = replace(facts.order, in_order=in_order, sorts=frozenset(node.name for node in sorts))
    return replace(facts, order=order)
