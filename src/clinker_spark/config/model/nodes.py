"""All node types in one place: what `type:` can be, and the model behind it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clinker_spark.config.model.aggregate import AggregateNode
from clinker_spark.config.model.base import Model
from clinker_spark.config.model.combine import CombineNode
from clinker_spark.config.model.composition import CompositionNode, Interface
from clinker_spark.config.model.merge import MergeNode
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.model.output import OutputNode
from clinker_spark.config.model.pipeline import ErrorHandling, Settings
from clinker_spark.config.model.query import QueryNode
from clinker_spark.config.model.route import RouteNode
from clinker_spark.config.model.source import SourceNode
from clinker_spark.config.model.transform import TransformNode
from clinker_spark.config.values import Anything

Node = (
    SourceNode
    | TransformNode
    | AggregateNode
    | RouteNode
    | MergeNode
    | CombineNode
    | QueryNode
    | CompositionNode
    | OutputNode
)

NODE_TYPES: dict[str, type[NodeModel]] = {
    "source": SourceNode,
    "transform": TransformNode,
    "aggregate": AggregateNode,
    "route": RouteNode,
    "merge": MergeNode,
    "combine": CombineNode,
    "query": QueryNode,
    "composition": CompositionNode,
    "output": OutputNode,
    "sink": OutputNode,
}

LATER_NODES = ("reshape", "cull", "envelope")
"""Node types that come with later versions."""

LATER_FORMATS = ("edifact", "x12", "hl7", "swift")
"""File formats that come with later versions."""

AnyNode = Annotated[Node, Field(discriminator="type")]


class PipelineDocument(Model):
    """A pipeline file: settings, nodes, and what happens to records that fail."""

    pipeline: Settings
    nodes: Annotated[tuple[AnyNode, ...], Field(min_length=1)]
    """The steps of the pipeline, in any order."""
    error_handling: ErrorHandling = Field(default_factory=ErrorHandling)
    notes: Anything = Field(default=None, alias="_notes")
    """Anything: remarks for people and tools. It has no effect."""


class CompositionDocument(Model):
    """A composition file: the interface and the nodes behind it."""

    compose: Interface = Field(alias="_compose")
    nodes: Annotated[tuple[AnyNode, ...], Field(min_length=1)]
    """The steps of the composition, in any order."""
    notes: Anything = Field(default=None, alias="_notes")
    """Anything: remarks for people and tools. It has no effect."""
