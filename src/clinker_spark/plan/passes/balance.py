"""Where the numbers of a plan add up: parts of the graph in which every record that is read ends in one place."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Component, Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode


def find_components(plan: Plan, facts: Facts) -> Facts:
    """The components of a plan, in the order of their first nodes."""
    parent = {node.name: node.name for node in plan.nodes}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for node in plan.nodes:
        for ref in node.carried_from:
            parent[root(node.name)] = root(ref.node)
    together: dict[str, list[PlanNode]] = {}
    for node in plan.nodes:
        together.setdefault(root(node.name), []).append(node)
    components = tuple(_component(plan, nodes) for nodes in together.values())
    return replace(facts, flow=replace(facts.flow, components=components))


def _component(plan: Plan, nodes: list[PlanNode]) -> Component:
    names = tuple(node.name for node in nodes)
    inside = set(names)
    return Component(
        names,
        tuple(source.name for source in plan.sources if source.name in inside),
        tuple(output.name for output in plan.outputs if output.name in inside),
        all(node.conserves and _read_once(plan, node) for node in nodes),
    )


def _read_once(plan: Plan, node: PlanNode) -> bool:
    """Does one node read it, or each of its ports? What several read goes to more than one place."""
    if not node.streams:
        return True
    readers = dict.fromkeys(plan.readers(node.name))
    if any(node.name not in {ref.node for ref in other.carried_from} for other in readers):
        return False
    read = [ref.port for other in readers for ref in other.inputs if ref.node == node.name]
    # What a route sends to a port that nobody reads is a drop of the route.
    return bool(read) and len(set(read)) == len(read)
