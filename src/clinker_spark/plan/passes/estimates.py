"""How many records a node will probably have, from what is known before the run. Never a made-up number.

Nodes that make or drop records have no count of their own: theirs is an upper bound at best, and only the rows of the
sources are ever shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clinker_spark.plan.facts import Estimate, Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode


def find_estimates(plan: Plan, facts: Facts) -> Facts:
    found: dict[str, Estimate | None] = {}
    for node in plan.nodes:
        found[node.name] = estimate_of(node, found, plan.estimates)
    return replace(facts, estimates=found, resources=replace(facts.resources, input_bytes=_input_bytes(plan)))


def _input_bytes(plan: Plan) -> int | None:
    sizes = [(source, plan.file_sizes.get(source.name)) for source in plan.sources]
    known = [source.unpacked(str(source.config.path), size) for source, size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def estimate_of(
    node: PlanNode, found: Mapping[str, Estimate | None], sources: Mapping[str, Estimate | None]
) -> Estimate | None:
    """At most how many records leave one node; None where nothing is known, and after joins and fan-outs."""
    if not node.inputs:
        return sources.get(node.name)
    return node.estimate([found[ref.node] for ref in node.inputs])
