"""Variables that nodes declare and write: who writes them, and which sources a name means."""

from __future__ import annotations

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan

SHARED = ("pipeline", "source")
"""Scopes whose variables have one value for many records: the last one written, in source order."""


def writers(plan: Plan) -> dict[tuple[str, str], PlanNode]:
    """(scope, name) -> the node that declares the variable."""
    return {(declared.scope, declared.name): node for node in plan.nodes for declared in node.declares}


def record_sources(plan: Plan, node: PlanNode) -> list[SourcePlan]:
    """The sources that the records of a node were read from: not those that its windows look into."""
    seen: set[str] = set()
    todo = [node.name]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += [ref.node for ref in plan[name].made_of]
    return [source for source in plan.sources if source.name in seen]


def sources_by_name(plan: Plan, node: PlanNode) -> dict[str, list[SourcePlan]]:
    """What `$source.<name>.x` can mean in a program of the node: a source, or an input of a merge or a combine that its
    records came through. Several, when that input has records of several. A source wins over an input of its name."""
    found: dict[str, list[SourcePlan]] = {}
    for before in (node, *reversed(plan.upstream(node.name))):  # the nearest input of a name is the one that is meant
        for name, ref in zip(before.input_names, before.inputs, strict=False):
            found.setdefault(name, record_sources(plan, plan[ref.node]))
    return found | {source.name: [source] for source in record_sources(plan, node)}
