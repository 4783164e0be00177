"""Members of JSON objects that outputs write as the source has them, found in the plan.

Of lines that are alike, the reader can then copy a stretch of each, instead of making texts of values that it made of
the same texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from clinker_spark.core.fast_paths import taken
from clinker_spark.core.types import Kind
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.passes.pass_through import way_of
from clinker_spark.plan.passes.required_columns import required_of
from clinker_spark.spark.fragments.task import Cell, Members
from clinker_spark.spark.render.cell_text import CellStyle, declared

_KINDS = (Kind.STRING, Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.DATE)


def base_style(node: OutputPlan) -> CellStyle:
    return CellStyle(between="T") if node.config.type == "csv" else CellStyle()


def cells_of(node: OutputPlan) -> list[Cell]:
    """The columns of an output."""
    known, base = declared(node.declared or ()), base_style(node)
    return [Cell(name, column, node.schema[column], base.of(known.get(name))) for name, column in node.columns]


def member_runs(plan: Plan, output: OutputPlan, source: SourcePlan) -> dict[int, Members]:
    """The members of an output that come from the source unchanged, each run of them by the place of its first one."""
    origin, changed = way_of(plan, output)
    kinds = {source.config.type, output.config.type}
    if origin is not source or kinds != {"json"} or not taken("finished_cells"):
        return {}
    unchanged = [column for column in source.columns if column.name not in changed]
    same = {c.name for c in unchanged if c.data_type.kind in _KINDS and not c.data_type.is_dynamic}
    found, at = {}, 0
    for ready, group in groupby(cells_of(output), lambda cell: cell.column in same and not cell.style.date):
        cells = tuple(group)
        if ready and len(cells) > 1:
            found[at] = Members(cells, output.config.preserve_nulls)
        at += len(cells)
    return found


def unread_columns(plan: Plan, source: SourcePlan, runs: Mapping[str, Mapping[int, Members]]) -> frozenset[str]:
    """The columns of the source that nobody needs but these members."""
    covered = {
        name: {cell.column for members in found.values() for cell in members.cells} for name, found in runs.items()
    }
    without: dict[str, PlanNode] = {}
    for name in runs:
        output = plan.output(name)
        inside = {at + i for at, members in runs[name].items() for i in range(len(members.cells))}
        kept = tuple(pair for i, pair in enumerate(output.columns) if i not in inside)
        without[name] = replace(output, columns=kept)
    nodes = [without.get(node.name, node) for node in plan.nodes]
    needed = required_of(nodes, plan.facts.order.in_order)[source.name].columns
    return frozenset().union(*covered.values()) - needed
