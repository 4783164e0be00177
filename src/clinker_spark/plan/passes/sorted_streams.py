"""By which columns the records of each node are known to be sorted, file by file.

A source declares it; nodes that keep records in order, and their columns as they are, hand it on. Merges and combines
do not, and neither do queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from clinker_spark.config.model.order import SortField
from clinker_spark.cxl import ir
from clinker_spark.plan.nodes import AggregatePlan, OutputPlan, PlanNode, RoutePlan, SourcePlan, TransformPlan
from clinker_spark.plan.passes.correlation import copies

Sorting = tuple[SortField, ...]


def sorted_by(nodes: Sequence[PlanNode]) -> dict[str, Sorting]:
    """The sorting of every node's records; empty where nothing is known."""
    found: dict[str, Sorting] = {}
    for node in nodes:
        before = found[node.inputs[0].node] if node.inputs else ()
        found[node.name] = _sorting(node, before)
    return found


def _sorting(node: PlanNode, before: Sorting) -> Sorting:
    if isinstance(node, SourcePlan):
        return tuple(node.config.sort_order)
    if isinstance(node, TransformPlan):
        rewritten = {name for name in node.program.output if not copies(node, name)}
        return tuple(takewhile(lambda item: item.field not in rewritten, before))
    if isinstance(node, AggregatePlan):
        # Groups come in the order of their first records: sorted, as far as the order is part of the group.
        emitted = {s.name for s in node.program.typed.statements if isinstance(s, ir.TEmit)}
        kept = set(node.group_by) - emitted
        return tuple(takewhile(lambda item: item.field in kept, before)) if node.window is None else ()
    return before if isinstance(node, RoutePlan | OutputPlan) else ()


def are_neighbours(group_by: Sequence[str], sorting: Sorting) -> bool:
    """Do the records of each group stand together? Yes, if the sorting begins with the columns of the group.

    >>> are_neighbours(["b", "a"], (SortField(field="a"), SortField(field="b"), SortField(field="c")))
    True
    >>> are_neighbours(["b"], (SortField(field="a"), SortField(field="b")))
    False
    """
    return {item.field for item in sorting[: len(group_by)]} == set(group_by)
