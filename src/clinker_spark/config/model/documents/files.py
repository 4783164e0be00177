"""The documents: pipeline files and composition files, each with its nodes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clinker_spark.config.model.base import Model
from clinker_spark.config.model.composition import Interface
from clinker_spark.config.model.documents.pipeline import ErrorHandling, Settings
from clinker_spark.config.model.documents.stream import StreamSettings
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.values import Anything

LATER_NODES = ("envelope",)
"""Node types that come with later versions."""

LATER_FORMATS = ("edifact", "x12", "hl7", "swift")
"""File formats that come with later versions."""


class PipelineDocument(Model):
    """A pipeline file: settings, nodes, and what happens to records that fail."""

    pipeline: Settings
    nodes: Annotated[tuple[NodeModel, ...], Field(min_length=1)]
    """The steps of the pipeline, in any order."""
    error_handling: ErrorHandling = Field(default_factory=ErrorHandling)
    stream: StreamSettings = Field(default_factory=StreamSettings)
    notes: Anything = Field(default=None, alias="_notes")
    """Anything: remarks for people and tools. It has no effect."""


class CompositionDocument(Model):
    """A composition file: the interface and the nodes behind it."""

    compose: Interface = Field(alias="_compose")
    nodes: Annotated[tuple[NodeModel, ...], Field(min_length=1)]
    """The steps of the composition, in any order."""
    notes: Anything = Field(default=None, alias="_notes")
    """Anything: remarks for people and tools. It has no effect."""
