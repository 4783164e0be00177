"""Runs that need more than they may use, in words, with the node that most likely needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.budget import DRIVER, cores, run_budget
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size
from clinker_spark.plan.nodes.base import PlanNode


@dataclass(frozen=True)
class Spent:
    """Bytes of the processes of a run."""

    total: int
    jvm: int
    workers: int
    driver: int

    def __str__(self) -> str:
        parts = (("Spark's JVM", self.jvm), ("Python workers", self.workers), ("this process", self.driver))
        return ", ".join(f"{name} {shown_size(size)}" for name, size in parts)


def over_limit(plan: Plan, running: Sequence[str], limit: int, spent: Spent | None) -> Diagnostic:
    """The limit does not suffice. Without `spent` the heap was too small, whatever the processes used."""
    in_readers = spent is not None and _in_readers(plan, spent)
    node = _reader(plan, running) if in_readers else _holder(plan, running)
    what = f"'{node.name}' needs more memory than the limit of {shown_size(limit)} leaves for it"
    how = ": the heap of Spark is full" if spent is None else f": {shown_size(spent.total)} are in use ({spent})"
    return node.diagnostic("E310", what + how, help=_advice(plan, node, limit, in_readers))


def over_disk_cap(plan: Plan, running: Sequence[str], used: int, cap: int) -> Diagnostic:
    """What Spark shuffles and spills takes more disk than it may."""
    node = _holder(plan, running)
    message = f"'{node.name}' spills more than 'disk_cap_bytes' allows: {used:,} bytes of {cap:,}"
    help_text = "raise disk_cap_bytes of [storage.spill], or raise memory.limit: less is spilled then"
    return node.diagnostic("E320", message, help=help_text)


def spill_volume_full(plan: Plan, running: Sequence[str], folder: str) -> Diagnostic:
    node = _holder(plan, running)
    message = f"no space left in '{folder}', where '{node.name}' spills what does not fit in memory"
    help_text = "free some space, or name a folder on a larger disk: dir of [storage.spill] in clinker.toml"
    return node.diagnostic("E321", message, help=help_text)


def _in_readers(plan: Plan, spent: Spent) -> bool:
    """Are the workers further beyond their part of the limit than the JVM is beyond its own?"""
    budget = run_budget(plan, cores())
    return spent.workers - budget.workers > spent.jvm + spent.driver - budget.heap - budget.jvm - DRIVER


def _reader(plan: Plan, running: Sequence[str]) -> PlanNode:
    """The source whose records are read: the largest of them."""
    sources = [node for node in plan.sources if node.name in running] or list(plan.sources)
    return max(sources, key=lambda node: plan.facts.resources.predicted[node.name].peak)


def _holder(plan: Plan, running: Sequence[str]) -> PlanNode:
    """The node of the running job whose state Spark cannot spill; of several, or none, the one that holds most by what
    was predicted, then the first."""
    resources = plan.facts.resources
    nodes = [node for node in plan.nodes if node.name in running] or list(plan.nodes)
    holding = [node for node in nodes if resources.holders[node.name].accumulates] or nodes[-1:]
    return max(
        holding,
        key=lambda node: (not resources.holders[node.name].spills, resources.predicted[node.name].freed),
    )


def _advice(plan: Plan, node: PlanNode, limit: int, in_readers: bool) -> str:
    more = f"raise the limit (--memory-limit {shown_size(limit * 2)})"
    if run_budget(plan, cores()).tasks > 1:
        more += ", or run fewer tasks at once (concurrency: { threads: 1 })"
    if in_readers:
        return f"{more}; single records of many megabytes need several times their size"
    if not plan.facts.resources.holders[node.name].spills:
        return f"{more}, or let the join use tables on disk (strategy: grace_hash)"
    return f"{more}; Spark puts sorts and tables on disk, but not one value or one list that is too large"
