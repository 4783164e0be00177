"""A combine as a step of a worker, and the tables that it looks up in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from clinker_spark.plan.joins.conjuncts import range_pair
from clinker_spark.plan.nodes.combine import CombinePlan, CombineStep
from clinker_spark.spark.fragments.task import JoinStep, Lookup, Settle, Table
from clinker_spark.spark.joins.names import BUILD, BUILD_RANGE, LEFT, LEFT_RANGE
from clinker_spark.spark.joins.sides import left_keys, residual_program

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder

Tables = Mapping[tuple[str, str], Table]
"""By combine and input."""
Count = Callable[..., tuple[int, ...]]
"""Gives the numbers of counts of a place."""


def settles_keys(node: CombinePlan, step: CombineStep) -> bool:
    """Can a record have failed when its keys are there: by these, or in the steps before?"""
    before = node.steps[: node.steps.index(step)]
    comparisons = (*step.equalities, *step.ranges)
    failed_before = node.on_miss == "error" or any(s.residual is not None and s.residual.fallible for s in before)
    return any(c.left.fallible for c in comparisons) or (bool(before) and failed_before)


def keys_place(step: CombineStep) -> str:
    """Where records are diverted whose keys cannot be computed."""
    return f"keys for {step.build}"


def join_step(
    builder: Builder,
    node: CombinePlan,
    streams: tuple[int, int],
    tables: Tables,
    count: Count,
    filters: tuple[tuple[int, int], ...],
    settle: Settle | None,
) -> JoinStep:
    """What workers do for a combine. `streams` are those that it takes and gives."""
    assert node.program is not None
    pairs = count(f"{node.name}.pairs", "pairs")[0] if node.max_output_rows is not None else None
    return JoinStep(
        *streams,
        node.probe_name,
        tuple(_lookup(node, step, tables[node.name, step.build], count) for step in node.steps),
        node.match == "first",
        node.on_miss,
        node.program.typed,
        builder.context(node),
        tuple(node.schema),
        pairs,
        filters,
        settle,
    )


def _lookup(node: CombinePlan, step: CombineStep, table: Table, count: Count) -> Lookup:
    place = f"{node.name}.{keys_place(step)}"
    equal, ranges = range(len(step.equalities)), range(len(step.ranges))
    return Lookup(
        step.build,
        table,
        left_keys(node, step).typed,
        tuple(f"{LEFT}{i}" for i in equal),
        tuple(f"{BUILD}{i}" for i in equal),
        tuple(f"{LEFT_RANGE}{i}" for i in ranges),
        tuple(f"{BUILD_RANGE}{i}" for i in ranges),
        tuple(r.op for r in step.ranges),
        span_of(step),
        None if step.residual is None else residual_program(node, step.residual).typed,
        Settle(*count(place, "rows", "failed")) if settles_keys(node, step) else None,
    )


def span_of(step: CombineStep) -> tuple[int | None, int | None]:
    """Which of the ranges are searched: one that says what lies behind a lower end, one for the upper end, or one of
    them alone."""
    pair = range_pair(step.ranges)
    if pair is not None:
        return step.ranges.index(pair[0]), step.ranges.index(pair[1])
    if not step.ranges:
        return None, None
    return (0, None) if step.ranges[0].op in (">=", ">") else (None, 0)
