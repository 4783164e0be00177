"""All node types: one row connects what is written, what is planned and what runs.

The parts of a row that belong to later layers are named by text, `package.module:name`: planning must not load Spark,
and reading a file must not load the planner. Whoever needs such a part asks for it with `resolve`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from clinker_spark.config.model.aggregate import AggregateNode
from clinker_spark.config.model.combine import CombineNode
from clinker_spark.config.model.composition import CompositionNode
from clinker_spark.config.model.envelope_node import EnvelopeNode
from clinker_spark.config.model.groups import CullNode, ReshapeNode
from clinker_spark.config.model.merge import MergeNode
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.model.output import OutputNode
from clinker_spark.config.model.query import QueryNode
from clinker_spark.config.model.route import RouteNode
from clinker_spark.config.model.source import SourceNode
from clinker_spark.config.model.stream_join import StreamJoinNode
from clinker_spark.config.model.transform import TransformNode

_PLAN, _SPARK = "clinker_spark.plan", "clinker_spark.spark.operators"


@dataclass(frozen=True)
class NodeType:
    """A type of node."""

    word: str
    """What `type:` says, and what the plan class calls its `kind`."""
    model: type[NodeModel]
    """What can be written. Its docstrings are the JSON Schema and the entry in the documentation."""
    bind: str
    """From the model to plan nodes: a function of a `plan.bind.node.NodeBinder` and the model."""
    plan: str | None
    """The plan class, with its traits. None for what is gone when it is bound."""
    operator: str | None
    """From the plan class to DataFrames: a function of a `spark.build.builder.Builder` and the plan node."""
    aliases: tuple[str, ...] = ()
    """Other words for it."""


def _row(word: str, model: type[NodeModel], operator: str | None, *aliases: str) -> NodeType:
    plan = f"{_PLAN}.nodes.{word}:{word.capitalize()}Plan"
    return NodeType(word, model, f"{_PLAN}.bind.{word}:bind_{word}", plan, operator, aliases)


NODE_TYPES: dict[str, NodeType] = {
    row.word: row
    for row in (
        _row("source", SourceNode, f"{_SPARK}.source:build_source"),
        _row("transform", TransformNode, f"{_SPARK}.transform:build_transform"),
        _row("aggregate", AggregateNode, f"{_SPARK}.aggregate:build_aggregate"),
        _row("route", RouteNode, f"{_SPARK}.route:build_route"),
        _row("merge", MergeNode, f"{_SPARK}.merge:build_merge"),
        _row("combine", CombineNode, f"{_SPARK}.combine:build_combine"),
        _row("reshape", ReshapeNode, f"{_SPARK}.reshape:build_reshape"),
        _row("cull", CullNode, f"{_SPARK}.cull:build_cull"),
        _row("envelope", EnvelopeNode, f"{_SPARK}.envelope:build_envelope"),
        NodeType(
            "stream_join",
            StreamJoinNode,
            f"{_PLAN}.bind.stream_join:bind_stream_join",
            f"{_PLAN}.nodes.stream_join:StreamJoinPlan",
            f"{_SPARK}.stream_join:build_stream_join",
        ),
        NodeType(
            "query",
            QueryNode,
            f"{_PLAN}.query.node:bind_query",
            f"{_PLAN}.query.node:QueryPlan",
            f"{_SPARK}.query:build_query",
        ),
        NodeType("composition", CompositionNode, f"{_PLAN}.bind.composition:bind_composition", None, None),
        _row("output", OutputNode, None, "sink"),
    )
}
"""By word, in the order in which they are listed to people."""


@contextmanager
def registered(row: NodeType) -> Iterator[None]:
    """One more type of node, for as long as the context lasts."""
    register(row)
    try:
        yield
    finally:
        del NODE_TYPES[row.word]


def register(row: NodeType) -> None:
    """One more type of node: files can use it from now on."""
    taken = {word for known in NODE_TYPES.values() for word in (known.word, *known.aliases)}
    if again := taken & {row.word, *row.aliases}:
        raise ValueError(f"there is a node type '{again.pop()}' already")
    NODE_TYPES[row.word] = row


def node_type(word: str) -> NodeType | None:
    """The type that a word, or another word for it, means."""
    return NODE_TYPES.get(word) or next((row for row in NODE_TYPES.values() if word in row.aliases), None)


@cache
def resolve(reference: str) -> Any:
    """What `package.module:name` stands for."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
