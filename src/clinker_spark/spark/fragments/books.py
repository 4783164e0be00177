"""What the ledger of a pass must know about the nodes of a fragment: the laws that Spark's operators write down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.ledger import End, Entry, Flow, count, total
from clinker_spark.plan.nodes.aggregate import AggregatePlan
from clinker_spark.plan.nodes.base import PlanNode, StreamRef
from clinker_spark.plan.nodes.combine import CombinePlan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.route import RoutePlan
from clinker_spark.plan.nodes.transform import TransformPlan
from clinker_spark.spark.fragments.joins.steps import keys_place, settles_keys
from clinker_spark.spark.fragments.steps import (
    ROWS,
    filter_places,
    is_counted_anew,
    sets_rows_aside,
    settles,
    taking,
    taking_all,
)
from clinker_spark.spark.joins.flow import matched
from clinker_spark.spark.operators.route import UNREAD

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


@dataclass(frozen=True)
class Counted:
    """A stream without its records: how many there are, and where some may have failed."""

    flow: Flow
    carried: tuple[str, ...] = ()


Streams = Mapping[str | None, Counted]
"""What leaves a node, by its ports."""


def write_down(builder: Builder, fragment: Fragment, flows: Mapping[str, Flow]) -> None:
    """All laws and entries, from the sources, with as many records, to their outputs."""
    streams: dict[tuple[str, str | None], Counted] = {}
    for name in fragment.sources:
        source, stream = builder.plan[name], Counted(flows[name])
        if builder.scans[name].fallible:
            stream = _marked(builder, source, stream)
        if settles(builder, source):
            stream = _settled(builder, source, stream)
        builder.ledger.entry(name).passed = {None: End(stream.flow, stream.carried)}
        streams[name, None] = stream
    for node in (node for name in fragment.nodes if (node := builder.plan[name]).inputs):
        entry, came = builder.ledger.entry(node.name), {}
        for given in node.inputs:
            if (given.node, given.port) in streams:
                came[given] = streams[given.node, given.port]
                entry.took[str(given)] = End(came[given].flow, came[given].carried)
            else:  # looked up: it was built by Spark
                found = builder.stream(given)
                entry.took[str(given)] = End(found.flow, found.carried)
        left = _merge(builder, node, came) if node.unites else _BOOKS[type(node)](builder, node, *came.values())
        streams.update({(node.name, port): stream for port, stream in left.items()})


def _marked(builder: Builder, node: PlanNode, stream: Counted) -> Counted:
    if node.name not in builder.plan.facts.fallible:
        return stream
    return replace(stream, carried=tuple(dict.fromkeys((*stream.carried, node.name))))


def _settled(builder: Builder, node: PlanNode, stream: Counted, place: str | None = None) -> Counted:
    builder.rejects.diverting.add(node.name)
    name = node.name if place is None else f"{node.name}.{place}"
    rows, gone = count(f"{name}: rows"), count(f"{name}: failed")
    what = "takes {left} records, and {right} are there where failures are set aside"
    builder.ledger.law(node.name, what if place is None else f"{what} ({place})", stream.flow, rows)
    builder.ledger.entry(node.name).failed[name] = gone
    return Counted(rows - gone)


def _transform(builder: Builder, node: TransformPlan, stream: Counted) -> Streams:
    entry = builder.ledger.entry(node.name)
    stream = _marked(builder, node, _filtered(builder, node, entry, stream))
    if settles(builder, node):
        stream = _settled(builder, node, stream)
    entry.passed = {None: End(stream.flow, stream.carried)}
    return {None: stream}


def _filtered(
    builder: Builder, node: TransformPlan | AggregatePlan | CombinePlan, entry: Entry, stream: Counted
) -> Counted:
    for place, name in enumerate(filter_places(node)):
        rows, kept = count(f"{name}: rows"), count(f"{name}: kept")
        what = f"takes {{left}} records, and {{right}} reach its {name}"
        builder.ledger.law(node.name, what, stream.flow, rows)
        entry.dropped["filter", place] = rows - kept
        stream = replace(stream, flow=kept)
    return stream


def _output(builder: Builder, node: OutputPlan, stream: Counted) -> Streams:
    entry = builder.ledger.entry(node.name)
    written, failed = count(f"{node.name}: rows"), count(f"{node.name}: failed")
    what = "takes {left} records, and {right} were written, failed or left out"
    builder.ledger.law(node.name, what, stream.flow, written + failed)
    entry.passed[None] = End(written)
    entry.failed[node.name] = failed
    return {}


def _route(builder: Builder, node: RoutePlan, stream: Counted) -> Streams:
    ledger = builder.ledger
    if node.inclusive and not ledger.is_counted(stream.flow):
        rows = count(f"{node.name}.takes its input: rows")
        ledger.law(node.name, "takes {left} records of its input, and {right} were counted", stream.flow, rows)
        stream = replace(stream, flow=rows)
    decided = _settled(builder, node, _marked(builder, node, stream))
    flows = {port: ledger.unknown(f"{node.name}.to {port}") for port in node.ports}
    read = [flows[port] for port in node.ports if port in builder.plan.read_ports(node.name)]
    entry = ledger.entry(node.name)
    if not node.inclusive:
        if len(read) < len(node.ports):
            read.append(ledger.unknown(f"{node.name}.to nobody"))
            entry.dropped[UNREAD, 0] = read[-1]
        what = "takes {left} records, and {right} leave it by its ports"
        ledger.law(node.name, what, decided.flow, total(read))
    entry.passed = {p: End(flows[p]) for p in node.ports if p in builder.plan.read_ports(node.name)}
    return {port: Counted(flows[port]) for port in node.ports}


def _merge(builder: Builder, node: PlanNode, came: Mapping[StreamRef, Counted]) -> Streams:
    flows = []
    for given, stream in came.items():
        flows.append(stream.flow)
        if is_counted_anew(given):
            flows[-1] = count(f"{taking(node, given)}: rows")
            what = f"takes {{left}} records of {given}, and {{right}} were counted"
            builder.ledger.law(node.name, what, stream.flow, flows[-1])
    made = Counted(total(flows))
    builder.ledger.entry(node.name).passed = {None: End(made.flow)}
    return {None: made}


def _combine(builder: Builder, node: CombinePlan, stream: Counted) -> Streams:
    for step in node.steps:
        if settles_keys(node, step):
            stream = _settled(builder, node, _marked(builder, node, stream), keys_place(step))
        stream = replace(stream, flow=matched(builder, node, step, stream.flow))
    stream = _marked(builder, node, _filtered(builder, node, builder.ledger.entry(node.name), stream))
    if settles(builder, node):
        stream = _settled(builder, node, stream)
    builder.ledger.entry(node.name).passed = {None: End(stream.flow, stream.carried)}
    return {None: stream}


def _aggregate(builder: Builder, node: AggregatePlan, stream: Counted) -> Streams:
    """Up to where its records become groups; these are counted by Spark."""
    entry = builder.ledger.entry(node.name)
    if is_counted_anew(node.inputs[0]):
        rows = count(f"{taking_all(node)}: rows")
        what = "takes {left} records of all, and {right} were counted"
        builder.ledger.law(node.name, what, stream.flow, rows)
        stream = replace(stream, flow=rows)
    stream = _filtered(builder, node, entry, stream)
    if sets_rows_aside(node):
        _settled(builder, node, _marked(builder, node, stream), ROWS)
    return {}


_BOOKS: dict[type[PlanNode], Callable[[Builder, Any, Counted], Streams]] = {
    TransformPlan: _transform,
    RoutePlan: _route,
    CombinePlan: _combine,
    OutputPlan: _output,
    AggregatePlan: _aggregate,
}
