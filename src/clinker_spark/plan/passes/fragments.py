"""Which parts of the graph run vectorised, in the workers that read the files (decision 0050).

A fragment begins with sources and has all nodes that their records come to, up to the text of outputs, or to aggregates
whose groups workers can make: what follows these is Spark's. If one of its nodes has no vector form, the records of all
these sources go through Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from clinker_spark.core.fast_paths import taken
from clinker_spark.core.types import Kind
from clinker_spark.cxl.vector.reasons import is_vector_name
from clinker_spark.plan.budget import LARGE, default_limit
from clinker_spark.plan.facts import Facts, Fragment
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.small_inputs import is_small

Ends = dict[str, PlanNode]
"""The aggregates at which a fragment ends."""
Reason = tuple[str, str]
"""The node that stands in the way, and why."""
_TOGETHER = {Kind.NULL, Kind.INT, Kind.FLOAT}
"""Kinds of columns that merges may turn into each other without a doubt."""


def find_fragments(plan: Plan, facts: Facts) -> Facts:
    by_output: dict[str, Fragment] = {}
    totals: dict[str, Fragment] = {}
    unfit: dict[str, Reason] = {}
    vector = plan.file.settings.engine != "spark" and taken("fragments")
    groups = [_up_to_totals(plan, nodes) for nodes in _groups(plan)] if vector else []
    waiting = _waiting(plan, groups)
    for nodes, ends in groups:
        sources = [source for source in plan.sources if source in nodes]
        reason = _reason(plan, facts, sources, nodes, ends)
        if reason is None and ends and (plan.memory_limit or default_limit()) < LARGE:
            reason = next(iter(ends)), "below 4 GB of memory Spark makes the groups, as it can move them to disk"
        if reason is None:
            reason = next((waiting[node.name] for node in nodes if node.name in waiting), None)
        order, out_of_order = _source_order(nodes) if reason is None else ((), reason)
        if out_of_order is not None:
            unfit.update((source.name, out_of_order) for source in sources)
            continue
        names = {node.name for node in nodes}
        outputs = tuple(output.name for output in plan.outputs if output.name in names)
        others = tuple(node.name for node in nodes if node.inputs)
        fragment = Fragment(order, (*order, *others), outputs, tuple(ends))
        totals.update(dict.fromkeys(ends, fragment))
        by_output.update(dict.fromkeys(outputs, fragment))
    facts = replace(facts, flow=replace(facts.flow, fragments=by_output, totals=totals, unfit=unfit))
    return _in_this_run(plan, facts)


def _in_this_run(plan: Plan, facts: Facts) -> Facts:
    """What is in workers when the plan runs on this machine, and what that means for the order of records."""
    small = is_small(facts.resources.input_bytes)
    in_workers: set[str] = set()
    for fragment in (*facts.flow.fragments.values(), *facts.flow.totals.values()):
        joins = any(not plan[name].is_probe_side(i) for name in fragment.nodes for i in range(len(plan[name].inputs)))
        if not (small and (joins or fragment.totals)):
            in_workers.update(fragment.nodes)
    lies: dict[str, bool] = {}
    sorts = set()
    for node in plan.nodes:
        before = [lies[ref.node] for ref in node.inputs]
        lies[node.name] = node.name in in_workers or (node.in_order(before) if before else _as_read(facts, node))
        if before and node.name not in in_workers and node.sorts(in_order=before[0]):
            sorts.add(node.name)
    in_order = frozenset(name for name, here in lies.items() if here)
    flow = replace(facts.flow, in_workers=frozenset(in_workers), in_order=in_order, sorts=frozenset(sorts))
    return replace(facts, flow=flow)


def _as_read(facts: Facts, source: PlanNode) -> bool:
    return source.name in facts.order.in_order


def _taken(node: PlanNode) -> list[str]:
    """The nodes whose records go on in this one; those that are only looked up come from Spark."""
    return [ref.node for i, ref in enumerate(node.inputs) if node.is_probe_side(i)]


def _groups(plan: Plan) -> list[list[PlanNode]]:
    """Sources with everything that their records come to, in the order of the plan; those whose records come together
    are in one group."""
    groups: list[set[str]] = []
    for source in plan.sources:
        found, todo = {source.name}, [source.name]
        while todo:
            name = todo.pop()
            new = {node.name for node in plan.readers(name) if name in _taken(node)} - found
            found |= new
            todo += new
        for other in [group for group in groups if group & found]:
            groups.remove(other)
            found |= other
        groups.append(found)
    return [sorted((plan[name] for name in group), key=lambda node: plan.places[node.name]) for group in groups]


def _up_to_totals(plan: Plan, nodes: list[PlanNode]) -> tuple[list[PlanNode], Ends]:
    """The nodes up to the aggregates that records come to first, and these; all of them, if there are none, or if what
    follows them takes records that come to none."""
    before: dict[str, PlanNode] = {}
    ends: dict[str, PlanNode] = {}
    for node in nodes:  # in the order of the plan, so what comes to it was there before
        if before.keys() >= {*_taken(node)}:
            (ends if node.totals else before)[node.name] = node
    if any(reader.name not in before | ends for name in before for reader in plan.readers(name)):
        return nodes, {}
    return [*before.values(), *ends.values()], ends


def _waiting(plan: Plan, groups: Sequence[tuple[list[PlanNode], Ends]]) -> dict[str, Reason]:
    """By node that would wait for itself: all ends of a fragment are made by one job, and before it what is looked up
    there. So none of that may come from groups which this job makes, be it by way of other fragments."""
    made_in = {name: i for i, (_, ends) in enumerate(groups) for name in ends}
    looked_up: dict[int, dict[str, set[int]]] = {}
    for i, (nodes, _) in enumerate(groups):
        for node in nodes:
            built = [ref.node for at, ref in enumerate(node.inputs) if not node.is_probe_side(at)]
            above = {other.name for name in built for other in (plan[name], *plan.upstream(name))}
            if found := {made_in[name] for name in above if name in made_in}:
                looked_up.setdefault(i, {})[node.name] = found
    why = "what is looked up there is made of groups that the same job makes"
    found_waiting: dict[str, Reason] = {}
    for i, by_node in looked_up.items():
        for name, todo in by_node.items():
            seen = set(todo)
            while more := {k for j in seen for found in looked_up.get(j, {}).values() for k in found} - seen:
                seen |= more
            if i in seen:
                found_waiting[name] = (name, why)
    return found_waiting


def _reason(
    plan: Plan, facts: Facts, sources: Sequence[SourcePlan], nodes: Sequence[PlanNode], ends: Ends
) -> Reason | None:
    if facts.correlation.correlated:
        return sources[0].name, "records that fail take their groups or files along"
    for node in nodes:
        for reader in plan.readers(node.name) if node.name not in ends else ():
            if node.name not in _taken(reader):
                return reader.name, f"records of '{node.name}' are looked up there"
        why = node.vector_reason if node.name not in ends else node.totals_reason
        if node.totals and node.name not in ends and node.totals_reason is None:
            why = "what follows it takes records that do not come to it, too"
        if why is not None:
            return node.name, why
        if not all(map(is_vector_name, node.schema)):
            return node.name, "names of columns are patterns to Polars"
        if node.unites and (changed := _changed(plan, node)) is not None:
            return node.name, f"'{changed}' is of another type in some input"
    outputs = [output for output in plan.outputs if output in nodes]
    for source in sources:
        need = facts.columns.required[source.name]
        if need.document or need.event or need.members:
            return source.name, "the place or the file of each record is asked for"
        shows = any(output.config.include_unmapped for output in outputs)
        if len(sources) > 1 and source.widens and source.config.type != "csv" and shows:
            return source.name, "its undeclared columns, which others come together with, are known late"
    return None


def _changed(plan: Plan, node: PlanNode) -> str | None:
    """A column that only Spark makes of those of the inputs."""
    for name, t in node.schema.items():
        for given in (plan[ref.node].schema[name] for ref in node.inputs):
            same = given.unwrap() == t.unwrap() or (given.kind is t.kind and t.kind is not Kind.DECIMAL)
            if not same and given.kind is not Kind.NULL and not {given.kind, t.kind} <= _TOGETHER:
                return name
    return None


def _source_order(nodes: Sequence[PlanNode]) -> tuple[tuple[str, ...], Reason | None]:
    """An order of the sources in which all nodes get their records; or who wants something else.

    What the workers write lies in the order of the splits. So a node cannot first take some records of a source, and
    then others of it."""
    came: dict[str, list[str]] = {}
    graph: TopologicalSorter[str] = TopologicalSorter()
    for node in nodes:
        came[node.name] = [name for taken in _taken(node) for name in came[taken]] or [node.name]
        if len(set(came[node.name])) < len(came[node.name]):
            return (), (node.name, "it takes the records of one source in several parts")
        if not node.inputs:
            graph.add(node.name)
        for before, after in pairwise(came[node.name]):
            graph.add(after, before)
    try:
        return tuple(graph.static_order()), None
    except CycleError:
        last = next(node for node in reversed(nodes) if node.unites)
        return (), (last.name, "merges want their sources in different orders")
