"""`clinker run --explain`: the plan as text, JSON or a Graphviz graph. It prints what the executor will do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, variable_column
from clinker_spark.plan.columns import DOCUMENT_COLUMN
from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.small_inputs import is_small
from clinker_spark.plan.stages import CheckOrder, Find, Letters, LogRecords, Publish, Values, Write, sort_words
from clinker_spark.report.explain_correlation import correlation_json, key_lines, retraction_lines
from clinker_spark.report.explain_memory import (
    budget_lines,
    buffer_lines,
    edge_lines,
    edges_json,
    memory_json,
    policy_json,
    policy_words,
    share_json,
    share_lines,
    spill_lines,
    storage_json,
)
from clinker_spark.report.explain_spill import spill_storage_json, spill_storage_lines
from clinker_spark.report.explain_staging import StagingPlan, staging_json, staging_lines
from clinker_spark.report.explain_statistics import statistics

SCHEMA_VERSION = "1"


def explain(plan: Plan, form: str, staging: StagingPlan | None = None) -> str:
    """The plan in one of the forms text, json and dot. `staging` says which inputs are copied."""
    if form == "dot":
        return as_dot(plan)
    return as_text(plan, staging) if form == "text" else as_json(plan, staging)


def display(node: PlanNode) -> str:
    """`[transform] clean`, `[route:exclusive] size`, `[aggregation:hash] totals`."""
    return f"[{node.tag}] {node.name}"


def engine(plan: Plan, node: PlanNode) -> str:
    """What the records of a node go through: `vector` where they stay in the workers that read them, `python` where
    some of it is computed there, the rest is Spark's."""
    if node.name in plan.facts.flow.in_workers:
        return "vector"
    return "python" if node.name in plan.facts.python else "spark"


# ---------------------------------------------------------------- text


def as_text(plan: Plan, staging: StagingPlan | None = None) -> str:
    sections = [
        ("Resolved Outputs", _outputs(plan)),
        ("Execution Plan", _stages(plan)),
        ("Physical Properties", _properties(plan)),
        ("Buffer Edges", edge_lines(plan)),
        ("Estimated Spill Volume", spill_lines(plan)),
        *_sections(plan).items(),
        ("Correlation", key_lines(plan)),
        ("Retraction", retraction_lines(plan)),
        ("CXL Expressions", _programs(plan)),
        ("Error Handling", _errors(plan)),
        ("Memory Budget", budget_lines(plan)),
        ("DAG Topology", _topology(plan)),
        ("Statistics", statistics(plan)),
        ("Spill Storage", spill_storage_lines(plan)),
        ("Staging Plan", staging_lines(staging)),
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
    lines = [f"arbitration: {policy_words(plan)}"]
    for number, stage in enumerate(plan.facts.stages, 1):
        match stage:
            case Find():
                lines.append(f"{number}. find the files of '{stage.source}': {stage.pattern}")
            case CheckOrder():
                lines.append(f"{number}. compare neighbours in '{stage.source}': sorted by {', '.join(stage.order)}?")
                lines.append(f"     if not: {'sort its files' if stage.on_unsorted == 'warn' else 'stop'}")
            case Values():
                lines.append(f"{number}. run up to '{stage.transform}' for the last values of {', '.join(stage.names)}")
            case Write():
                lines.append(f"{number}. write '{stage.output}': {_job(plan, stage.output)}")
                lines.append(f"     runs: {' -> '.join(stage.nodes)}")
                lines.append(f"     shuffles: {_shuffles(plan, stage)}")
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


def _job(plan: Plan, output: str) -> str:
    """The Spark job that writes an output. Small inputs run as one task, and outputs of one kind as one job; what stays
    in workers is one job for all outputs."""
    resources, flow = plan.facts.resources, plan.facts.flow
    if is_small(resources.input_bytes):
        first = next((name for name in resources.launch_order if output in resources.alike[name]), output)
        return "one Spark job, one task: the inputs are small" if first == output else f"by the job of '{first}'"
    unknown = " (one task if the inputs turn out to be small)" if resources.input_bytes is None else ""
    fragment = flow.fragments.get(output)
    if fragment is not None:
        first = _first_of(plan, fragment)
        if first != output:
            return f"by the job of '{first}'"
        groups = f" and make the groups of {_names(fragment.totals)}" if fragment.totals else ""
        return f"one Spark job, whose workers write the parts{groups}{unknown}"
    made = dict.fromkeys(flow.totals[node.name] for node in plan.upstream(output) if node.name in flow.totals)
    before = "".join(f" ({_made(plan, each, output)})" for each in made)
    return f"one Spark job, parts in parallel{before}{unknown}"


def _first_of(plan: Plan, fragment: Fragment) -> str:
    """The output with whose job, or before it, all ends of a fragment are made."""
    ends = {*fragment.outputs, *fragment.totals}
    order = plan.facts.resources.launch_order
    return next(name for name in order if ends & {name, *(node.name for node in plan.upstream(name))})


def _made(plan: Plan, fragment: Fragment, output: str) -> str:
    """Where the groups that an output reads come from."""
    first = _first_of(plan, fragment)
    if first != output:
        return f"the groups are made by the job of '{first}'"
    parts = f" and write the parts of {_names(fragment.outputs)}" if fragment.outputs else ""
    return f"before it a job in which workers make the groups of {_names(fragment.totals)}{parts}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _shuffles(plan: Plan, stage: Write) -> str:
    names = ", ".join(stage.shuffles)
    if names and is_small(plan.facts.resources.input_bytes):
        return f"none (of larger inputs: {names})"
    return names or "none"


def _properties(plan: Plan) -> list[str]:
    lines = []
    facts = plan.facts
    for node in plan.nodes:
        need, sorting = facts.columns.required[node.name], facts.order.sorting[node.name]
        lines += ["", f"{node.slug}:"]
        lines.append(f"  columns: {', '.join(f'{name}: {t}' for name, t in node.schema.items())}")
        if node.streams:
            lines.append(f"  ordering: {'in place' if node.name in facts.flow.in_order else 'by arrival'}")
            if sorting:
                lines.append(f"  sorted by: {', '.join(map(sort_words, sorting))}, file by file")
            places = need.arrival and node.name not in facts.flow.in_workers
            hidden = [*([ARRIVAL_COLUMN] if places else []), *([DOCUMENT_COLUMN] if need.document else [])]
            hidden += [variable_column("source", name) for name in sorted(need.members)]
            lines.append(f"  identity: {', '.join(hidden) or '<none>'}")
        lines += node.property_lines(need)
        if bounds := facts.columns.bounds.get(node.name):
            lines.append(f"  only: {', '.join(map(str, bounds))}")
        reasons = facts.python.get(node.name, ())
        why = f" (Arrow batches): {', '.join(reasons)}" if reasons else ""
        lines.append(f"  engine: {engine(plan, node)}{why}")
        if node.name in facts.flow.unfit:
            where, why_not = facts.flow.unfit[node.name]
            lines.append(f"  vector: no, because of '{where}': {why_not}")
        lines.append(f"  can fail: {'yes' if node.name in facts.fallible else 'no'}")
        lines += buffer_lines(plan, node)
    return lines


def _sections(plan: Plan) -> dict[str, list[str]]:
    """What nodes say about themselves under titles of their own."""
    found: dict[str, list[str]] = {"Routes": [], "Combines": []}
    for node in plan.nodes:
        readers: dict[str | None, list[str]] = {}
        for reader in dict.fromkeys(plan.readers(node.name)):
            for ref in reader.inputs:
                if ref.node == node.name:
                    readers.setdefault(ref.port, []).append(reader.name)
        in_workers = node.name in plan.facts.flow.in_workers
        for title, lines in node.worker_sections(readers) if in_workers else node.sections(readers):
            found.setdefault(title, []).extend([*lines, *share_lines(plan, node)])
    return found


def _programs(plan: Plan) -> list[str]:
    lines = []
    for node in plan.nodes:
        program = node.shown_program
        if program is not None:
            lines.append(f"{node.kind} '{node.name}':")
            text = program.typed.source.text.strip()
            lines += [f"  {line.rstrip()}" for line in text.splitlines()]
            types = ", ".join(f"{name}: {t}" for name, t in program.output.items())
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
        line, _ = node.file.source.position(node.file.span_of(node.path).start)
        lines.append(f"{node.mark} {display(node)}{f' <- {reads}' if reads else ''} (line:{line})")
        if node.ports:
            lines.append(f"◆ FORK [{node.name}]")
            lines += [f"├──> {port}" for port in node.ports]
    return lines


# ---------------------------------------------------------------- json


def as_json(plan: Plan, staging: StagingPlan | None = None) -> str:
    document = {
        "schema_version": SCHEMA_VERSION,
        "pipeline": plan.file.settings.name,
        "nodes": [_node(plan, i, node) for i, node in enumerate(plan.nodes)],
        "node_properties": {node.name: _node_properties(plan, node) for node in plan.nodes},
        "correlation": correlation_json(plan),
        "statistics": {name: _estimated(found) for name, found in plan.estimates.items()},
        "buffer_edges": edges_json(plan),
        "memory": policy_json(plan),
        "storage_summary": {**storage_json(plan), **spill_storage_json(plan), "staging": staging_json(staging)},
        "stages": [{"stage": type(stage).__name__.lower(), **asdict(stage)} for stage in plan.facts.stages],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _node(plan: Plan, i: int, node: PlanNode) -> dict[str, Any]:
    return {
        "type": node.kind,
        "name": node.name,
        "slug": node.slug,
        "id": i,
        "depends_on": [f"{plan[ref.node].type_word}.{ref}" for ref in node.inputs],
        "schema": {name: str(t) for name, t in node.schema.items()},
        **node.details(),
        **share_json(plan, node),
    }


def _estimated(found: Any) -> dict[str, Any] | None:
    return None if found is None else {"rows": found.rows, "provenance": found.provenance}


def _node_properties(plan: Plan, node: PlanNode) -> dict[str, Any]:
    facts = plan.facts
    need = facts.columns.required[node.name]
    return {
        "ordering": {"in_place": node.name in facts.flow.in_order, "arrival": need.arrival},
        "columns_used": sorted(need.columns),
        "fallible": node.name in facts.fallible,
        "engine": engine(plan, node),
        "python": list(facts.python.get(node.name, ())),
        **memory_json(plan, node),
    }


# ---------------------------------------------------------------- dot


def as_dot(plan: Plan) -> str:
    lines = ["digraph pipeline {", "  rankdir=LR;", '  node [shape=box, fontname="Helvetica"];']
    for node in plan.nodes:
        label = display(node) + (" (python)" if node.name in plan.facts.python else "")
        shape = f", shape={node.shape}" if node.shape else ""
        lines.append(f"  {_quoted(node.name)} [label={_quoted(label)}{shape}];")
    for node in plan.nodes:
        for ref in node.inputs:
            label = f" [label={_quoted(ref.port)}]" if ref.port else ""
            lines.append(f"  {_quoted(ref.node)} -> {_quoted(node.name)}{label};")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
