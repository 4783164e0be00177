"""How much memory each node is expected to hold, by the sizes of the files that are there before the run.

A source of one file brings the bytes of that file, and they are handed on: what nodes make of them is not known. Behind
a source of several files, or of a file that is not there, nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clinker_spark.plan.facts import Facts, Predicted
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode


def find_predictions(plan: Plan, facts: Facts) -> Facts:
    found: dict[str, Predicted] = {}
    known: dict[str, bool] = {}
    for node in plan.nodes:
        before = [found[ref.node].peak for ref in node.inputs]
        known[node.name] = all(known[ref.node] for ref in node.inputs) if before else node.name in plan.file_sizes
        if not known[node.name]:
            found[node.name] = Predicted()
        elif before:
            found[node.name] = Predicted(sum(before), _held(facts, node, before))
        else:
            found[node.name] = Predicted(plan.file_sizes[node.name])
    reclaim: dict[str, int] = {}
    for node in reversed(plan.nodes):
        # Where chains meet, what comes after belongs to none of them.
        chain = [reader for reader in plan.readers(node.name) if len({ref.node for ref in reader.inputs}) == 1]
        reclaim[node.name] = max([found[node.name].freed, *(reclaim[reader.name] for reader in chain)])
    predicted = {name: replace(made, subtree_reclaim=reclaim[name]) for name, made in found.items()}
    return replace(facts, resources=replace(facts.resources, predicted=predicted))


def _held(facts: Facts, node: PlanNode, before: Sequence[int]) -> int:
    """What it does with memory is a fact: an output may have to sort, and in workers nothing is sorted."""
    if node.name in facts.flow.sorts or node.name in facts.flow.totals:
        return sum(before)
    if node.name in facts.flow.in_workers:
        return sum(size for i, size in enumerate(before) if node.is_build_side(i))
    return node.held(before)
