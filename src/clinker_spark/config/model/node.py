"""The header that all nodes share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

from clinker_spark.config.model.base import Model
from clinker_spark.config.tree.yaml import Mapping, Scalar
from clinker_spark.config.values import Anything, Text, Words


def text_of(node: object, key: str) -> str | None:
    """The text at a key of a node in the file; None when there is none."""
    value = node.get(key) if isinstance(node, Mapping) else None
    return value.text if isinstance(value, Scalar) else None


class NodeModel(Model):
    """A step of the pipeline."""

    input_keys: ClassVar[tuple[str, ...]] = ()
    """The keys under which the nodes stand that it reads."""

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

    # The graph is made of the file itself, right or wrong: what these say, they say about a node as it is written.

    @classmethod
    def inputs_in(cls, node: Mapping) -> tuple[str, ...]:
        """The keys that name its inputs."""
        return cls.input_keys

    @classmethod
    def further_inputs_in(cls, node: Mapping) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Nodes that it reads besides: the text, and where it stands in the node."""
        yield from ()

    @classmethod
    def ports_in(cls, node: Mapping) -> tuple[str, ...] | None:
        """The names of its streams, if it has more than one; None when the node does not say."""
        return ()

    @classmethod
    def side_ports_in(cls, node: Mapping) -> tuple[str, ...]:
        """The names of further streams, beside the one that has the name of the node."""
        return ()

    @classmethod
    def ends_in(cls, node: Mapping) -> bool:
        """Is it meant to be read by nobody?"""
        return False


class InputNode(NodeModel):
    """A node that reads one stream."""

    input_keys: ClassVar[tuple[str, ...]] = ("input",)

    input: Words
    """The node that this one reads, or node.port for one port of it."""
