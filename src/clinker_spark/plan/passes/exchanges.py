"""Which nodes send records from task to task."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan


def find_exchanges(plan: Plan, facts: Facts) -> Facts:
    exchanges = frozenset(node.name for node in plan.nodes if node.exchanges)
    return replace(facts, order=replace(facts.order, exchanges=exchanges))
