"""How `--explain` shows memory: what each node holds and gives back, where records wait, and what may go to disk."""

from __future__ import annotations

from typing import Any

from clinker_spark.plan.budget import DEFAULT_SHARE, cores, default_limit, estimated_spill, run_budget
from clinker_spark.plan.facts import BufferEdge, Facts, Predicted
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import SLOT, held_whole, shown_size
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.passes.scheduling import SOFT
from clinker_spark.plan.small_inputs import SMALL, is_small

_SPARK = {
    "shuffle": "shuffle: written to disk by the tasks that make the records, read by those that take them",
    "kept": "kept, in memory or on disk, until its last reader is done",
    "broadcast": "broadcast: every task holds all of it, and it is never spilled",
    "shuffle, then broadcast": "shuffle by key, which leaves one record of each; then a broadcast: every task holds it",
    "shuffle or broadcast": "shuffle; or a broadcast, if it turns out to be small enough for every task to hold it",
    "shuffle or none": "shuffle; or none, if what is looked up turns out to be small",
    "mapped": "one Arrow file: all workers map it (where tasks run elsewhere, it is sent along with them)",
    "parts": "shuffle: what each worker has added up, or records where that saves nothing, as Arrow, written to disk",
    "files": "files: groups in the order of their first records, not sorted (where tasks run elsewhere, Spark sorts)",
}
_POLICIES = {
    "pause": "BackPressurePreferred -> Priority",
    "spill": "Priority",
    "both": "BackPressurePreferred -> LargestFirst",
}
"""The names of the specification for what `backpressure` asks for."""
_ACTS = {
    "pause": "readers wait; what frees too little is followed by kept results, which go to disk, by spill_priority",
    "spill": "kept results go to disk, by spill_priority; nobody waits",
    "both": "readers wait, and kept results go to disk, the largest first",
}
_ONE_TASK = f"no shuffle: one task has all records (inputs of up to {shown_size(SMALL)} in all)"


def buffer_lines(plan: Plan, node: PlanNode) -> list[str]:
    """The class of a node, and what arbitration would do with it."""
    facts = plan.facts
    found = facts.resources.predicted[node.name]
    reclaim = f"predicted_subtree_reclaim={shown_size(found.subtree_reclaim)}"
    ahead = facts.resources.ahead.get(node.name)
    return [
        f"  buffer: {facts.resources.buffers[node.name]}",
        f"  arbitration: {facts.resources.holders[node.name]}, {_peak_and_freed(found)}, {reclaim}",
        *([f"  made first: {', '.join(ahead)} (by the rules for what can start)"] if ahead else []),
    ]


def edge_lines(plan: Plan) -> list[str]:
    """Where records wait between two nodes, each with what Spark has in the place of a slot."""
    lines = []
    for edge in plan.facts.resources.edges:
        producer = plan[edge.producer]
        port = "" if edge.port is None else f", port={edge.port}"
        lines += [
            "",
            f"edge {producer.slug} -> {plan[edge.consumer].slug}:",
            f"  buffer: node_buffer (slot={edge.slot}{port})",
            f"  arbitration: {SLOT}, {_peak_and_freed(_waiting(plan.facts, edge))} (producer: {producer.type_word})",
            f"  spark: {_ONE_TASK if is_small(plan.facts.resources.input_bytes) else _SPARK[edge.how]}",
        ]
    return lines


def spill_lines(plan: Plan) -> list[str]:
    """How much may go to disk, at most, by node; nothing for plans in which nothing is held that Spark could spill."""
    found = estimated_spill(plan)
    if not found:
        return []
    known = sum(size for size in found.values() if size)
    unknown = [name for name, size in found.items() if not size]
    total = f"Total: {shown_size(known)}"
    if unknown:
        total = f"Total (known stages): {shown_size(known)} (excludes {', '.join(unknown)})"
    shown = [f"[{plan[name].tag}] {name} → {shown_size(size) if size else 'unknown'}" for name, size in found.items()]
    return [*shown, total if len(unknown) < len(found) else "Total: unknown"]


def budget_lines(plan: Plan) -> list[str]:
    """The limit, and how it is divided when Spark runs on this machine."""
    budget = run_budget(plan, plan.file.settings.concurrency.threads or cores())
    memory = plan.file.settings.memory
    declared = memory.declared_limit
    told = f"default: {DEFAULT_SHARE:.0%} of this machine"
    if plan.memory_limit is not None:
        told = "memory.limit" if plan.memory_limit == declared else "--memory-limit"
    return [
        f"Memory limit: {shown_size(plan.memory_limit or budget.limit)} [{told}], all processes together",
        f"Parts: {budget}",
        f"Tasks at once: {budget.tasks}",
        f"Arbitration: {policy_words(plan)}",
        f"  above {SOFT:.0%} of the limit: {_ACTS[memory.backpressure]}",
        f"  readers go on below {memory.resume_threshold:.0%} of it (resume_threshold), or when waiting frees nothing",
        "  above the limit: everything is tried at once; a run that stays there ends with E310",
        "  on Spark: its sorts and hash tables spill by its own rules; on a cluster nobody watches the limit",
    ]


def policy_words(plan: Plan) -> str:
    """The policy by its name in the specification, and as it is asked for."""
    asked = plan.file.settings.memory.backpressure
    return f"{_POLICIES[asked]} (backpressure: {asked})"


def policy_json(plan: Plan) -> dict[str, Any]:
    """The limit and what is done when memory runs short."""
    memory = plan.file.settings.memory
    limit = _limit(plan)
    return {
        "limit_bytes": limit,
        "limit_declared": plan.memory_limit is not None,
        "backpressure": memory.backpressure,
        "policy": _POLICIES[memory.backpressure],
        "soft_bytes": int(limit * SOFT),
        "resume_bytes": int(limit * memory.resume_threshold),
    }


def share_lines(plan: Plan, node: PlanNode) -> list[str]:
    """The part of the limit that a join would have if all joins of the plan had parts alike."""
    share = _share(plan, node)
    if share is None:
        return []
    held = shown_size(held_whole(plan.memory_limit))
    return [
        f"  Memory budget (planned share): {shown_size(share)}",
        f"  on Spark: nothing is set apart; an input is held by every task if it is estimated at {held} at most",
    ]


def share_json(plan: Plan, node: PlanNode) -> dict[str, Any]:
    share = _share(plan, node)
    return {} if share is None else {"memory_budget_bytes": share}


def _share(plan: Plan, node: PlanNode) -> int | None:
    return _limit(plan) // len(plan.combines) if node in plan.combines else None


def _limit(plan: Plan) -> int:
    return default_limit() if plan.memory_limit is None else plan.memory_limit


def memory_json(plan: Plan, node: PlanNode) -> dict[str, Any]:
    """The same for machines: what is said about a node."""
    facts = plan.facts
    holder, found = facts.resources.holders[node.name], facts.resources.predicted[node.name]
    return {
        "buffer": facts.resources.buffers[node.name],
        "spill_priority": None if holder.spill_priority is None else holder.shown_priority,
        "can_back_pressure": holder.can_back_pressure,
        "predicted_peak_bytes": found.peak,
        "predicted_freed_bytes_on_complete": found.freed,
        "predicted_subtree_reclaim_bytes": found.subtree_reclaim,
        **({"made_first": list(ahead)} if (ahead := facts.resources.ahead.get(node.name)) else {}),
    }


def edges_json(plan: Plan) -> list[dict[str, Any]]:
    """Where records wait."""
    return [
        {
            "producer": plan[edge.producer].slug,
            "port": edge.port,
            "consumer": plan[edge.consumer].slug,
            "slot": edge.slot,
            "spark": "none" if is_small(plan.facts.resources.input_bytes) else edge.how,
            "predicted_peak_bytes": _waiting(plan.facts, edge).peak,
        }
        for edge in plan.facts.resources.edges
    ]


def storage_json(plan: Plan) -> dict[str, Any]:
    """What may go to disk."""
    found = estimated_spill(plan)
    stages = [
        {"node_name": name, "display_name": f"[{plan[name].tag}] {name}", "estimate_bytes": size or None}
        for name, size in found.items()
    ]
    known = sum(size for size in found.values() if size)
    return {
        "estimated_spill": {
            "per_stage": stages,
            "total_known_bytes": known,
            "any_unknown": not all(found.values()),
        }
    }


def _waiting(facts: Facts, edge: BufferEdge) -> Predicted:
    """A slot holds all that its producer makes, and gives it back when it was read."""
    volume = facts.resources.predicted[edge.producer].peak
    return Predicted(volume, volume)


def _peak_and_freed(found: Predicted) -> str:
    return f"predicted_peak={shown_size(found.peak)}, predicted_freed={shown_size(found.freed)}"
