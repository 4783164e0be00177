"""What is kept and what is made again, when outputs are written without the groups that failed."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.plan.nodes import Plan
from clinker_spark.plan.stages import exchanges


def kept_results(plan: Plan) -> tuple[str, ...]:
    """The nodes whose records are kept while the outputs are written again: those that several outputs read, and that
    a shuffle made. All others are made again for each output: to keep a record costs about as much as to read it."""
    shared = [
        node.name
        for node in plan.nodes
        if exchanges(node) and sum(node in plan.upstream(output.name) for output in plan.outputs) > 1
    ]
    return tuple(name for name in shared if not _leads_to(plan, name, shared))


def _leads_to(plan: Plan, name: str, kept: Sequence[str]) -> bool:
    """Does nobody read a node but those that are kept themselves, or that only they read?"""
    readers = plan.readers(name)
    return bool(readers) and all(reader.name in kept or _leads_to(plan, reader.name, kept) for reader in readers)
