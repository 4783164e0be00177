"""At which nodes a record can fail: only these have an error column."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan


def find_fallible(plan: Plan, facts: Facts) -> Facts:
    return replace(facts, fallible=frozenset(node.name for node in plan.nodes if node.can_fail))
