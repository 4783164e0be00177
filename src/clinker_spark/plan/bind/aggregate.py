"""Binding aggregates: the program, the windows over time, and how groups are found."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from clinker_spark.config.model.aggregate import AggregateConfig, AggregateNode
from clinker_spark.plan.bind.event_time import event_sources
from clinker_spark.plan.bind.node import NodeBinder, Streams
from clinker_spark.plan.columns import CK_AGGREGATE_PREFIX
from clinker_spark.plan.nodes.aggregate import AggregatePlan, Lateness
from clinker_spark.plan.passes.correlation import keys_of
from clinker_spark.plan.passes.sorting import are_neighbours


def bind_aggregate(binder: NodeBinder, node: AggregateNode) -> Streams | None:
    """The streams of an aggregate; None when it is wrong, which is noted then."""
    config = node.config
    keys = binder.binder.known.keys[binder.inputs[0].ref.node].columns
    named = {name: t for name, t in keys.items() if name in config.group_by}  # $ck.aggregate.x, which users may name
    schema = {**binder.inputs[0].schema, **named}
    if not binder.known({**binder.inputs[0].schema, **keys}, config.group_by, "config", "group_by"):
        return None
    program = binder.compile("config", "cxl", schema=schema, mode="aggregate", group_by=config.group_by)
    if program is None:
        return None
    if config.time_window is not None and not _has_times(binder):
        return None
    after = {name: t for name, t in program.output.items() if name not in named}
    plan = AggregatePlan(
        **binder.common(after, tuple(after)),
        program=program,
        group_by=tuple(config.group_by),
        strategy="hash",
        documents=_documents(binder, config),
        window=None if config.time_window is None else config.time_window.window,
        late=_lateness(binder, config),
        delays=_delays(binder, config),
    )
    problem = _not_streaming(binder, node, plan)
    if problem is not None and config.strategy == "streaming":
        code, message, help_text = problem
        binder.problem(code, message, "config", "strategy", help=help_text)
        return None
    streams = problem is None and config.strategy != "hash"
    return binder.made(replace(plan, strategy="streaming") if streams else plan)


def _documents(binder: NodeBinder, config: AggregateConfig) -> str | None:
    """Are groups made file by file? None where all records come from one file."""
    [bound] = binder.inputs
    if config.documents == "separate" and (maker := binder.made_of_several(bound.ref.node)) is not None:
        message = f"'{maker.name}' makes records of several files: they belong to none of them"
        help_text = "write documents: together, or documents: separate there as well"
        binder.problem("E007", message, "config", "documents", help=help_text)
    if bound.documents:
        return config.documents or "separate"
    return (config.documents or "together") if len(binder.sources_of(bound.ref.node)) > 1 else None


def _lateness(binder: NodeBinder, config: AggregateConfig) -> Lateness | None:
    if config.time_window is None or config.time_window.late == "keep":
        return None
    sources, _ = event_sources(binder.binder, binder.inputs[0].ref.node)
    return Lateness(tuple(source.name for source in sources), config.allowed_lateness or dt.timedelta(0))


def _delays(binder: NodeBinder, config: AggregateConfig) -> tuple[dt.timedelta, ...]:
    if config.time_window is None:
        return ()
    sources, _ = event_sources(binder.binder, binder.inputs[0].ref.node)
    marks = [source.config.watermark for source in sources]
    return tuple(dt.timedelta(0) if mark is None or mark.delay is None else mark.delay for mark in marks)


def _has_times(binder: NodeBinder) -> bool:
    """Does every record that comes in have a time? Notes it if not."""
    sources, timeless = event_sources(binder.binder, binder.inputs[0].ref.node)
    for source in (source for source in sources if source.config.watermark is None):
        help_text = f"add watermark: {{ column: ... }} to '{source.name}': the date or date_time of its records"
        message = f"the records of '{source.name}' have no time to make windows of"
        binder.problem("E156", message, "config", "time_window", help=help_text, key=True)
    for node in timeless:
        message = f"'{node.name}' makes records of several others: they have no time to make windows of"
        help_text = f"put the windows before '{node.name}'"
        binder.problem("E156", message, "config", "time_window", help=help_text, key=True)
    return not timeless and all(source.config.watermark is not None for source in sources)


def _not_streaming(binder: NodeBinder, node: AggregateNode, plan: AggregatePlan) -> tuple[str, str, str] | None:
    """Why its groups cannot be finished one after the other: code, message and help; None when they can."""
    if any(name.startswith(CK_AGGREGATE_PREFIX) for name in keys_of(plan, binder.binder.known.keys).columns):
        message = f"'{node.name}' retracts records: strategy: streaming does not go with that"
        return "E15Y", message, "write strategy: auto"
    if plan.window is not None:
        message = f"'{node.name}' has windows over time: they are complete only at the end"
        return "E451", message, "write strategy: auto"
    sorting = binder.binder.known.sorting[plan.inputs[0].node]
    if are_neighbours(plan.group_by, sorting):
        return None
    known = f"sorted by {', '.join(item.field for item in sorting)}" if sorting else "in no known order"
    message = f"the records that '{node.name}' reads are {known}, not by {', '.join(plan.group_by)}"
    columns = ", ".join(plan.group_by)
    return "E451", message, f"write strategy: auto, or give the source sort_order: [{columns}] if its files are sorted"
