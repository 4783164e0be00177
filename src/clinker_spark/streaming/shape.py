"""What a checkpoint was made of, and whether a pipeline still fits it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.errors import PlanError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.streams import StreamQuery, arrangement, operators
from clinker_spark.spark.streaming.state import JOIN_FORMAT
from clinker_spark.streaming.checkpoint import READABLE, Checkpoint

_FORMAT = "join_format"
NEW = "use the old form, or a new checkpoint (--checkpoint DIR), which reads everything again"


def shape_of(plan: Plan, queries: Sequence[StreamQuery]) -> dict[str, Any]:
    """What the state of a plan depends on: the format of joins, and more for each of the queries."""
    shapes = {
        query.name: {
            "sources": sorted(node.name for node in query.sources),
            "state": {node.name: _state(plan, node) for node in query.stateful},
            "arrangement": arrangement(plan, query.root),
            "operators": list(operators(plan, query.root)),
        }
        for query in queries
    }
    return {_FORMAT: JOIN_FORMAT, "queries": shapes}


def shapes(about: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says about its queries, by name."""
    shape: dict[str, Any] = about["shape"]
    if about["version"] > 1:
        return dict(shape.get("queries", {}))
    return {name: each for name, each in shape.items() if name != _FORMAT}


def _state(plan: Plan, node: PlanNode) -> dict[str, Any]:
    need = plan.facts.columns.required[node.name]
    columns = []
    for i, ref in enumerate(node.inputs):
        schema = plan[ref.node].schema
        wanted = node.required(i, need, in_order=False).columns
        columns.append({name: str(t) for name, t in schema.items() if name in wanted})
    return {"kind": node.kind, "columns": columns, **node.state_details()}


def check_shape(plan: Plan, queries: Sequence[StreamQuery], checkpoint: Checkpoint, about: dict[str, Any]) -> None:
    """Raises `PlanError` with all differences."""
    found = list(differences(plan, queries, checkpoint, about))
    if found:
        raise PlanError(found)


def differences(
    plan: Plan, queries: Sequence[StreamQuery], checkpoint: Checkpoint, about: dict[str, Any]
) -> Iterator[Diagnostic]:
    """What a checkpoint holds that this pipeline cannot go on with."""
    place = f"the checkpoint '{checkpoint.folder}'"
    if about.get("version") not in READABLE:
        message = f"{place} was made by a version of clinker with checkpoints of version {about.get('version')}"
        yield Diagnostic("E505", message, help=NEW)
        return
    wanted = plan.file.stream.partitions
    if wanted is not None and wanted != about["partitions"]:
        message = f"{place} has {about['partitions']} partition(s), and the pipeline asks for {wanted}"
        help_text = f"write partitions: {about['partitions']}, or use a new checkpoint (--checkpoint DIR)"
        yield plan.file.diagnostic("E505", message, ("stream", "partitions"), help_text)
    old, new = shapes(about), shape_of(plan, queries)["queries"]
    if (joins := about["shape"].get(_FORMAT)) != JOIN_FORMAT:
        message = f"{place} keeps joins in format {joins}, and this version in {JOIN_FORMAT}"
        yield Diagnostic("E505", message, help=NEW)
    for query in queries:
        before = old.get(query.name)
        if before is None:
            # In the first version, a query of this name had no place.
            if old or checkpoint.committed(query) >= 0 or (query.name == _FORMAT and about["version"] == 1):
                message = f"{place} was made without '{query.name}'"
                yield query.root.diagnostic("E505", message, "name", help=NEW)
            continue
        now = new[query.name]
        if before["sources"] != now["sources"]:
            message = f"{place} was made with the sources {', '.join(before['sources'])} of '{query.name}'"
            yield query.root.diagnostic("E505", message, "name", help=NEW)
        elif before.get("arrangement", now["arrangement"]) != now["arrangement"]:  # an older one does not say
            message = f"{place} was made with the inputs of '{query.name}' in the order {before['arrangement']}"
            help_text = "bring them back into that order, or use a new checkpoint (--checkpoint DIR)"
            yield query.root.diagnostic("E505", f"{message}, now {now['arrangement']}", "name", help=help_text)
        for node in query.stateful:
            yield from _node(node, place, before["state"].get(node.name), now["state"][node.name])


def _node(node: PlanNode, place: str, before: dict[str, Any] | None, now: dict[str, Any]) -> Iterator[Diagnostic]:
    if before is None:
        yield node.diagnostic("E505", f"{place} was made without '{node.name}'", "name", help=NEW)
        return
    sides = [f" of {side}" for side in node.input_names] or [""]
    for side, old, new in zip(sides, before["columns"], now["columns"], strict=True):
        if changes := list(_changes(old, new)):
            message = f"the state in {place} was made with other columns{side} in '{node.name}': "
            yield node.diagnostic("E505", message + ", ".join(changes), "name", help=NEW)
    for key in sorted(set(before) | set(now)):
        if key != "columns" and before.get(key) != now.get(key):
            message = f"the state in {place} was made with another {key.replace('_', ' ')} of '{node.name}': "
            yield node.diagnostic("E505", f"{message}{before.get(key)}, now {now.get(key)}", "config", help=NEW)


def _changes(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    for name in new:
        if name not in old:
            yield f"{name} is new"
        elif old[name] != new[name]:
            yield f"{name} was {old[name]}"
    yield from (f"{name} is gone" for name in old if name not in new)
    if set(old) == set(new) and list(old) != list(new):
        yield "their order"
