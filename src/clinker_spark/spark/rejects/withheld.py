"""What is withheld because of groups with a failure: at outputs, and from totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import FROM_COLUMN, HELD_COLUMN, LEFT_OUT_COLUMN
from clinker_spark.plan.facts import Keys
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.ledger import WITHHELD_FROM, count
from clinker_spark.plan.nodes.aggregate import AggregatePlan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.rejects.dirty_groups import DirtyGroups, concerned


def also_compared(plan: Plan, node: OutputPlan) -> tuple[str, ...]:
    """The keys that must be those of the failed record, for one of an output to be withheld: by its policy."""
    policy = node.config.correlation_fanout_policy or plan.file.error_handling.correlation_fanout_policy
    own = plan.facts.correlation.keys[node.inputs[0].node].own
    return {"any": (), "all": own, "primary": own[:1]}[policy]


def with_held(builder: Builder, node: OutputPlan, stream: Stream) -> Stream:
    """The records of an output with `$held`: does one of their groups have a failure?

    A record belongs to the group of each source it was made of. `any` withholds it for each of them, `all` only if all
    its keys are those of the failure, `primary` only if the first one is. A record that was read from one source is
    spared when only another source failed."""
    keys = builder.plan.facts.correlation.keys[node.inputs[0].node]
    if builder.asked.all_held:
        return stream.over(stream.frame.withColumn(HELD_COLUMN, F.lit(True)))
    if builder.asked.retraction.withheld is None or not keys.own:
        return stream
    names = stream.frame.columns
    also, single = also_compared(builder.plan, node), keys.single and len(keys.sources) > 1
    frame, held = _of_groups(builder.plan, stream.frame, keys, builder.asked.retraction.withheld, also, single=single)
    marked = frame.withColumn(HELD_COLUMN, F.coalesce(reduce(Column.__or__, held, F.lit(False)), F.lit(False)))
    marked = marked.select(*[F.col(quote(name)) for name in (*names, HELD_COLUMN)])
    return replace(stream.over(marked), in_place=stream.in_place and builder.asked.retraction.broadcastable)


def with_left_out(builder: Builder, node: SourcePlan, stream: Stream) -> Stream:
    """The records of a source with `$left_out`, with `retraction_scope: group`: those that relaxed totals are made
    without, because a record of their group failed. It is decided here, by the whole key: what a combine lets pass of
    it says less."""
    groups = builder.asked.retraction.left_out
    if groups is None or not builder.stamps or not node.key_columns:
        return stream
    names = stream.frame.columns
    frame, gone = groups.marked(stream.frame, node, node.key_columns)
    if gone is None:
        return stream
    frame = frame.withColumn(LEFT_OUT_COLUMN, F.when(gone, True))
    frame = frame.select(*[F.col(quote(name)) for name in (*names, LEFT_OUT_COLUMN)])
    return replace(stream.over(frame), in_place=stream.in_place and builder.asked.retraction.broadcastable)


def without_left_out(builder: Builder, node: AggregatePlan, stream: Stream) -> Stream:
    """What a relaxed aggregate is made of: not of the other records of a group with a failure, as far as they come from
    the failed record's source, nor of the totals of such groups."""
    stream = _with_totals_marked(builder, node, stream)
    if LEFT_OUT_COLUMN not in stream.frame.columns:
        return stream
    frame, flow = stream.frame, stream.flow
    if builder.finds:
        builder.rejects.left_out.append((frame.where(F.col(quote(LEFT_OUT_COLUMN)).isNotNull()), node))
    else:
        name = f"{node.name}.left out"
        frame = builder.metrics.count(name, frame, rows=F.count(F.lit(1)), gone=F.count(quote(LEFT_OUT_COLUMN)))
        rows, left = count(f"{name}: rows"), count(f"{name}: gone")
        what = "takes {left} records, and {right} were looked at for their groups"
        builder.ledger.law(node.name, what, flow, rows)
        builder.ledger.entry(node.name).dropped[WITHHELD_FROM, 0] = left
        flow = rows - left
    kept = frame.where(F.col(quote(LEFT_OUT_COLUMN)).isNull()).drop(LEFT_OUT_COLUMN)
    return replace(stream.over(kept), flow=flow, pushes=False)


def _with_totals_marked(builder: Builder, node: AggregatePlan, stream: Stream) -> Stream:
    """With `$left_out` for totals of one group, too: they belong to it, and were read nowhere."""
    groups, keys = builder.asked.retraction.left_out, builder.plan.facts.correlation.keys[node.inputs[0].node]
    if groups is None or not any(before.totals for before in builder.plan.upstream(node.name)):
        return stream
    names = stream.frame.columns
    frame, gone = _of_groups(builder.plan, stream.frame, keys, groups, single=False)
    if not gone:
        return stream
    flag = F.when(reduce(Column.__or__, gone), True)
    if FROM_COLUMN in names:
        flag = F.when(F.col(quote(FROM_COLUMN)).isNull(), flag)
    if LEFT_OUT_COLUMN in names:
        flag = F.coalesce(F.col(quote(LEFT_OUT_COLUMN)), flag)
    frame = frame.withColumn(LEFT_OUT_COLUMN, flag)
    return stream.over(frame.select(*[F.col(quote(name)) for name in dict.fromkeys((*names, LEFT_OUT_COLUMN))]))


def _of_groups(
    plan: Plan, frame: DataFrame, keys: Keys, groups: DirtyGroups, also: Sequence[str] = (), *, single: bool
) -> tuple[DataFrame, list[Column]]:
    """Which records belong to groups of each source; `single`: only those of its own records. See
    `DirtyGroups.marked`."""
    found: list[Column] = []
    for source, own in concerned(plan, keys):
        frame, mark = groups.marked(frame, source, own, also)
        if mark is not None:
            found.append(mark & (F.col(quote(FROM_COLUMN)) == source.index) if single else mark)
    return frame, found
