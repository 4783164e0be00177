"""`clinker run --explain`: the plan as text, JSON or a Graphviz graph. It prints what the executor will do."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, variable_column
from clinker_spark.plan.columns import DOCUMENT_COLUMN
from clinker_spark.plan.nodes import (
    AggregatePlan,
    CombinePlan,
    MergePlan,
    OutputPlan,
    Plan,
    PlanNode,
    RoutePlan,
    SourcePlan,
    TransformPlan,
)
from clinker_spark.plan.passes.required import orders
from clinker_spark.plan.passes.sorted_streams import sorted_by
from clinker_spark.plan.stages import (
    CheckOrder,
    Find,
    Letters,
    LogRecords,
    Publish,
    Values,
    Write,
    can_fail,
    exchanges,
    pattern_of,
    runs_python,
    sort_words,
    stages,
)
from clinker_spark.report.explain_combine import combine_json, combine_lines, statistics
from clinker_spark.report.explain_correlation import correlation_json, key_lines, retraction_lines

SCHEMA_VERSION = "1"


def explain(plan: Plan, form: str) -> str:
    """The plan in one of the forms text, json and dot."""
    return {"text": as_text, "json": as_json, "dot": as_dot}[form](plan)


def display(node: PlanNode) -> str:
    """`[transform] clean`, `[route:exclusive] size`, `[aggregation:hash] totals`."""
    tag = node.kind
    if isinstance(node, RoutePlan):
        tag = "route:inclusive" if node.inclusive else "route:exclusive"
    elif isinstance(node, AggregatePlan):
        tag = f"aggregation:{node.strategy}"
    elif isinstance(node, CombinePlan):
        tag = f"combine:{'+'.join(dict.fromkeys(step.strategy for step in node.steps))}"
    elif isinstance(node, MergePlan):
        tag = "merge:interleave" if node.interleave else "merge:concat"
    elif isinstance(node, SourcePlan | OutputPlan):
        tag = f"{node.kind}:{node.config.type}"
    return f"[{tag}] {node.name}"


def engine(node: PlanNode) -> str:
    """What the records of a node go through: `python` where some of it is computed there, the rest is Spark's."""
    return "python" if runs_python(node) else "spark"


# ---------------------------------------------------------------- text


def as_text(plan: Plan) -> str:
    sections = [
        ("Resolved Outputs", _outputs(plan)),
        ("Execution Plan", _stages(plan)),
        ("Physical Properties", _properties(plan)),
        ("Routes", _routes(plan)),
        ("Combines", _combines(plan)),
        ("Correlation", key_lines(plan)),
        ("Retraction", retraction_lines(plan)),
        ("CXL Expressions", _programs(plan)),
        ("Error Handling", _errors(plan)),
        ("DAG Topology", _topology(plan)),
        ("Statistics", statistics(plan)),
    ]
    return "\n".join(f"=== {title} ===\n" + "\n".join(lines) + "\n" for title, lines in sections if lines)


def _outputs(plan: Plan) -> list[str]:
    lines = []
    for node in plan.outputs:
        split = f" (split, naming={node.config.split.naming})" if node.config.split else ""
        lines.append(f"'{node.name}' -> {node.config.path}{split}")
        lines.append(f"  [if_exists={node.config.if_exists}, write_meta={str(node.config.write_meta).lower()}]")
        lines.append(f"  columns: {', '.join(_column(name, source) for name, source in node.columns)}")
    return lines


def _column(name: str, source: str) -> str:
    return name if name == source else f"{name} (from {source})"


def _stages(plan: Plan) -> list[str]:
    lines = []
    for number, stage in enumerate(stages(plan), 1):
        match stage:
            case Find():
                lines.append(f"{number}. find the files of '{stage.source}': {stage.pattern}")
            case CheckOrder():
                lines.append(f"{number}. compare neighbours in '{stage.source}': sorted by {', '.join(stage.order)}?")
                lines.append(f"     if not: {'sort its files' if stage.on_unsorted == 'warn' else 'stop'}")
            case Values():
                lines.append(f"{number}. run up to '{stage.transform}' for the last values of {', '.join(stage.names)}")
            case Write():
                lines.append(f"{number}. write '{stage.output}': one Spark job, parts in parallel")
                lines.append(f"     runs: {' -> '.join(stage.nodes)}")
                lines.append(f"     shuffles: {', '.join(stage.shuffles) or 'none'}")
                lines.append(f"     order: {stage.order}")
                lines.append(f"     records can fail at: {', '.join(stage.fallible) or 'nowhere'}")
                if stage.python:
                    lines.append(f"     python: {', '.join(stage.python)} (Arrow batches)")
            case LogRecords():
                lines.append(
                    f"{number}. log records of '{stage.transform}': a job for each of {', '.join(stage.events)}"
                )
            case Letters():
                what = "stop without publishing" if stage.strategy == "fail_fast" else "write the dead letters"
                where = f": {', '.join(stage.paths)}" if stage.paths and stage.strategy == "continue" else ""
                lines.append(f"{number}. if records failed: read them again with their origin, {what}{where}")
                if stage.groups:
                    lines.append("     before that: take them back, write all outputs again without their groups")
            case Publish():
                lines.append(f"{number}. publish by rename: {', '.join(stage.outputs)}")
    return lines


def _properties(plan: Plan) -> list[str]:
    lines = []
    order = orders(plan)
    known = sorted_by(plan.nodes)
    for node in plan.nodes:
        need = plan.needs[node.name]
        lines.append(f"{node.kind}.{node.name}:")
        lines.append(f"  columns: {', '.join(f'{name}: {t}' for name, t in node.schema.items())}")
        if not isinstance(node, OutputPlan):
            lines.append(f"  ordering: {'in place' if order[node.name].in_place else 'by arrival'}")
            if known[node.name]:
                lines.append(f"  sorted by: {', '.join(map(sort_words, known[node.name]))}, file by file")
            hidden = [*([ARRIVAL_COLUMN] if need.arrival else []), *([DOCUMENT_COLUMN] if need.document else [])]
            hidden += [variable_column("source", name) for name in sorted(need.members)]
            lines.append(f"  identity: {', '.join(hidden) or '<none>'}")
        if isinstance(node, SourcePlan):
            read = [name for name in node.schema if name in need.columns]
            lines.append(f"  read: {', '.join(read) or '<none>'}{'' if len(read) < len(node.schema) else ' (all)'}")
        if isinstance(node, TransformPlan) and node.window is not None and node.window.lookup is not None:
            by = ", ".join(node.window.group_by) or "nothing: it is one"
            lines.append(f"  window: partitions of '{node.inputs[1]}' by {by}; one record of each is joined")
        if isinstance(node, AggregatePlan) and node.window is not None:
            lines.append(f"  windows: {_window(node)}")
        if isinstance(node, AggregatePlan) and node.strategy == "streaming":
            lines.append("  groups: neighbours in the input; Spark adds up each split, then exchanges the totals")
        reasons = f" (Arrow batches): {', '.join(node.python_reasons)}" if runs_python(node) else ""
        lines.append(f"  engine: {engine(node)}{reasons}")
        lines.append(f"  buffer: {'materialized' if exchanges(node) else 'streaming'}")
        lines.append(f"  can fail: {'yes' if can_fail(node) else 'no'}")
    return lines


def _window(node: AggregatePlan) -> str:
    """`hopping, size 1:00:00, slide 0:05:00`."""
    assert node.window is not None
    parts = [f"{key} {value}" for key, value in node.window.model_dump().items()]
    return ", ".join([type(node.window).__name__.lower(), *parts])


def _routes(plan: Plan) -> list[str]:
    lines = []
    for node in plan.of_kind(RoutePlan):
        lines.append(f"Route '{node.name}' (mode: {'inclusive' if node.inclusive else 'exclusive'}):")
        for port in node.ports:
            targets = [n.name for n in plan.nodes for ref in n.inputs if ref.node == node.name and ref.port == port]
            label = "Default" if port == node.default else "Branch"
            lines.append(f"  {label} '{port}' -> {', '.join(targets) or '(unconsumed)'}")
    return lines


def _combines(plan: Plan) -> list[str]:
    return [line for node in plan.of_kind(CombinePlan) for line in combine_lines(node)]


def _programs(plan: Plan) -> list[str]:
    lines = []
    for node in plan.nodes:
        if isinstance(node, TransformPlan | AggregatePlan | CombinePlan) and node.program is not None:
            lines.append(f"{node.kind} '{node.name}':")
            text = node.program.typed.source.text.strip()
            lines += [f"  {line.rstrip()}" for line in text.splitlines()]
            types = ", ".join(f"{name}: {t}" for name, t in node.program.output.items())
            lines.append(f"  => {types or 'no columns'}")
    return lines


def _errors(plan: Plan) -> list[str]:
    handling = plan.file.error_handling
    lines = [f"strategy: {handling.strategy}"]
    if handling.strategy == "continue":
        lines.append(f"dead letters: {handling.dlq.path or 'only counted (dlq.path is not set)'}")
    if handling.dlq.max_rate is not None:
        lines.append(f"aborts when {handling.dlq.max_rate:.2%} fail (from {handling.dlq.min_records} records on)")
    return lines


def _topology(plan: Plan) -> list[str]:
    lines = []
    for node in plan.nodes:
        reads = ", ".join(str(ref) for ref in node.inputs)
        mark = (
            "●"
            if not node.inputs
            else "└──<"
            if isinstance(node, MergePlan)
            else "◇"
            if isinstance(node, AggregatePlan)
            else "◈"
            if isinstance(node, CombinePlan)
            else "│"
        )
        line, _ = node.file.source.position(node.file.span_of(node.path).start)
        lines.append(f"{mark} {display(node)}{f' <- {reads}' if reads else ''} (line:{line})")
        if isinstance(node, RoutePlan):
            lines.append(f"◆ FORK [{node.name}]")
            lines += [f"├──> {port}" for port in node.ports]
    return lines


# ---------------------------------------------------------------- json


def as_json(plan: Plan) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "pipeline": plan.file.settings.name,
        "nodes": [_node(plan, i, node) for i, node in enumerate(plan.nodes)],
        "node_properties": {node.name: _node_properties(plan, node) for node in plan.nodes},
        "correlation": correlation_json(plan),
        "statistics": {name: _estimated(found) for name, found in plan.estimates.items()},
        "stages": [{"stage": type(stage).__name__.lower(), **asdict(stage)} for stage in stages(plan)],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _node(plan: Plan, i: int, node: PlanNode) -> dict[str, Any]:
    data: dict[str, Any] = {
        "type": node.kind,
        "name": node.name,
        "id": i,
        "depends_on": [f"{plan[ref.node].kind}.{ref}" for ref in node.inputs],
        "schema": {name: str(t) for name, t in node.schema.items()},
    }
    if isinstance(node, SourcePlan):
        data |= {"format": node.config.type, "files": pattern_of(node)}
    elif isinstance(node, RoutePlan):
        data |= {
            "mode": "inclusive" if node.inclusive else "exclusive",
            "ports": list(node.ports),
            "default": node.default,
        }
    elif isinstance(node, AggregatePlan):
        data |= {"group_by": list(node.group_by), "strategy": node.strategy, "per_document": node.per_document}
        data |= {} if node.window is None else {"time_window": _window(node)}
    elif isinstance(node, CombinePlan):
        data |= combine_json(node)
    elif isinstance(node, OutputPlan):
        columns = [{"name": name, "from": source} for name, source in node.columns]
        data |= {"format": node.config.type, "path": node.config.path, "columns": columns}
    return data


def _estimated(found: Any) -> dict[str, Any] | None:
    return None if found is None else {"rows": found.rows, "provenance": found.provenance}


def _node_properties(plan: Plan, node: PlanNode) -> dict[str, Any]:
    need = plan.needs[node.name]
    return {
        "ordering": {"in_place": orders(plan)[node.name].in_place, "arrival": need.arrival},
        "columns_used": sorted(need.columns),
        "fallible": can_fail(node),
        "engine": engine(node),
        "python": list(node.python_reasons),
    }


# ---------------------------------------------------------------- dot


def as_dot(plan: Plan) -> str:
    lines = ["digraph pipeline {", "  rankdir=LR;", '  node [shape=box, fontname="Helvetica"];']
    shapes = {"source": "cylinder", "output": "folder", "route": "diamond", "aggregate": "box3d"}
    for node in plan.nodes:
        shape = shapes.get(node.kind)
        label = display(node) + (" (python)" if runs_python(node) else "")
        lines.append(f"  {_quoted(node.name)} [label={_quoted(label)}{f', shape={shape}' if shape else ''}];")
    for node in plan.nodes:
        for ref in node.inputs:
            label = f" [label={_quoted(ref.port)}]" if ref.port else ""
            lines.append(f"  {_quoted(ref.node)} -> {_quoted(node.name)}{label};")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
