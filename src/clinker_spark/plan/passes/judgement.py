"""In which order failures are judged, and whose groups they concern.

What fails before any total is retracted first; then totals are made again, and only those that remain are judged by
what follows them.
"""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Blame, Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan


def find_judgement(plan: Plan, facts: Facts) -> Facts:
    strata: dict[str, int] = {}
    made: dict[str, int] = {}
    for node in plan.nodes:
        strata[node.name] = max((made[ref.node] for ref in node.inputs), default=0)
        # Totals of files that are diverted as wholes are made again, as those that cut across groups are.
        again = node.name in facts.correlation.relaxed or _adds_up_documents(plan, node)
        made[node.name] = strata[node.name] + again
    blamed = tuple(_blame(plan, facts, node) for node in plan.nodes)
    families = {source.name: _family(plan, source) for source in plan.sources if source.key_columns}
    found = replace(facts.correlation, strata=strata, made_strata=made, blamed=blamed, families=families)
    return replace(facts, correlation=found)


def _adds_up_documents(plan: Plan, node: PlanNode) -> bool:
    return node.totals and any(source.by_document for source in plan.sources_of(node.name))


def _blame(plan: Plan, facts: Facts, node: PlanNode) -> Blame:
    keys = facts.correlation.keys[node.name]
    if keys.single:
        return Blame(True)
    others = tuple(source.index for source in plan.sources if source.name in keys.sources)
    return Blame(node.totals and facts.correlation.keys[node.inputs[0].node].single, others)


def _family(plan: Plan, source: SourcePlan) -> tuple[str, ...]:
    """Those it is merged with that have the same key."""
    family = {source.name}
    for node in plan.nodes:
        if node.unites:
            above = {other.name for other in plan.sources_of(node.name)}
            family |= above if source.name in above else set()
    return tuple(s.name for s in plan.sources if s.name in family and s.key_columns == source.key_columns)
