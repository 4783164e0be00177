"""Variables that nodes declare: what they are before they are written, who is asked for their values, and what a name
of a source means where one is read."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts, VariableFacts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.variables import SHARED, sources_by_name, writers


def find_variables(plan: Plan, facts: Facts) -> Facts:
    defaults = {
        (scope, name): next(d.value for d in node.declares if (d.scope, d.name) == (scope, name))
        for (scope, name), node in writers(plan).items()
    }
    shared = [node for node in plan.nodes if any(d.scope in SHARED for d in node.declares)]
    found = VariableFacts(
        defaults=defaults,
        writers=tuple(node.name for node in sorted(shared, key=lambda node: node.phase != "init")),
        named_sources={node.name: found for node in plan.nodes if (found := _named(plan, node))},
    )
    return replace(facts, variables=found)


def _named(plan: Plan, node: PlanNode) -> dict[str, str]:
    """The names that it reads a variable of, and their sources. That each means one was checked before."""
    read = {path[0] for namespace, path in node.system_members() if namespace == "source" and len(path) == 2}
    meant = sources_by_name(plan, node) if read else {}
    return {name: meant[name][0].name for name in sorted(read)}
