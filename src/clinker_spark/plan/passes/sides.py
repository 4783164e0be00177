"""How the records of each source get to outputs: on their own, or as what others are looked up in."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.plan.facts import Facts, Sides
from clinker_spark.plan.graph import Plan


def find_sides(plan: Plan, facts: Facts) -> Facts:
    probing: dict[str, frozenset[str]] = {}
    built: dict[str, frozenset[str]] = {}
    for node in plan.nodes:
        inputs = [(ref.node, node.is_probe_side(i), node.is_build_side(i)) for i, ref in enumerate(node.inputs)]
        none: frozenset[str] = frozenset()
        own = none if node.inputs else frozenset((node.name,))
        probing[node.name] = own.union(*(probing[name] for name, probes, _ in inputs if probes))
        built[node.name] = none.union(
            *(built[name] for name, _, _ in inputs), *(probing[name] for name, _, builds in inputs if builds)
        )
    ends = [output.name for output in plan.outputs]
    sides = {
        source.name: Sides(
            any(source.name in probing[end] for end in ends), any(source.name in built[end] for end in ends)
        )
        for source in plan.sources
    }
    return replace(facts, flow=replace(facts.flow, sides=sides))
