"""`type: envelope`: records become documents again, with a header and a footer."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import Model
from clinker_spark.config.model.groups import Expression
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.values import Words

Sections = dict[Words, dict[Words, Expression]]


class EnvelopeConfig(Model):
    """How many documents there are, and what stands around their records."""

    strategy: Literal["preserve", "concat"] = "preserve"
    """preserve: a document of each input file; concat: one of all records."""
    header: Sections = Field(default_factory=dict)
    """Sections before the records: fields, each with a CXL expression that reads no column."""
    footer: Sections = Field(default_factory=dict)
    """Sections behind the records: fields, each count(), or sum, avg, min or max of a column."""


class EnvelopeNode(NodeModel):
    """Makes documents of records; outputs with `reconstruct_envelope` write them."""

    input_keys: ClassVar[tuple[str, ...]] = ("body", "header")
    later: ClassVar[dict[str, str]] = {
        "trailer": "trailers that are records of another node; 'config.footer' makes them of totals",
    }

    type: Literal["envelope"]
    body: Words
    """The node whose records are framed, or node.port for one port of it."""
    header: Words | None = None
    """A node with one record for each document: the columns that it writes are the section `header`."""
    config: EnvelopeConfig = Field(default_factory=EnvelopeConfig)
