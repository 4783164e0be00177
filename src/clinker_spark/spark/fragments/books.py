"""What the ledger of a pass must know about the nodes of a fragment: the laws that Spark's operators write down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.ledger import End, Flow, count, total
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.route import RoutePlan
from clinker_spark.plan.nodes.transform import TransformPlan
from clinker_spark.spark.fragments.steps import filter_places, settles
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


def write_down(builder: Builder, fragment: Fragment, flow: Flow, *, fallible: bool) -> None:
    """All laws and entries, from the source to its outputs."""
    source, *others = (builder.plan[name] for name in fragment.nodes)
    stream = Counted(flow)
    if fallible:
        stream = _marked(builder, source, stream)
    if settles(builder, source):
        stream = _settled(builder, source, stream)
    builder.ledger.entry(source.name).passed = {None: End(stream.flow, stream.carried)}
    streams: dict[tuple[str, str | None], Counted] = {(source.name, None): stream}
    for node in others:
        given = node.inputs[0]
        came = streams[given.node, given.port]
        builder.ledger.entry(node.name).took[str(given)] = End(came.flow, came.carried)
        left = _BOOKS[type(node)](builder, node, came)
        streams.update({(node.name, port): stream for port, stream in left.items()})


def _marked(builder: Builder, node: PlanNode, stream: Counted) -> Counted:
    if node.name not in builder.plan.facts.fallible:
        return stream
    return replace(stream, carried=tuple(dict.fromkeys((*stream.carried, node.name))))


def _settled(builder: Builder, node: PlanNode, stream: Counted) -> Counted:
    rows, gone = count(f"{node.name}: rows"), count(f"{node.name}: failed")
    what = "takes {left} records, and {right} are there where failures are set aside"
    builder.ledger.law(node.name, what, stream.flow, rows)
    builder.ledger.entry(node.name).failed[node.name] = gone
    return Counted(rows - gone)


def _transform(builder: Builder, node: TransformPlan, stream: Counted) -> Streams:
    entry = builder.ledger.entry(node.name)
    for place, name in enumerate(filter_places(node)):
        rows, kept = count(f"{name}: rows"), count(f"{name}: kept")
        what = f"takes {{left}} records, and {{right}} reach its {name}"
        builder.ledger.law(node.name, what, stream.flow, rows)
        entry.dropped["filter", place] = rows - kept
        stream = replace(stream, flow=kept)
    stream = _marked(builder, node, stream)
    if settles(builder, node):
        stream = _settled(builder, node, stream)
    entry.passed = {None: End(stream.flow, stream.carried)}
    return {None: stream}


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


_BOOKS: dict[type[PlanNode], Callable[[Builder, Any, Counted], Streams]] = {
    TransformPlan: _transform,
    RoutePlan: _route,
    OutputPlan: _output,
}
