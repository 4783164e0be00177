"""What is kept and what is made again, when several outputs read it (decision 0020)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from clinker_spark.core.fast_paths import taken
from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan


def find_materialized(plan: Plan, facts: Facts) -> Facts:
    """The nodes whose records are kept until their last reader is done: those that several outputs read, and that a
    shuffle made. All others are made again for each output: to keep a record costs about as much as to read it."""
    if len(plan.outputs) < 2 or not facts.order.exchanges or not taken("kept_results"):
        return facts
    outputs = Counter(node.name for output in plan.outputs for node in plan.upstream(output.name))
    shared = {name for name in facts.order.exchanges if outputs[name] > 1}
    leads: dict[str, bool] = {}
    """Does nobody read a node but those that are kept themselves, or that only they read?"""
    for node in reversed(plan.nodes):
        readers = plan.readers(node.name)
        leads[node.name] = bool(readers) and all(reader.name in shared or leads[reader.name] for reader in readers)
    materialized = tuple(n.name for n in plan.nodes if n.name in shared and not leads[n.name])
    return replace(facts, order=replace(facts.order, materialized=materialized))
