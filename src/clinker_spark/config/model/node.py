"""The header that all nodes share."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from clinker_spark.config.model.base import Model
from clinker_spark.config.values import Anything, Text, Words


class NodeModel(Model):
    """A step of the pipeline."""

    type: Any
    """The kind of the node."""
    name: Words
    """The name by which other nodes read this one: unique, without dots."""
    description: Text | None = None
    """What the node is for. It has no effect."""
    notes: Anything = Field(default=None, alias="_notes")
    """Anything: remarks for people and tools. It has no effect."""

    @property
    def kind(self) -> str:
        """The node type; `output` for `type: sink` as well."""
        found = str(self.type)
        return "output" if found == "sink" else found


class InputNode(NodeModel):
    """A node that reads one stream."""

    input: Words
    """The node that this one reads, or node.port for one port of it."""
