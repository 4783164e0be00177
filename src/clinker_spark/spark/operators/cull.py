"""Culls: each record learns what was decided about its group, and each stream is a filter on that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ERROR_COLUMN
from clinker_spark.cxl.lower.aggregates import lower_aggregate
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import RULE_COLUMN
from clinker_spark.plan.ledger import count, total
from clinker_spark.plan.nodes.cull import CullPlan
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.programs import field_texts, run_steps, system_columns
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.operators.group_order import group_keys, in_group_order, with_aggregates, with_places

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder
    from clinker_spark.spark.build.memo import Ports


def build_cull(builder: Builder, node: CullPlan) -> Stream | Ports:
    """The records of the groups that stay, and those of the others."""
    [stream] = builder.inputs(node)
    decided = builder.divert(node, builder.mark(node, _decided(builder, node, stream)))
    names = [name for name in decided.frame.columns if name != RULE_COLUMN]
    stays = f"{quote(RULE_COLUMN)} = {len(node.rules)}"
    flows = {i: count(f"{node.name}.rules: rule_{i}") for i in range(len(node.rules))}
    frame = decided.frame
    if builder.writes:
        hits = {f"rule_{i}": F.count_if(F.col(quote(RULE_COLUMN)) == i) for i in flows}
        frame = builder.metrics.count(f"{node.name}.rules", frame, rows=F.count(F.lit(1)), **hits)
        what = "takes {left} records, and {right} are there where groups are judged"
        builder.ledger.law(node.name, what, decided.flow, count(f"{node.name}.rules: rows"))
    else:
        for i in flows:
            builder.ledger.unknown(f"{node.name}.rules: rule_{i}")
    removed = total(flows.values())
    kept = Stream(select_sql(frame.where(stays), map(quote, names)), False, stream.route, decided.flow - removed)
    if node.removed_to is None or node.removed_to not in builder.plan.read_ports(node.name):
        dropped = builder.ledger.entry(node.name).dropped
        dropped.update({(f"cull {rule}", 0): flows[i] for i, rule in enumerate(node.rules)})
    if node.removed_to is None:
        return kept
    frame = builder.shared(frame)
    kept = kept.over(select_sql(frame.where(stays), map(quote, names)))
    gone = select_sql(frame.where(f"NOT ({stays})"), map(quote, names))
    return {None: kept, node.removed_to: Stream(gone, False, node.removed_to, removed)}


def _decided(builder: Builder, node: CullPlan, stream: Stream) -> Stream:
    """The records with `$rule`, in the order of groups. Those that cannot be judged are diverted, and their groups are
    judged without them; where the condition on a group fails, all of its records do."""
    context = builder.context(node)
    frame = builder.with_file_values(node, stream.frame)
    visible = frame.columns
    lowered = lower_aggregate(node.program.typed, context, field_texts(node.program, frame), system_columns(frame))
    frame = run_steps(frame, lowered.before, context)
    flow = stream.flow
    if lowered.row_error is not None:
        failed = stream.over(frame.withColumn(ERROR_COLUMN, F.expr(lowered.row_error)))
        fine = builder.divert(node, builder.mark(node, failed), "rows")
        frame, flow = fine.frame, fine.flow
    # What a condition reads of the group itself every record has.
    partials = {name: text for name, text in lowered.partials if name not in node.partition_by}
    frame = with_aggregates(builder, node, frame, group_keys(node.partition_by, node.schema), partials)
    frame = run_steps(frame, lowered.after.steps, context)
    columns = [*map(quote, visible), named(dict(lowered.after.outputs)[RULE_COLUMN], RULE_COLUMN)]
    if lowered.after.error is not None:
        columns.append(named(lowered.after.error, ERROR_COLUMN))
    frame = select_sql(frame, columns)
    if builder.plan.facts.columns.required[node.name].arrival:
        frame = in_group_order(with_places(frame, group_keys(node.partition_by, node.schema), node.order_by))
    return replace(stream.over(frame), in_place=False, flow=flow, pushes=False)
