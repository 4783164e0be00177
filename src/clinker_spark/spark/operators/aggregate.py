"""Aggregates: rows are prepared, grouped and finished by native expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    DOCUMENT_COLUMN,
    GROUP_PREFIX,
    ID_COLUMN,
    ORIGIN_COLUMN,
    UNTRACED,
    WINDOW_COLUMN,
)
from clinker_spark.plan.nodes.aggregate import AggregatePlan
from clinker_spark.spark.build.counting import Tap
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.made_letters import made_letter
from clinker_spark.spark.columns.programs import Identity, finish, group, totals
from clinker_spark.spark.fragments.totals.frames import groups_of_fragment
from clinker_spark.spark.operators.lateness import still_open, without_late
from clinker_spark.spark.operators.time_windows import in_window_order, stream_window, with_windows
from clinker_spark.spark.rejects.withheld import without_left_out

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def build_aggregate(builder: Builder, node: AggregatePlan) -> Stream:
    """The groups; rows that cannot be grouped are diverted as failures of this node."""
    if node.name in builder.memo.totals:
        finished = finish(node.program, builder.memo.totals[node.name], builder.context(node))
        return replace(_made(builder, node, finished), in_place=True)  # a batch has no order
    found = groups_of_fragment(builder, node)
    if found is not None:
        return replace(_made(builder, node, found.frame), in_place=found.in_place)
    [stream] = builder.inputs(node)
    if stream.frame.isStreaming:
        return _held_in_state(builder, node, builder.absorb(node, stream, "all"))
    return _made(builder, node, _grouped(builder, node, stream))


def _held_in_state(builder: Builder, node: AggregatePlan, stream: Stream) -> Stream:
    """The totals of a stream, which its state holds."""
    tap = Tap(builder, node, stream)
    held = totals(node.program, stream.frame, builder.context(node), stream_window(node), tap)
    return Stream(held, in_place=False, flow=builder.ledger.unknown(f"{node.name}.held"))


def _grouped(builder: Builder, node: AggregatePlan, stream: Stream) -> DataFrame:
    correlation = builder.plan.facts.correlation
    keys, relaxed = correlation.keys[node.name], node.name in correlation.relaxed
    if relaxed:
        stream = without_left_out(builder, node, stream)
    stream = builder.absorb(node, stream, "all")
    stream = stream.over(builder.with_file_values(node, stream.frame))
    also = [DOCUMENT_COLUMN] if node.per_document and DOCUMENT_COLUMN in stream.frame.columns else []
    window, apart = node.window, list(also)
    tap = Tap(builder, node, stream)
    diverted: list[Stream] = []

    def divert(rows: DataFrame) -> DataFrame:
        marked = builder.mark(node, replace(stream.over(rows), flow=tap.flow))
        diverted.append(builder.divert(node, marked, "rows"))
        return diverted[-1].frame

    def refine(rows: DataFrame, keys: Sequence[Column]) -> DataFrame:
        assert window is not None
        if node.late is None:
            return with_windows(rows, window, keys, apart)
        there = replace((diverted or [stream])[-1].over(rows), flow=diverted[-1].flow if diverted else tap.flow)
        in_time = without_late(builder, node, there)
        return still_open(with_windows(in_time, window, keys, apart), node)

    groups = group(
        node.program,
        stream.frame,
        builder.context(node),
        divert,
        also if window is None else [*also, WINDOW_COLUMN],
        _identity(builder, node, stream.frame),
        [column for column in keys.own if column in stream.frame.columns],
        None if window is None else refine,
        tap,
    )
    if window is not None:
        groups = in_window_order(groups, node)
    if relaxed and builder.plan.shows_keys:
        groups = _numbered(builder, node, groups, node.index_column)
    return groups


def _identity(builder: Builder, node: AggregatePlan, frame: DataFrame) -> Identity | None:
    """How groups are told apart later, where somebody asks of what records they were made."""
    if not builder.traces and builder.asked.retraction.numbers.get(node.name) is None:
        return None
    traced = _traced(frame) if builder.traces else None
    name = f"{GROUP_PREFIX}{node.name}"
    return Identity(name, lambda rows: builder.rejects.contributions.update({node.name: rows}), traced)


def _made(builder: Builder, node: AggregatePlan, groups: DataFrame) -> Stream:
    if builder.finds:
        groups = groups.withColumns(made_letter(node.schema))
    return builder.mark(node, Stream(groups, in_place=False, flow=builder.ledger.unknown(f"{node.name}.groups")))


def _traced(rows: DataFrame) -> Column:
    """Which rows are records of sources, or were made of such?"""
    made_of = [quote(name) for name in rows.columns if name.startswith(GROUP_PREFIX)]
    return F.expr(
        " OR ".join(
            [
                f"{quote(ORIGIN_COLUMN)}.source IS NOT NULL",
                *(f"NOT startswith({name}, '{UNTRACED}')" for name in made_of),
            ]
        )
    )


def _numbered(builder: Builder, node: AggregatePlan, groups: DataFrame, index: str) -> DataFrame:
    """Groups with their number in order of appearance. It stays what it was before records were retracted; those that
    there were not then come after them."""
    known = builder.asked.retraction.numbers.get(node.name)
    number = F.row_number().over(Window.orderBy(quote(ARRIVAL_COLUMN))).cast("long") - 1
    group = f"ltrim('{UNTRACED}', {quote(GROUP_PREFIX + node.name)})"
    if known is None:
        groups = groups.withColumn(index, number)
        if builder.traces:
            builder.rejects.numbers[node.name] = groups.selectExpr(f"{group} AS id", f"{quote(index)} AS number")
        return groups
    if isinstance(known.known, DataFrame):
        before = known.known.withColumnsRenamed({"id": ID_COLUMN, "number": index})
        groups = groups.join(before, F.expr(group) == F.col(ID_COLUMN), "left").drop(ID_COLUMN)
    else:
        pairs = ", ".join(f"{sql_string(text)}, {n}L" for text, n in known.known.items())
        groups = groups.withColumn(index, F.expr(f"try_element_at(CAST(map({pairs}) AS MAP<STRING, BIGINT>), {group})"))
    return groups.withColumn(index, F.coalesce(F.col(quote(index)), number + known.count))
