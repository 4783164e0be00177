"""Where Python touches records, in Arrow batches, and why."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan


def find_python(plan: Plan, facts: Facts) -> Facts:
    reasons = {node.name: node.python_reasons for node in plan.nodes}
    return replace(facts, python={name: found for name, found in reasons.items() if found})
