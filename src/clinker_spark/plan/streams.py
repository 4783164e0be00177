"""A plan as streams: which queries it is, and what of it cannot go on over records that never end.

Spark runs one query for each place from which records go to outputs without being held any more: its *root*, a stateful
node, a merge or a source. What stands after the root is done batch by batch, as in a run over files.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan

INSTEAD = {
    "combine": "join streams with 'type: stream_join'; look-ups in files belong into a run over files",
    "aggregate": "a stream has totals only of windows of time: add 'time_window', behind a source with a watermark",
    "query": "a query needs all of its records: write what the stream puts out to files, and query these",
    "transform": "windows, look-ups and shared variables need all records: leave them to a run over the results",
    "merge": "write mode: concat; taking turns needs all records",
}


@dataclass(frozen=True)
class StreamQuery:
    """One query of Spark."""

    root: PlanNode
    outputs: tuple[OutputPlan, ...]
    sources: tuple[SourcePlan, ...]
    stateful: tuple[PlanNode, ...]

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def lag(self) -> dt.timedelta:
        """How much further than the delays of sources its watermark stays behind."""
        return max((getattr(node, "lag", dt.timedelta(0)) for node in self.stateful), default=dt.timedelta(0))


def check_finite(plan: Plan) -> None:
    """Can the plan be run to an end? Raises `PlanError` for sources and outputs that only streams have."""
    found = [
        node.diagnostic(
            "E504", f"'{node.name}' is {what} of type {node.config.type}, {why}", "config", "type", help=help
        )
        for nodes, what, why, help in (
            (plan.sources, "a source", "which never ends", "use clinker stream, or read files here"),
            (plan.outputs, "an output", "which only streams write", "use clinker stream, or write files here"),
        )
        for node in nodes
        if node.config.stream_only
    ]
    if found:
        raise PlanError(found)


def queries(plan: Plan) -> tuple[StreamQuery, ...]:
    """The queries of a plan. Raises `PlanError` when it cannot be a stream."""
    found = [*_finite(plan), *_between(plan)]
    if found:
        raise PlanError(found)
    roots: dict[str, list[OutputPlan]] = {}
    for output in plan.outputs:
        roots.setdefault(_root(plan, output).name, []).append(output)
    result = []
    for name, outputs in roots.items():
        before = [*plan.upstream(name), plan[name]]
        sources = [source for source in plan.sources if source in before]
        stateful = tuple(node for node in before if node.stateful)
        result.append(StreamQuery(plan[name], tuple(outputs), tuple(sources), stateful))
    return tuple(result)


def _root(plan: Plan, output: OutputPlan) -> PlanNode:
    node: PlanNode = output
    while len(node.inputs) == 1 and not node.stateful:
        node = plan[node.inputs[0].node]
    return node


def _finite(plan: Plan) -> Iterator[Diagnostic]:
    """The nodes that need all records."""
    for node in plan.nodes:
        shared = [d for d in node.declares if d.scope != "record"]
        alone = node.takes_each_alone and not shared and (node.unites or len(node.inputs) < 2)
        if node.stateful or alone:
            continue
        message = f"'{node.name}' cannot be part of a stream: a {node.kind} like this needs all records"
        yield node.diagnostic("E503", message, "type", help=INSTEAD.get(node.kind))


def _between(plan: Plan) -> Iterator[Diagnostic]:
    """A record that fails between two joins is made of records that are gone when its letter is written."""
    for node in plan.nodes:
        held = any(before.stateful for before in plan.upstream(node.name))
        if held and node.can_fail and any(after.stateful for after in _downstream(plan, node)):
            message = f"records may fail at '{node.name}', between two nodes that hold records"
            help_text = "do what can fail before the first of them, or after the last one"
            yield node.diagnostic("E509", message, "type", help=help_text)


def _downstream(plan: Plan, node: PlanNode) -> Iterator[PlanNode]:
    todo, seen = [node], {node.name}
    while todo:
        for reader in plan.readers(todo.pop().name):
            if reader.name not in seen:
                seen.add(reader.name)
                todo.append(reader)
                yield reader
