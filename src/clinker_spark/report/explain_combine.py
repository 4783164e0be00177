"""How `--explain` shows combines and the numbers behind their plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clinker_spark.plan.bind.conjuncts import Comparison, parts
from clinker_spark.plan.nodes import CombinePlan, CombineStep, Plan
from clinker_spark.plan.passes.estimates import EXEC_SKETCH, Estimate
from clinker_spark.plan.run_statistics import MOST_SHOWN

SAYS = {
    "broadcast": "in-memory hash (broadcast: every task holds the input)",
    "grace_hash": "grace hash (both sides are sent to tasks by key)",
    "sort_merge": "sort-merge (both sides are sent to tasks and sorted by key; spills)",
    "adaptive": "adaptive (size unknown: sort-merge, or broadcast if it turns out to be small)",
    "range": "range (bins of the axis; their widths come from a look at the data)",
    "latest": "as of (both sides sorted by key and time; the last one seen)",
    "nested_loop": "nested loop (every record with every other)",
}


def combine_lines(node: CombinePlan) -> Iterator[str]:
    """The block of one combine."""
    many = f" ({len(node.qualifiers)} inputs, joined in steps)" if len(node.steps) > 1 else ""
    yield f"Combine '{node.name}'{many}:"
    refs = dict(zip(node.qualifiers, node.inputs, strict=True))
    yield f"  Driving input: {node.driver} <- {refs[node.driver]} ({_rows(node.driver_estimate)})"
    for number, step in enumerate(node.steps, 1):
        indent = "  "
        if len(node.steps) > 1:
            yield f"  Step {number}: join {step.build}"
            indent = "    "
        yield f"{indent}Strategy: {SAYS[step.strategy]}"
        yield f"{indent}Build input: {step.build} <- {refs[step.build]} ({_rows(step.estimate)})"
        kinds = f"equalities={len(step.equalities)}, ranges={len(step.ranges)}"
        yield f"{indent}Predicate: {kinds}, residual={'yes' if step.residual is not None else 'no'}"
        for comparison in (*step.equalities, *step.ranges):
            yield f"{indent}  {_shown(node, comparison)}"
        if step.only is not None:
            yield f"{indent}  {step.build} alone: {_text(node, step.only)}"
        if step.residual is not None:
            yield f"{indent}  each pair: {_text(node, step.residual)}"
    yield f"  Match: {node.match}"
    yield f"  On miss: {node.on_miss}"
    yield f"  Order: {'kept in place' if node.keeps_places else 'driver, then build; sorted where it is needed'}"


def _rows(found: Estimate | None) -> str:
    return "rows unknown" if found is None else f"est. {found}"


def _shown(node: CombinePlan, c: Comparison) -> str:
    return f"{_text(node, c.left)} {c.op} {_text(node, c.right)}"


def _text(node: CombinePlan, e: Any) -> str:
    text = str(node.config.where)
    return " and ".join(" ".join(text[part.span.start : part.span.end].split()) for part in parts(e))


def statistics(plan: Plan) -> list[str]:
    """The numbers that the plan was made with; nothing where nobody knows."""
    used = {ref.node for node in plan.of_kind(CombinePlan) for ref in node.inputs}
    used |= {up.name for name in list(used) for up in plan.upstream(name)}
    known = [(name, found) for name, found in plan.estimates.items() if found is not None and name in used]
    lines = ["Row counts:"] if known else []
    lines += [f"  {name}: {found} (informs combine order and strategy)" for name, found in known]
    sketches = _sketches(plan)
    return [*lines, "Column sketches:", *sketches] if sketches else lines


def _sketches(plan: Plan) -> list[str]:
    lines = []
    for name, sketch in (plan.remembered.keys if plan.remembered is not None else {}).items():
        if sketch.distinct is not None:
            lines.append(f"  {name}: {sketch.distinct:,} distinct [{EXEC_SKETCH}]")
        if sketch.heavy:
            shown = ", ".join(f"{value}={count:,}" for value, count in sketch.heavy[:MOST_SHOWN])
            lines.append(f"  {name}: heavy hitters [{EXEC_SKETCH}, lower bound]: {shown}")
    return lines


def combine_json(node: CombinePlan) -> dict[str, Any]:
    """A combine in the JSON form."""
    return {
        "driver": node.driver,
        "match": node.match,
        "on_miss": node.on_miss,
        "keeps_places": node.keeps_places,
        "steps": [_step(node, step) for step in node.steps],
    }


def _step(node: CombinePlan, step: CombineStep) -> dict[str, Any]:
    found = step.estimate
    return {
        "build": step.build,
        "strategy": step.strategy,
        "estimate": None if found is None else {"rows": found.rows, "provenance": found.provenance},
        "equalities": [_shown(node, c) for c in step.equalities],
        "ranges": [_shown(node, c) for c in step.ranges],
        "residual": None if step.residual is None else _text(node, step.residual),
        "only": None if step.only is None else _text(node, step.only),
    }
