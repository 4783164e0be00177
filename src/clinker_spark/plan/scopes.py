"""Variables that transforms declare and write: who writes them, and who may read them."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.nodes import Plan, PlanNode, TransformPlan

SHARED = ("pipeline", "source")
"""Scopes whose variables have one value for many records: the last one written, in source order."""


def writers(plan: Plan) -> dict[tuple[str, str], TransformPlan]:
    """(scope, name) -> the transform that declares the variable."""
    return {(declared.scope, declared.name): node for node in plan.of_kind(TransformPlan) for declared in node.declares}


def shared_writers(plan: Plan) -> list[TransformPlan]:
    """Transforms whose variables must be known before their readers run: init ones first, then as in the plan."""
    found = [n for n in plan.of_kind(TransformPlan) if any(d.scope in SHARED for d in n.declares)]
    return sorted(found, key=lambda node: node.phase != "init")


def declared_reads(plan: Plan, node: PlanNode) -> Iterator[tuple[str, str]]:
    """The declared variables that the programs of a node read."""
    known = writers(plan)
    for namespace, path in node.system_members():
        if path and (namespace, path[0]) in known:
            yield namespace, path[0]


def check_scopes(plan: Plan) -> Iterator[Diagnostic]:
    """A variable can only be read after it was written: by its writer, downstream of it, or after an init."""
    known = writers(plan)
    for node in plan.nodes if known else ():
        reads = dict.fromkeys(declared_reads(plan, node))
        before = {n.name for n in plan.upstream(node.name)} | {node.name} if reads else set()
        for scope, name in reads:
            writer = known[scope, name]
            if writer.name not in before and writer.phase != "init":
                message = f"'{node.name}' reads ${scope}.{name}, which '{writer.name}' writes elsewhere"
                help_text = f"read it downstream of '{writer.name}', or write it in a transform with phase: init"
                yield node.diagnostic("E171", message, "config", help=help_text)
