"""Which nodes send records from task to task."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan


def find_exchanges(plan: Plan, facts: Facts) -> Facts:
    return replace(facts, exchanges=frozenset(node.name for node in plan.nodes if node.exchanges))
