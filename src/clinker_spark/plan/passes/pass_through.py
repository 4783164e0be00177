"""Cells of CSV outputs that are columns of a CSV source, unchanged on the way.

The reader has their text already. Instead of turning it into values, sending those to Spark and making text of them
again there, it sends the finished cells: neighbouring ones as one text. Columns that nobody else reads are then not
sent at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import Kind
from clinker_spark.plan.nodes import OutputPlan, Plan, PlanNode, RoutePlan, SourcePlan, TransformPlan
from clinker_spark.plan.passes.required import needs

# Whatever the spelling in the file was, the reader can write these exactly as the output does.
_KINDS = (Kind.STRING, Kind.INT, Kind.FLOAT, Kind.DATE, Kind.BOOL)


@dataclass(frozen=True)
class CellRun:
    """Neighbouring cells of an output: columns of a source, by name, joined by the output's delimiter."""

    delimiter: str
    columns: tuple[str, ...]


def source_runs(plan: Plan, source: SourcePlan) -> tuple[CellRun, ...]:
    """The runs that the reader of a source makes. None unless all outputs that its records reach use the same ones:
    every output has a job of its own, and would be sent what only the others need."""
    found = {tuple(run for _, run in output_runs(plan, output)) for output in _reached(plan, source)}
    return tuple(dict.fromkeys(found.pop())) if len(found) == 1 else ()


def output_runs(plan: Plan, output: OutputPlan) -> list[tuple[int, CellRun]]:
    """The runs of an output, each with the position of its first column."""
    source, changed = _way(plan, output)
    if source is None or source.config.type != "csv" or output.config.type != "csv" or len(output.columns) < 2:
        return []
    ready = {column.name for column in source.columns if column.name not in changed and _has_kind(column)}
    formatted = {c.source_name or c.name for c in output.declared or () if c.format is not None}
    found, at = [], 0
    for is_ready, group in groupby(output.columns, lambda c: c[1] in ready and c[0] not in formatted):
        names = tuple(name for _, name in group)
        # A single text is no shorter as a finished cell.
        if is_ready and (len(names) > 1 or source.schema[names[0]].kind is not Kind.STRING):
            found.append((at, CellRun(output.config.options.delimiter, names)))
        at += len(names)
    return found


def typed_columns(plan: Plan, source: SourcePlan) -> frozenset[str]:
    """The columns of a source that are needed as values, when those of its runs are sent as cells."""
    covered = {name for run in source_runs(plan, source) for name in run.columns}
    outputs = {output.name for output in _reached(plan, source)}
    nodes = tuple(
        replace(node, columns=tuple(pair for pair in node.columns if pair[1] not in covered))
        if isinstance(node, OutputPlan) and node.name in outputs
        else node
        for node in plan.nodes
    )
    return frozenset(needs(replace(plan, nodes=nodes))[source.name].columns & set(source.schema))


def source_of(plan: Plan, output: OutputPlan) -> SourcePlan | None:
    """The one source of an output, when only transforms and routes stand between them."""
    return _way(plan, output)[0]


def _has_kind(column: Column) -> bool:
    return column.data_type.kind in _KINDS and not column.data_type.is_dynamic


def _reached(plan: Plan, source: SourcePlan) -> Iterator[OutputPlan]:
    return (output for output in plan.outputs if source in plan.upstream(output.name))


def _way(plan: Plan, output: OutputPlan) -> tuple[SourcePlan | None, set[str]]:
    """The source of an output, and the columns that are changed on the way from there."""
    changed: set[str] = set()
    node: PlanNode = output
    while not isinstance(node, SourcePlan):
        node = plan[node.inputs[0].node]
        if isinstance(node, TransformPlan) and not node.shuffles:
            changed |= set(node.program.output)
        elif not isinstance(node, SourcePlan | RoutePlan):
            return None, set()
    return node, changed
