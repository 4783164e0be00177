"""Aggregates whose groups workers make: a scan whose workers give parts of totals, an exchange, and groups.

Where workers and the run see the same folders, groups are kept in files and read again in their order: nobody has to
sort them. Else Spark gets them as they come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Row
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
from clinker_spark.spark.fragments.frames import Lines, folder_of, lines_in_parts, scanned
from clinker_spark.spark.fragments.task import OUTPUT, PLACE, TOTALS
from clinker_spark.spark.fragments.totals.groups import SIZES, GroupFiles, Grouping, starts
from clinker_spark.spark.scan.record_source import parallelism_of, split_target
from clinker_spark.spark.scan.scans import forget_counts

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder

PIECE_BYTES = 32 << 20
"""The groups of so many bytes of input are one task's, fewer where splits are smaller, or where it has those of several
aggregates; and so many bytes of groups."""
MOST_PIECES = 1_000
FEW = 50_000
"""So many groups at most are read by one task."""


@dataclass(frozen=True)
class Groups:
    """The records of an aggregate."""

    frame: DataFrame
    in_place: bool


@dataclass(frozen=True)
class Made:
    """What the workers of a fragment with groups have made."""

    groups: dict[str, Groups]
    """By aggregate."""
    lines: Lines | None
    """Of the outputs that are ends of the fragment, too."""


def groups_of_fragment(builder: Builder, node: AggregatePlan) -> Groups | None:
    """None when Spark makes the groups."""
    fragment = builder.plan.facts.flow.totals.get(node.name)
    if fragment is None or builder.run.small or not builder.stays_in_workers:
        return None
    made = made_in_workers(builder, fragment)
    if made is None:
        return None
    groups = made.groups[node.name]
    return replace(groups, frame=finish(node.program, groups.frame, builder.context(node), added_up=True))


def made_in_workers(builder: Builder, fragment: Fragment) -> Made | None:
    """All ends of a fragment that has groups: whoever asks for one first has them made by one job, so that files are
    read once. None when Spark makes them."""
    known = builder.memo.groups
    if fragment.sources[0] not in known:
        known[fragment.sources[0]] = _all_ends(builder, fragment)
    found: Made | None = known[fragment.sources[0]]
    return found


def _all_ends(builder: Builder, fragment: Fragment) -> Made | None:
    folder = group_folder(builder)
    if folder is None and (fragment.outputs or len(fragment.totals) > 1):
        return None  # groups go to Spark as they come, and one job has one result
    into = folder_of(builder, fragment) if fragment.outputs else None
    if fragment.outputs and into is None:
        return None
    pieces = _pieces(builder, fragment)
    found = scanned(builder, fragment, into, pieces)
    if found is None:
        return None
    lines = None if into is None else lines_in_parts(builder, fragment, found, into)
    builder.memo.in_workers.update(fragment.totals)
    if folder is not None:  # they are read at once
        builder.memo.read_already.update(fragment.sources)
        if builder.progress is not None:
            for name in fragment.sources:
                forget_counts(builder.progress, name)
    parts = found.frame.where(F.col(TOTALS).isNotNull())
    dealt = parts.repartitionById(pieces, F.col(PLACE).cast("int")).select(OUTPUT, TOTALS)
    return Made(_made(builder, fragment, dealt, folder), lines)


def _pieces(builder: Builder, fragment: Fragment) -> int:
    size = sum(file.size for name in fragment.sources for file in builder.run.files[name])
    piece = min(PIECE_BYTES, split_target(builder.spark))
    wanted = math.ceil(size * len(fragment.totals) / piece)
    return min(max(wanted, parallelism_of(builder.spark)), MOST_PIECES)


def group_folder(builder: Builder) -> str | None:
    """Where workers can keep groups; None: they do not see the folders of the run."""
    return builder.run.folder if builder.run.local else None


def _made(builder: Builder, fragment: Fragment, dealt: DataFrame, folder: str | None) -> dict[str, Groups]:
    """The groups of all aggregates, with their totals as columns."""
    by_name = {node.name: node for node in builder.plan.aggregates}
    nodes = [by_name[name] for name in fragment.totals]
    programs = tuple((node.program.typed, builder.context(node), _schema(node)[1]) for node in nodes)
    grouping = Grouping(programs, folder)
    if folder is None:
        [node] = nodes
        return {node.name: Groups(over_batches(dealt, grouping, _schema(node)[0]).toDF(*_names(node)), False)}
    # One row for each task and aggregate comes back.
    files = over_batches(dealt, grouping, ", ".join(f"{name} {kind}" for name, kind in SIZES)).collect()
    own = [[file for file in files if file["number"] == i] for i in range(len(nodes))]
    return {node.name: _read_again(builder, node, found) for node, found in zip(nodes, own, strict=True)}


def _read_again(builder: Builder, node: AggregatePlan, files: Sequence[Row]) -> Groups:
    """The groups that workers keep in files, in their order."""
    fields, schema = _schema(node)
    rows, size = sum(file["rows"] for file in files), sum(file["size"] for file in files)
    tasks = 1 if rows <= FEW else max(math.ceil(size / PIECE_BYTES), parallelism_of(builder.spark))
    begins = starts([(file["rows"], file["places"]) for file in files], tasks)
    groups = GroupFiles(tuple(file["path"] for file in files), begins, schema)
    tasks = len(begins) + 1
    return Groups(over_batches(builder.spark.range(0, tasks, 1, tasks), groups, fields).toDF(*_names(node)), True)


def _schema(node: AggregatePlan) -> tuple[str, pa.Schema]:
    """The groups of an aggregate, for Spark and for Arrow."""
    columns = _columns(node)
    fields = ", ".join(f"c{i} {physical(t)}" for i, (_, t) in enumerate(columns))
    return fields, pa.schema([(f"c{i}", arrow_type(t)) for i, (_, t) in enumerate(columns)])


def _names(node: AggregatePlan) -> list[str]:
    return [name for name, _ in _columns(node)]


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
