"""In which order the jobs of outputs start, which of them can be one job, and which of two chains that meet in a job is
made first. What they write never depends on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan

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
    # A limit that nobody wrote is that of the machine, and plans are the same on all machines.
    headroom = None if plan.memory_limit is None else int(plan.memory_limit * SOFT)
    jobs = sorted((_job(plan, facts, output) for output in plan.outputs), key=lambda job: rank(job, headroom))
    order = tuple(job.name for job in jobs)
    kinds = {output.name: output.job_kind for output in plan.outputs}
    alike = {
        name: tuple(other for other in order[i + 1 :] if kinds[name] is not None and kinds[other] == kinds[name])
        for i, name in enumerate(order)
    }
    ahead = {node.name: found for node in plan.nodes if (found := _ahead(plan, facts, node, headroom))}
    return replace(facts, resources=replace(facts.resources, launch_order=order, alike=alike, ahead=ahead))


def _job(plan: Plan, facts: Facts, output: OutputPlan) -> Candidate:
    nodes = [*plan.upstream(output.name), output]
    return _candidate(facts, output.name, plan.places[output.name], nodes)


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
    return _candidate(facts, node.input_names[inputs[0]], place, [n for n in plan.nodes if n.name in names])


def _candidate(facts: Facts, name: str, index: int, nodes: Sequence[PlanNode]) -> Candidate:
    """It begins with its sources, which give nothing back by themselves: what counts is where they lead to."""
    predicted = facts.resources.predicted
    peak = max(predicted[node.name].peak for node in nodes)
    reclaim = max((predicted[node.name].subtree_reclaim for node in nodes if not node.inputs), default=0)
    return Candidate(name, index, peak, 0, reclaim)
