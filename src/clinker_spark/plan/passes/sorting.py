"""By which columns the records of each node are known to be sorted, file by file.

A source declares it; nodes that keep records in order, and their columns as they are, hand it on. Merges and combines
do not, and neither do queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clinker_spark.plan.facts import Facts, Sorting
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode


def find_sorting(plan: Plan, facts: Facts) -> Facts:
    found: dict[str, Sorting] = {}
    for node in plan.nodes:
        found[node.name] = sorting_of(node, found)
    return replace(facts, order=replace(facts.order, sorting=found))


def sorting_of(node: PlanNode, found: Mapping[str, Sorting]) -> Sorting:
    """The sorting of one node's records; empty where nothing is known."""
    return node.sorting([found[ref.node] for ref in node.inputs])


def are_neighbours(group_by: Sequence[str], sorting: Sorting) -> bool:
    """Do the records of each group stand together? Yes, if the sorting begins with the columns of the group.

    >>> from clinker_spark.config.model.order import SortField
    >>> from clinker_spark.config.model.order import SortField
    >>> are_neighbours(["b", "a"], (SortField(field="a"), SortField(field="b"), SortField(field="c")))
    True
    >>> are_neighbours(["b"], (SortField(field="a"), SortField(field="b")))
    False
    """
    return {item.field for item in sorting[: len(group_by)]} == set(group_by)
