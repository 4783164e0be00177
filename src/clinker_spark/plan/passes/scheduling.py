"""In which order the jobs of outputs start, which of them can be one job, and which of two chains that meet in a job is
made first. What they write never depends on it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from clinker_spark.plan.budget import default_limit
from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.small_inputs import is_small

SOFT = 0.80
"""The share of the limit from which on memory runs short."""


@dataclass(frozen=True)
class Candidate:
    """Something that could start now."""

    name: str
    index: int
    """Its place in the plan."""
    peak: int = 0
    freed: int = 0
    subtree_reclaim: int = 0


def rank(candidate: Candidate, headroom: int | None) -> tuple[bool, int, int, int]:
    """The lowest starts first: one that fits what is left of the limit before one that does not, then the one that
    gives back most as soon as it is done, then the one whose chain gives back most, then the first of the plan.

    >>> light, heavy = Candidate("light", 0, peak=10, subtree_reclaim=10), Candidate("heavy", 1, 90, 0, 90)
    >>> [min([light, heavy], key=lambda c: rank(c, headroom)).name for headroom in (None, 50)]
    ['heavy', 'light']
    """
    fits = headroom is None or candidate.peak <= headroom
    return not fits, -candidate.freed, -candidate.subtree_reclaim, candidate.index


def find_launch_order(plan: Plan, facts: Facts) -> Facts:
    headroom = int((plan.memory_limit or default_limit()) * SOFT)
    order = _launched(plan, facts, headroom)
    kinds = {output.name: output.job_kind for output in plan.outputs}
    alike = {
        name: tuple(other for other in order[i + 1 :] if kinds[name] is not None and kinds[other] == kinds[name])
        for i, name in enumerate(order)
    }
    ahead = {node.name: found for node in plan.nodes if (found := _ahead(plan, facts, node, headroom))}
    return replace(facts, resources=replace(facts.resources, launch_order=order, alike=alike, ahead=ahead))


def _launched(plan: Plan, facts: Facts, headroom: int) -> tuple[str, ...]:
    """The outputs in the order of their jobs. What a job keeps for others is there while they are chosen: it takes of
    the headroom, need not be made again, and the last one that reads it gives it back."""
    readers = {
        name: {output.name for output in plan.outputs if plan[name] in plan.upstream(output.name)}
        for name in _kept(facts)
    }
    waiting = {output.name: output for output in plan.outputs}
    order: list[str] = []
    while waiting:
        there = {name for name, outputs in readers.items() if outputs - waiting.keys() and outputs & waiting.keys()}
        left = headroom - sum(facts.resources.predicted[name].peak for name in there)
        jobs = [_job(plan, facts, output, there) for output in waiting.values()]
        for i, job in enumerate(jobs):
            last = [name for name in there if readers[name] & waiting.keys() == {job.name}]
            jobs[i] = replace(job, freed=sum(facts.resources.predicted[name].peak for name in last))
        chosen = min(jobs, key=lambda job: rank(job, left))
        order.append(chosen.name)
        del waiting[chosen.name]
    return tuple(order)


def _kept(facts: Facts) -> tuple[str, ...]:
    """The nodes whose records outputs leave to each other: not those of small inputs, or of groups."""
    if facts.correlation.correlated or is_small(facts.resources.input_bytes):
        return ()
    return facts.order.materialized


def _job(plan: Plan, facts: Facts, output: OutputPlan, there: Collection[str]) -> Candidate:
    """The job of an output, which begins with sources, and with what is kept already."""
    nodes: dict[str, PlanNode] = {}
    todo: list[PlanNode] = [output]
    while todo:
        node = todo.pop()
        nodes[node.name] = node
        todo += [plan[ref.node] for ref in node.inputs if ref.node not in there and ref.node not in nodes]
    predicted = facts.resources.predicted
    first = [node for node in nodes.values() if all(ref.node in there for ref in node.inputs)]
    reclaim = max((predicted[node.name].subtree_reclaim for node in first), default=0)
    return Candidate(output.name, plan.places[output.name], max(predicted[n].peak for n in nodes), 0, reclaim)


def _ahead(plan: Plan, facts: Facts, node: PlanNode, headroom: int | None) -> tuple[str, ...]:
    """The inputs that are made before those which they join. Of chains that are alike the left one stays the first."""
    found = []
    for met, other in node.convergences:
        left, right = (_chain(plan, facts, node, place, inputs) for place, inputs in ((0, met), (1, (other,))))
        if rank(right, headroom) < rank(left, headroom):
            found.append(right.name)
    return tuple(found)


def _chain(plan: Plan, facts: Facts, node: PlanNode, place: int, inputs: tuple[int, ...]) -> Candidate:
    names = {node.inputs[i].node for i in inputs}
    names |= {before.name for name in names for before in plan.upstream(name)}
    nodes = [n for n in plan.nodes if n.name in names]
    # It begins with its sources, which give nothing back by themselves: what counts is where they lead to.
    predicted = facts.resources.predicted
    peak = max(predicted[n.name].peak for n in nodes)
    reclaim = max((predicted[n.name].subtree_reclaim for n in nodes if not n.inputs), default=0)
    return Candidate(node.input_names[inputs[0]], place, peak, 0, reclaim)
