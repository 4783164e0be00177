"""Which sources the records of a node were read from, and so what their time is."""

from __future__ import annotations

from clinker_spark.plan.bind.node import Binding
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan


def event_sources(binding: Binding, name: str) -> tuple[list[SourcePlan], list[PlanNode]]:
    """The sources whose times the records of a node have, and the nodes that make records without a time."""
    sources: list[SourcePlan] = []
    timeless: list[PlanNode] = []
    todo = [binding.by_name[name]]
    while todo:
        node = todo.pop(0)
        if node.name in binding.sources:
            source = binding.sources[node.name]
            sources += [source] if source not in sources else []
        elif node.timed_by:
            todo += [binding.by_name[ref.node] for ref in node.timed_by]
        else:
            timeless.append(node)
    return sources, timeless
