"""In which order the jobs of outputs start, and which of them can be one job. What they write never depends on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan
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
    return replace(facts, resources=replace(facts.resources, launch_order=order, alike=alike))


def _job(plan: Plan, facts: Facts, output: OutputPlan) -> Candidate:
    """A job begins with its sources, which give nothing back by themselves: what counts is where they lead to."""
    nodes = [*plan.upstream(output.name), output]
    peak = max(facts.resources.predicted[node.name].peak for node in nodes)
    reclaim = max(
        (facts.resources.predicted[node.name].subtree_reclaim for node in nodes if not node.inputs), default=0
    )
    return Candidate(output.name, plan.places[output.name], peak, 0, reclaim)
