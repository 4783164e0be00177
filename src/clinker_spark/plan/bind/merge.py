"""Binding merges: their inputs have the same columns, and their sources treat records alike."""

from __future__ import annotations

from clinker_spark.config.model.merge import MergeNode
from clinker_spark.core.types import Type, unify
from clinker_spark.plan.bind.node import Binding, NodeBinder, Streams
from clinker_spark.plan.nodes.merge import MergePlan
from clinker_spark.plan.nodes.source import SourcePlan


def bind_merge(binder: NodeBinder, node: MergeNode) -> Streams | None:
    """The streams of a merge; None when its inputs do not fit, which is noted then."""
    schema = _shared_schema(binder, node)
    if schema is None or not _agree(binder, node):
        return None
    config = node.config
    interleave = config.mode == "interleave"
    plan = MergePlan(**binder.common(schema, tuple(schema)), interleave=interleave, seed=config.interleave_seed)
    return binder.made(plan)


def _shared_schema(binder: NodeBinder, node: MergeNode) -> dict[str, Type] | None:
    schema = dict(binder.inputs[0].schema)
    for i, other in enumerate(binder.inputs[1:], 1):
        for name in schema.keys() - other.schema.keys() | other.schema.keys() - schema.keys():
            owner, without = (node.inputs[0], node.inputs[i]) if name in schema else (node.inputs[i], node.inputs[0])
            message = f"'{owner}' has a column '{name}', and '{without}' has not"
            help_text = "emit it in a transform before the merge: the inputs of a merge have the same columns"
            binder.problem("E016", message, "inputs", i, help=help_text)
            return None
        for name, t in schema.items():
            merged = unify(t, other.schema[name])
            if merged is None:
                kinds = f"{t} in '{node.inputs[0]}' and {other.schema[name]} in '{node.inputs[i]}'"
                help_text = "convert one of them in a transform before the merge"
                binder.problem("E016", f"column '{name}' is {kinds}", "inputs", i, help=help_text)
                return None
            schema[name] = merged
    return schema


def _agree(binder: NodeBinder, node: MergeNode) -> bool:
    """Do all sources behind a merge treat undeclared columns and groups alike? Notes it if not."""
    first: SourcePlan | None = None
    for i, bound in enumerate(binder.inputs):
        for source in _whole_records(binder.binder, bound.ref.node):
            if source.unfed:  # a port without records has nothing to disagree about
                continue
            first = first or source
            key = "on_unmapped" if source.config.on_unmapped.mode != first.config.on_unmapped.mode else None
            if set(source.config.correlation_key or ()) != set(first.config.correlation_key or ()):
                key = key or "correlation_key"
            if key is not None:
                said = [f"'{n.name}' has {_policy(n, key)}" for n in (first, source)]
                message = f"the inputs of merge '{node.name}' disagree: {said[0]}, and {said[1]}"
                help_text = f"give all sources of a merge the same '{key}'"
                binder.problem("E315", message, "inputs", i, help=help_text)
                return False
    return True


def _whole_records(binding: Binding, start: str) -> list[SourcePlan]:
    """The sources whose records reach a node as they were read, with their undeclared columns and their groups: joins,
    aggregates and queries make records of their own."""
    found: dict[str, SourcePlan] = {}
    seen: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in binding.sources:
            found[name] = binding.sources[name]
        elif (node := binding.by_name[name]).whole_records:
            todo += [ref.node for ref in node.carried_from]
    return list(found.values())


def _policy(source: SourcePlan, key: str) -> str:
    if key == "on_unmapped":
        return f"on_unmapped {source.config.on_unmapped.mode}"
    names = source.config.correlation_key
    return f"correlation_key {', '.join(names)}" if names else "no correlation_key"
