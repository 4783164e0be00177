"""Runs that need more than they may use, in words, with the node that most likely needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.budget import DRIVER, cores, machine_memory, run_budget
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import HASH_AGGREGATE, STREAMING_AGGREGATE, Holder, shown_size
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
    node = _reader(plan, running) if in_readers else _holder(plan, running, full=spent is None)
    what = f"'{node.name}' needs more memory than the limit of {shown_size(limit)} leaves for it"
    how = ": the heap of Spark is full" if spent is None else f": {shown_size(spent.total)} are in use ({spent})"
    return node.diagnostic("E310", what + how, help=_advice(plan, node, limit, in_readers))


def beyond_machine(found: Diagnostic, limit: int) -> Diagnostic:
    """What happened to the engine. Was it told that it may use more than there is?"""
    there = machine_memory()
    if limit <= there:
        return found
    message = f"the memory limit of {shown_size(limit)} is more than this machine, or its control group, has"
    return replace(found, help=f"{message}: set it below {shown_size(there)} (--memory-limit)")


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


def _holder(plan: Plan, running: Sequence[str], *, full: bool = False) -> PlanNode:
    """The node of the running job that is most likely the one: what Spark cannot spill comes first; then the one that
    holds most, by what was predicted. In a heap that is `full`, what is harder to spill comes before that: a sort gives
    way, a list of all values of a group does not."""
    resources = plan.facts.resources
    nodes = [node for node in plan.nodes if node.name in running] or list(plan.nodes)
    holding = [node for node in nodes if _priority(resources.holders[node.name]) > 0] or nodes[-1:]

    def likely(node: PlanNode) -> tuple[bool, int, int]:
        holder, freed = resources.holders[node.name], resources.predicted[node.name].freed
        priority = _priority(holder)
        return not holder.spills, *((priority, freed) if full else (freed, priority))

    return max(holding, key=likely)


def _priority(holder: Holder) -> int:
    """How late it is asked to spill; 0 for who holds nothing. An aggregate over neighbours holds one group at a time,
    which can be all records."""
    known = HASH_AGGREGATE.spill_priority if holder is STREAMING_AGGREGATE else holder.spill_priority
    return known or 0


def _advice(plan: Plan, node: PlanNode, limit: int, in_readers: bool) -> str:
    more = f"raise the limit (--memory-limit {shown_size(limit * 2)})"
    if run_budget(plan, cores()).tasks > 1:
        more += ", or run fewer tasks at once (concurrency: { threads: 1 })"
    if in_readers:
        return f"{more}; single records of many megabytes need several times their size"
    holder = plan.facts.resources.holders[node.name]
    if not holder.spills:
        return f"{more}, or {holder.instead}"
    return f"{more}; Spark puts sorts and tables on disk, but not one value or one list that is too large"
