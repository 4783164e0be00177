"""Routes: one column says which ports a record takes, and each port is a filter on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import PORT_COLUMN, PORT_PREFIX
from clinker_spark.plan.ledger import total
from clinker_spark.plan.nodes.route import RoutePlan
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.programs import apply
from clinker_spark.spark.columns.select import select_sql

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder
    from clinker_spark.spark.build.memo import Ports

UNREAD = "branch that nothing reads"
"""Why a record goes nowhere. The plan has a warning about it."""


def build_route(builder: Builder, node: RoutePlan) -> Ports:
    """A stream for each port. Records whose condition fails are diverted before they part."""
    [stream] = builder.inputs(node)
    if node.inclusive:  # what leaves it says nothing about how many came
        stream = builder.absorb(node, stream, "its input")
    frame = apply(node.program, builder.with_file_values(node, stream.frame), context=builder.context(node))
    marked = builder.mark(node, stream.over(frame))
    if builder.finds:
        marked = marked.over(builder.shared(marked.frame))
    decided = builder.divert(node, marked)
    if not builder.finds:
        decided = decided.over(builder.shared(decided.frame))
    names = [name for name in decided.frame.columns if not name.startswith(PORT_COLUMN)]
    ledger = builder.ledger
    flows = {port: ledger.unknown(f"{node.name}.to {port}") for port in node.ports}
    read = [flows[port] for port in node.ports if port in builder.plan.read_ports(node.name)]
    if not node.inclusive:  # each record takes one port
        if len(read) < len(node.ports):
            read.append(ledger.unknown(f"{node.name}.to nobody"))
            ledger.entry(node.name).dropped[UNREAD, 0] = read[-1]
        what = "takes {left} records, and {right} leave it by its ports"
        ledger.law(node.name, what, decided.flow, total(read))
    ports: Ports = {}
    for i, port in enumerate(node.ports):
        frame = select_sql(decided.frame.where(_takes(node, i)), map(quote, names))
        ports[port] = Stream(frame, stream.in_place, port, flows[port])
    return ports


def _takes(node: RoutePlan, port: int) -> str:
    if not node.inclusive:
        return f"{quote(PORT_COLUMN)} = {port}"
    matches = [f"coalesce({quote(f'{PORT_PREFIX}{i}')}, FALSE)" for i in range(len(node.conditions))]
    return matches[port] if port < len(matches) else " AND ".join(f"NOT {match}" for match in matches)
