"""How `--explain` shows correlation keys, and what a failure costs."""

from __future__ import annotations

from typing import Any

from clinker_spark.cxl import ir
from clinker_spark.plan.columns import CK_AGGREGATE_PREFIX, CK_PREFIX
from clinker_spark.plan.nodes import AggregatePlan, Plan, TransformPlan
from clinker_spark.plan.passes.correlation import (
    FEW,
    MOST_FAILURES,
    by_rows,
    is_correlated,
    relaxed_aggregates,
    writes_every_record,
)
from clinker_spark.plan.passes.materialized import kept_results

REVERSIBLE = ("sum", "count", "collect", "any")


def key_lines(plan: Plan) -> list[str]:
    """Which keys records carry, and what happens to their groups."""
    if not is_correlated(plan):
        return []
    handling = plan.file.error_handling
    lines = []
    for source in plan.sources:
        keys = ", ".join(source.config.correlation_key or ())
        lines.append(f"{source.name}: {keys or '<none>'}")
    for output in plan.outputs:
        own = plan.keys[output.inputs[0].node].own
        policy = output.config.correlation_fanout_policy or handling.correlation_fanout_policy
        what = f"groups by {', '.join(n.removeprefix(CK_PREFIX) for n in own)}, policy {policy}" if own else "no groups"
        lines.append(f"output '{output.name}': {what}")
    lines.append(f"groups of more than {handling.max_group_buffer:,} records are dead letters")
    lines += ["clean data: one pass", *_dirty_lines(plan)]
    if len(plan.outputs) > 1:
        lines.append("  outputs after the one that a record failed on the way to are written only then")
    return lines


def _dirty_lines(plan: Plan) -> list[str]:
    """What a run does when records fail: the rule of `runtime.rollback.row_groups`, as far as it is known before."""
    if by_rows(plan):
        finish = "cut their lines out of the output" if writes_every_record(plan) else "write again without them"
        return [
            "with failures: find them, read only the records of their groups, " + finish,
            f"  if more than {MOST_FAILURES:,} records fail, as for pipelines with totals: all is made again",
        ]
    kept = [f"'{name}'" for name in kept_results(plan)]
    rule = "what a shuffle made for several outputs is kept, in memory or on disk; the rest is made again"
    return [
        "with failures: find them, make everything again without them, find what is held back",
        f"  kept while outputs are written again: {', '.join(kept) or 'nothing'} ({rule})",
        "  what was found lies in files beside the outputs",
        f"  up to {FEW:,} dirty groups or records are broadcast, more are joined by a shuffle and sorted again",
    ]


def retraction_lines(plan: Plan) -> list[str]:
    """The block of pipelines with aggregates that cut across groups; nothing for others."""
    relaxed = relaxed_aggregates(plan)
    if not relaxed:
        return []
    windows = buffered_windows(plan)
    policy = plan.file.error_handling.correlation_fanout_policy
    scope = plan.file.error_handling.retraction_scope
    lines = [
        f"retraction enabled — {len(relaxed)} relaxed aggregates, {len(windows)} buffer-mode windows, "
        f"fanout policy: {policy}, scope: {scope}"
    ]
    for node in relaxed:
        path = "Reversible" if functions(node) <= set(REVERSIBLE) else "BufferRequired"
        lines.append(f"aggregate '{node.name}' (group_by: {', '.join(node.group_by) or '<all>'}):")
        lines.append(f"  accumulators: {path} (made again from the records that are left, either way)")
        lines.append(
            f"  lineage: none while data is clean; {CK_AGGREGATE_PREFIX}{node.name}, 8 bytes a record, after a failure"
        )
        lines.append("  groups: unknown at plan time")
        lines.append("  if a record after it fails: all records of its group are taken back")
    for window in windows:
        assert window.window is not None
        lines.append(f"window '{window.name}' (partition_by: {', '.join(window.window.group_by) or '<all>'}):")
        lines.append("  computed again over the records that are left; partitions: unknown at plan time")
    return lines


def functions(node: AggregatePlan) -> set[str]:
    """The aggregate functions that a node uses."""
    found = (part for e in node.expressions() for part in e.walk())
    return {part.function for part in found if isinstance(part, ir.AggregateCall)}


def buffered_windows(plan: Plan) -> list[TransformPlan]:
    """Windows whose partitions can hold records of several groups."""
    found = []
    for node in plan.of_kind(TransformPlan):
        keys = {name.removeprefix(CK_PREFIX) for name in plan.keys[node.name].own}
        if node.window is not None and keys and not keys <= set(node.window.group_by):
            found.append(node)
    return found


def correlation_json(plan: Plan) -> dict[str, Any] | None:
    """The same for machines; None without keys."""
    if not is_correlated(plan):
        return None
    return {
        "keys": {source.name: list(source.config.correlation_key or ()) for source in plan.sources},
        "relaxed_aggregates": [node.name for node in relaxed_aggregates(plan)],
        "recomputed_windows": [node.name for node in buffered_windows(plan)],
        "scope": plan.file.error_handling.retraction_scope,
    }
