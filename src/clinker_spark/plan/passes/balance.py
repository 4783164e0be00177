"""Where the numbers of a plan add up: parts of the graph in which every record that is read ends in one place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clinker_spark.plan.nodes import (
    CombinePlan,
    MergePlan,
    OutputPlan,
    Plan,
    PlanNode,
    RoutePlan,
    SourcePlan,
    TransformPlan,
)


@dataclass(frozen=True)
class Component:
    """Nodes that records flow between. Where records become others, as in an aggregate or a query, or are only looked
    up by a combine, one component ends and another one begins."""

    nodes: tuple[str, ...]
    sources: tuple[str, ...]
    outputs: tuple[str, ...]
    conserves: bool
    """Does each record of its sources end in one place: an output, the dead letters, or a counted drop?"""


def components(plan: Plan) -> list[Component]:
    """The components of a plan, in the order of their first nodes."""
    parent = {node.name: node.name for node in plan.nodes}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for node in plan.nodes:
        for name in _flows_on(node):
            parent[root(node.name)] = root(name)
    together: dict[str, list[PlanNode]] = {}
    for node in plan.nodes:
        together.setdefault(root(node.name), []).append(node)
    return [_component(plan, nodes) for nodes in together.values()]


def _flows_on(node: PlanNode) -> Iterator[str]:
    """The inputs whose records leave the node as they are, one by one."""
    match node:
        case TransformPlan():
            yield node.inputs[0].node
        case RoutePlan() | MergePlan() | OutputPlan():
            yield from (ref.node for ref in node.inputs)
        case CombinePlan():
            yield node.inputs[node.qualifiers.index(node.driver)].node
        case _:
            return


def _component(plan: Plan, nodes: list[PlanNode]) -> Component:
    outputs = tuple(node.name for node in nodes if isinstance(node, OutputPlan))
    sources = tuple(node.name for node in nodes if isinstance(node, SourcePlan))
    kinds = SourcePlan | TransformPlan | RoutePlan | MergePlan | CombinePlan | OutputPlan
    conserves = all(isinstance(node, kinds) and _keeps_count(node) and _read_once(plan, node) for node in nodes)
    return Component(tuple(node.name for node in nodes), sources, outputs, conserves)


def _keeps_count(node: PlanNode) -> bool:
    """Is each record that the node takes one that it passes, or one less?"""
    if isinstance(node, TransformPlan):
        return not node.expands
    if isinstance(node, RoutePlan):
        return not node.inclusive
    return not isinstance(node, CombinePlan) or node.match != "all"


def _read_once(plan: Plan, node: PlanNode) -> bool:
    """Does one node read it, or each of its ports? What several read goes to more than one place."""
    if isinstance(node, OutputPlan):
        return True
    readers = dict.fromkeys(plan.readers(node.name))
    if any(node.name not in _flows_on(other) for other in readers):
        return False
    read = [ref.port for other in readers for ref in other.inputs if ref.node == node.name]
    # What a route sends to a port that nobody reads is a drop of the route.
    return bool(read) and len(set(read)) == len(read)
