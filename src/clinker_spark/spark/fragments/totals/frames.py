"""Aggregates whose groups workers make: a scan whose workers give parts of totals, an exchange, and groups.

Where workers and the run see the same folders, groups are kept in files and read again in their order: nobody has to
sort them. Else Spark gets them as they come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.core.types import BOOL, INT, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.families.aggregates import AGGREGATES
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.aggregates import total_columns
from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.nodes.aggregate import AggregatePlan
from clinker_spark.spark.arrow_batches import over_batches
from clinker_spark.spark.columns.programs import finish
from clinker_spark.spark.columns.python_calls import arrow_type
from clinker_spark.spark.fragments.books import write_down
from clinker_spark.spark.fragments.frames import counted, without_undeclared
from clinker_spark.spark.fragments.joins.fetch import tables_of
from clinker_spark.spark.fragments.steps import FragmentSteps, Places
from clinker_spark.spark.fragments.task import PLACE, TOTALS, FragmentTask
from clinker_spark.spark.fragments.totals.groups import SIZES, GroupFiles, Grouping, starts
from clinker_spark.spark.operators.source import source_flow, source_request
from clinker_spark.spark.scan.formats import read
from clinker_spark.spark.scan.record_source import parallelism_of, split_target
from clinker_spark.spark.scan.scans import forget_counts

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder

PIECE_BYTES = 32 << 20
"""The groups of so many bytes of input are one task's, fewer where splits are smaller; and so many bytes of groups."""
MOST_PIECES = 1_000
FEW = 50_000
"""So many groups at most are read by one task."""


@dataclass(frozen=True)
class Groups:
    """The records of an aggregate."""

    frame: DataFrame
    in_place: bool


def groups_of_fragment(builder: Builder, node: AggregatePlan) -> Groups | None:
    """None when Spark makes the groups."""
    fragment = builder.plan.facts.flow.totals.get(node.name)
    if fragment is None or builder.run.small or not builder.stays_in_workers:
        return None
    tables = tables_of(builder, [each for each in builder.plan.combines if each.name in fragment.nodes])
    if tables is None:
        return None
    pieces = _pieces(builder, fragment)
    places, frames = Places(), []
    for source in (builder.plan.source(name) for name in fragment.sources):
        steps = FragmentSteps(builder, fragment, places, {}, tables, pieces=pieces)
        task = partial(_given, steps.task(source))
        request = without_undeclared(replace(source_request(builder, source), fragment=task, arrival=False))
        builder.memo.scans[source.name] = scan = read(builder.spark, source.reader, request)
        frames.append(scan.frame)
    parts = counted(builder, fragment, places, reduce(DataFrame.unionAll, frames))
    flows = {
        name: source_flow(builder, builder.plan.source(name), removed=False, chosen=False) for name in fragment.sources
    }
    write_down(builder, fragment, flows)
    builder.memo.in_workers.add(node.name)
    if group_folder(builder) is not None:  # they are read at once
        builder.memo.read_already.update(fragment.sources)
        if builder.progress is not None:
            for name in fragment.sources:
                forget_counts(builder.progress, name)
    dealt = parts.where(F.col(TOTALS).isNotNull()).repartitionById(pieces, F.col(PLACE).cast("int")).select(TOTALS)
    made = _made(builder, node, dealt)
    return replace(made, frame=finish(node.program, made.frame, builder.context(node), added_up=True))


def _given(task: FragmentTask, widened: tuple[str, ...]) -> FragmentTask:
    """What workers do, whatever undeclared columns there are: no total is made of these."""
    return task


def _pieces(builder: Builder, fragment: Fragment) -> int:
    size = sum(file.size for name in fragment.sources for file in builder.run.files[name])
    piece = min(PIECE_BYTES, split_target(builder.spark))
    return min(max(math.ceil(size / piece), parallelism_of(builder.spark)), MOST_PIECES)


def group_folder(builder: Builder) -> str | None:
    """Where workers can keep groups; None: they do not see the folders of the run."""
    return builder.run.folder if builder.run.local else None


def _made(builder: Builder, node: AggregatePlan, dealt: DataFrame) -> Groups:
    """The groups, with their totals as columns."""
    columns = _columns(node)
    fields = ", ".join(f"c{i} {physical(t)}" for i, (_, t) in enumerate(columns))
    schema = pa.schema([(f"c{i}", arrow_type(t)) for i, (_, t) in enumerate(columns)])
    folder = group_folder(builder)
    grouping = Grouping(node.program.typed, builder.context(node), schema, folder)
    names = [name for name, _ in columns]
    if folder is None:
        return Groups(over_batches(dealt, grouping, fields).toDF(*names), False)
    files = over_batches(dealt, grouping, ", ".join(f"{name} {kind}" for name, kind in SIZES)).collect()
    rows, size = sum(file["rows"] for file in files), sum(file["size"] for file in files)
    tasks = 1 if rows <= FEW else max(math.ceil(size / PIECE_BYTES), parallelism_of(builder.spark))
    begins = starts([(file["rows"], file["places"]) for file in files], tasks)
    read_again = GroupFiles(tuple(file["path"] for file in files), begins, schema)
    tasks = len(begins) + 1
    again = over_batches(builder.spark.range(0, tasks, 1, tasks), read_again, fields)
    return Groups(again.toDF(*names), True)


def _columns(node: AggregatePlan) -> list[tuple[str, Type]]:
    """What workers give of a group: its keys, for each call its value, and whether that is lost, if it can be."""
    typed = node.program.typed
    found = [(name, typed.schema[name]) for name in typed.group_by]
    for i, call in enumerate(ir.aggregate_calls(typed)):
        value, lost = total_columns(i)
        found.append((value, call.type))
        if AGGREGATES[call.function].failures:
            found.append((lost, BOOL))
    return [*found, (ARRIVAL_COLUMN, INT)]
