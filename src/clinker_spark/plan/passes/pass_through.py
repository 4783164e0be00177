"""Cells of CSV outputs that are columns of a CSV source, unchanged on the way.

The reader has their text already. Instead of turning it into values, sending those to Spark and making text of them
again there, it sends the finished cells: neighbouring ones as one text. Columns that nobody else reads are then not
sent at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from clinker_spark.config.model.schema import Column
from clinker_spark.core.fast_paths import taken
from clinker_spark.core.types import Kind
from clinker_spark.plan.facts import CellRun, Cells, Facts, PassThrough
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.passes.required_columns import required_of

# Whatever the spelling in the file was, the reader can write these exactly as the output does.
_KINDS = (Kind.STRING, Kind.INT, Kind.FLOAT, Kind.DATE, Kind.BOOL)

Runs = tuple[tuple[int, CellRun], ...]


def find_cells(plan: Plan, facts: Facts) -> Facts:
    ways = {output.name: way_of(plan, output) for output in plan.outputs}
    runs = {output.name: _runs(output, *ways[output.name]) for output in plan.outputs}
    reached: dict[str, list[OutputPlan]] = {source.name: [] for source in plan.sources}
    if any(runs.values()) and taken("finished_cells"):
        for output in plan.outputs:
            for source in plan.sources_of(output.name):
                reached[source.name].append(output)
    sent: dict[str, PassThrough] = {}
    for source in plan.sources:
        # All outputs that its records reach use the same runs: every output has a job of its own, and would be sent
        # what only the others need.
        found = {tuple(run for _, run in runs[output.name]) for output in reached[source.name]}
        if len(found) == 1 and (same := tuple(dict.fromkeys(found.pop()))):
            sent[source.name] = PassThrough(same, _as_values(plan, facts, source, runs, reached[source.name]))
    cells: dict[str, tuple[Cells, ...]] = {}
    for output in plan.outputs:
        origin = ways[output.name][0]
        if origin is not None and origin.name in sent:
            made = sent[origin.name].runs
            cells[output.name] = tuple(Cells(at, made.index(run), run) for at, run in runs[output.name])
    return replace(facts, columns=replace(facts.columns, pass_through=sent, cells=cells))


def way_of(plan: Plan, output: OutputPlan) -> tuple[SourcePlan | None, set[str]]:
    """The one source of an output, when its records come from there each by itself, and the columns that are changed on
    the way."""
    changed: set[str] = set()
    node = plan[output.inputs[0].node]
    while node.inputs:
        if not node.narrow:
            return None, set()
        changed |= node.written
        node = plan[node.inputs[0].node]
    return next((source for source in plan.sources if source is node), None), changed


def _runs(output: OutputPlan, source: SourcePlan | None, changed: set[str]) -> Runs:
    """The runs of an output, each with the position of its first column."""
    if source is None or source.reader != "csv" or output.config.type != "csv" or len(output.columns) < 2:
        return ()
    ready = {column.name for column in source.columns if column.name not in changed and _has_kind(column)}
    formatted = {c.source_name or c.name for c in output.declared or () if c.format is not None}
    found, at = [], 0
    for is_ready, group in groupby(output.columns, lambda c: c[1] in ready and c[0] not in formatted):
        names = tuple(name for _, name in group)
        # A single text is no shorter as a finished cell.
        if is_ready and (len(names) > 1 or source.schema[names[0]].kind is not Kind.STRING):
            found.append((at, CellRun(output.config.options.delimiter, names)))
        at += len(names)
    return tuple(found)


def _as_values(
    plan: Plan, facts: Facts, source: SourcePlan, runs: Mapping[str, Runs], outputs: Sequence[OutputPlan]
) -> frozenset[str]:
    """The columns of a source that are needed as values, when those of the runs of its outputs are sent as cells. An
    output may write a column in a run, and once more alone."""
    without: dict[str, PlanNode] = {}
    for output in outputs:
        inside = {at + i for at, run in runs[output.name] for i in range(len(run.columns))}
        kept = tuple(pair for i, pair in enumerate(output.columns) if i not in inside)
        without[output.name] = replace(output, columns=kept)
    nodes = [without.get(node.name, node) for node in plan.nodes]
    return required_of(nodes, facts.order.in_order)[source.name].columns & set(source.schema)


def _has_kind(column: Column) -> bool:
    return column.data_type.kind in _KINDS and not column.data_type.is_dynamic
