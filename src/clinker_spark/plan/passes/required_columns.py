"""What each node must provide for the nodes after it: columns, order, identity."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from clinker_spark.plan.facts import Facts, Required
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode


def find_required(plan: Plan, facts: Facts) -> Facts:
    required = required_of(plan.nodes, facts.order.in_order)
    return replace(facts, columns=replace(facts.columns, required=required))


def required_of(nodes: Sequence[PlanNode], in_order: Collection[str]) -> dict[str, Required]:
    """By node: what must leave it, if the records of some lie in their order."""
    found = {node.name: Required() for node in nodes}
    for node in reversed(nodes):
        for i, ref in enumerate(node.inputs):
            found[ref.node] |= node.required(i, found[node.name], in_order=ref.node in in_order)
        found[node.name] = node.completed(found[node.name])
    return found
