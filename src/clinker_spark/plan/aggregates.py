"""Binding aggregates: the program, the windows over time, and how groups are found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clinker_spark.config.model.aggregate import AggregateNode
from clinker_spark.plan.compositions import Streams
from clinker_spark.plan.correlation import AGGREGATE, correlation
from clinker_spark.plan.nodes import AggregatePlan
from clinker_spark.plan.sorted_streams import are_neighbours, sorted_by

if TYPE_CHECKING:
    from clinker_spark.plan.bind import _NodeBinder


def bind_aggregate(binder: _NodeBinder, node: AggregateNode) -> Streams | None:
    """The streams of an aggregate; None when it is wrong, which is noted then."""
    schema = binder.inputs[0].schema
    config = node.config
    if not binder.known(schema, config.group_by, "config", "group_by"):
        return None
    program = binder.compile("config", "cxl", schema=schema, mode="aggregate", group_by=config.group_by)
    if program is None:
        return None
    after = dict(program.output)
    plan = AggregatePlan(
        **binder.common(after, tuple(after)),
        program=program,
        group_by=tuple(config.group_by),
        strategy="hash",
        per_document=any(bound.documents for bound in binder.inputs),
    )
    made = binder.made(plan)
    problem = _not_streaming(binder, node, plan)
    if problem is None and config.strategy != "hash":
        binder.binder.nodes[-1] = replace(plan, strategy="streaming")
    elif problem is not None and config.strategy == "streaming":
        code, message, help_text = problem
        binder.problem(code, message, "config", "strategy", help=help_text)
        return None
    return made


def _not_streaming(binder: _NodeBinder, node: AggregateNode, plan: AggregatePlan) -> tuple[str, str, str] | None:
    """Why its groups cannot be finished one after the other: code, message and help; None when they can."""
    nodes = binder.binder.nodes
    if any(name.startswith(AGGREGATE) for name in correlation(nodes)[plan.name].columns):
        message = f"'{node.name}' retracts records: strategy: streaming does not go with that"
        return "E15Y", message, "write strategy: auto"
    sorting = sorted_by(nodes)[plan.inputs[0].node]
    if are_neighbours(plan.group_by, sorting):
        return None
    known = f"sorted by {', '.join(item.field for item in sorting)}" if sorting else "in no known order"
    message = f"the records that '{node.name}' reads are {known}, not by {', '.join(plan.group_by)}"
    columns = ", ".join(plan.group_by)
    return "E451", message, f"write strategy: auto, or give the source sort_order: [{columns}] if its files are sorted"
