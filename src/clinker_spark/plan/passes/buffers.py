"""Where the records of a plan wait, all of them, before they go on.

A node is *streaming* when what it makes goes on as it comes: Spark fuses it with whoever reads it. It is *materialized*
when it must see all records before the first one leaves it, or when its records cross a boundary between stages: a
shuffle, a broadcast to all tasks, or what is kept for several outputs. Each such crossing is a slot.

In workers there are none, but for what they look up (one file, *mapped* by all of them), for the *parts* of totals,
which a shuffle brings together, and for groups, which lie in *files* for whoever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clinker_spark.plan.facts import BufferEdge, Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import SORT, Holder
from clinker_spark.plan.nodes.base import PlanNode

STREAMING, MATERIALIZED = "streaming", "materialized"
KEPT = "kept"
MAPPED, PARTS, FILES = "mapped", "parts", "files"


def find_buffers(plan: Plan, facts: Facts) -> Facts:
    holders = {node.name: _holder(node, facts) for node in plan.nodes}
    edges = tuple(_numbered(_edges(plan, facts)))
    waiting = {edge.producer for edge in edges}
    buffers = {
        # Nothing waits after an output: its file is not memory.
        node.name: MATERIALIZED
        if node.name in waiting or (node.streams and _blocks(facts, node, holders[node.name]))
        else STREAMING
        for node in plan.nodes
    }
    return replace(facts, resources=replace(facts.resources, holders=holders, edges=edges, buffers=buffers))


def _blocks(facts: Facts, node: PlanNode, holder: Holder) -> bool:
    """Does no record leave it before all of them came? Where only a build side is held, the others go on as they
    come."""
    if node.name in facts.flow.in_workers:
        return node.name in facts.flow.totals
    moved = [i for i in range(len(node.inputs)) if node.is_probe_side(i) and node.moved(i) is not None]
    return holder.accumulates and bool(moved)


def _holder(node: PlanNode, facts: Facts) -> Holder:
    if node.name in facts.flow.in_workers:
        return node.worker_holder
    return SORT if node.name in facts.flow.sorts else node.holder


def _edges(plan: Plan, facts: Facts) -> Iterator[BufferEdge]:
    """By producer, then by who reads it, as they stand in the plan."""
    for producer in plan.nodes:
        for reader in dict.fromkeys(plan.readers(producer.name)):
            for i, ref in enumerate(reader.inputs):
                how = _how(facts, producer, reader, i)
                if ref.node == producer.name and how is not None:
                    yield BufferEdge(producer.name, ref.port, reader.name, 0, how)


def _how(facts: Facts, producer: PlanNode, reader: PlanNode, i: int) -> str | None:
    """What is done with the records of an input; None where they go on as they come."""
    flow = facts.flow
    if reader.name in flow.in_workers:
        if reader.is_build_side(i):
            return MAPPED
        return PARTS if reader.name in flow.totals else None
    if producer.name in facts.order.materialized:
        return KEPT
    how = "shuffle" if reader.name in flow.sorts else reader.moved(i)
    return FILES if how is None and producer.name in flow.in_workers and producer.name in flow.totals else how


def _numbered(edges: Iterator[BufferEdge]) -> Iterator[BufferEdge]:
    """What is kept is one slot for all of its readers."""
    slots: dict[object, int] = {}
    for edge in edges:
        place = (edge.producer, edge.port) if edge.how == KEPT else edge
        yield replace(edge, slot=slots.setdefault(place, len(slots)))
