"""How `--explain` shows correlation keys, and what a failure costs."""

from __future__ import annotations

from typing import Any

from clinker_spark.plan.budget import default_limit
from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size
from clinker_spark.plan.passes.correlation import BROADCASTABLE, MOST_FAILURES


def key_lines(plan: Plan) -> list[str]:
    """Which keys records carry, and what happens to their groups."""
    if not plan.facts.correlation.correlated:
        return []
    handling = plan.file.error_handling
    lines = []
    for source in plan.sources:
        keys = ", ".join(source.config.correlation_key or ())
        whole = ", and whole files" if source.by_document else ""
        lines.append(f"{source.name}: {keys or '<none>'}{whole}")
    for output in plan.outputs:
        own = plan.facts.correlation.keys[output.inputs[0].node].own
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
    if plan.facts.correlation.by_rows:
        finish = (
            "cut their lines out of the output"
            if plan.facts.correlation.writes_every_record
            else "write again without them"
        )
        return [
            "with failures: find them, read only the records of their groups, " + finish,
            f"  if more than {MOST_FAILURES:,} records fail, as for pipelines with totals: all is made again",
        ]
    kept = [f"'{name}'" for name in plan.facts.order.materialized]
    rule = "what a shuffle made for several outputs is kept, in memory or on disk; the rest is made again"
    return [
        "with failures: find them, make everything again without them, find what is withheld",
        f"  kept while outputs are written again: {', '.join(kept) or 'nothing'} ({rule})",
        "  what was found lies in files beside the outputs",
        f"  up to {BROADCASTABLE:,} dirty groups or records are broadcast, "
        "more are joined by a shuffle and sorted again",
    ]


def retraction_lines(plan: Plan) -> list[str]:
    """The block of pipelines with aggregates that cut across groups; nothing for others."""
    relaxed, windows = plan.facts.correlation.relaxed, plan.facts.correlation.recomputed
    if not relaxed:
        return []
    policy = plan.file.error_handling.correlation_fanout_policy
    scope = plan.file.error_handling.retraction_scope
    lines = [
        f"retraction enabled — {len(relaxed)} relaxed aggregates, {len(windows)} buffer-mode windows, "
        f"fanout policy: {policy}.",
        f"scope: {scope}",
    ]
    for name in (*relaxed, *windows):
        sources = [source.name for source in plan.sources_of(name)]
        lines += plan[name].retraction_lines(sources, shown_size(plan.memory_limit or default_limit()))
    return lines


def correlation_json(plan: Plan) -> dict[str, Any] | None:
    """The same for machines; None without keys."""
    if not plan.facts.correlation.correlated:
        return None
    return {
        "keys": {source.name: list(source.config.correlation_key or ()) for source in plan.sources},
        "relaxed_aggregates": list(plan.facts.correlation.relaxed),
        "recomputed_windows": list(plan.facts.correlation.recomputed),
        "scope": plan.file.error_handling.retraction_scope,
    }
