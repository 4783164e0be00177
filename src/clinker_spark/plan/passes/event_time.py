"""Which sources the records of a node were read from, and so what their time is."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.plan.nodes import CombinePlan, MergePlan, PlanNode, RoutePlan, SourcePlan, TransformPlan


def event_sources(nodes: Sequence[PlanNode], name: str) -> tuple[list[SourcePlan], list[PlanNode]]:
    """The sources whose times the records of a node have, and the nodes that make records without a time.

    A combine's records have the time of its driver."""
    by_name = {node.name: node for node in nodes}
    sources: list[SourcePlan] = []
    timeless: list[PlanNode] = []
    todo = [by_name[name]]
    while todo:
        node = todo.pop(0)
        if isinstance(node, SourcePlan):
            sources += [node] if node not in sources else []
        elif isinstance(node, CombinePlan):
            todo.append(by_name[node.inputs[node.qualifiers.index(node.driver)].node])
        elif isinstance(node, TransformPlan | RoutePlan):
            todo.append(by_name[node.inputs[0].node])
        elif isinstance(node, MergePlan):
            todo += [by_name[ref.node] for ref in node.inputs]
        else:
            timeless.append(node)
    return sources, timeless
