"""`type: reshape` and `type: cull`: what is decided about groups of records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from clinker_spark.config.model.base import Finding, Model
from clinker_spark.config.model.node import InputNode, text_of
from clinker_spark.config.model.order import SortField, SortOrder
from clinker_spark.config.tree.yaml import Mapping
from clinker_spark.config.values import Text, Words, read_text


def _read_expression(value: Any) -> str:
    return "null" if value is None else read_text(value)


_SCALAR = {"type": ["string", "number", "boolean", "null"]}
Expression = Annotated[str, BeforeValidator(_read_expression), WithJsonSchema(_SCALAR)]
"""A CXL expression; null, numbers, true and false need no quotes."""


class Mutate(Model):
    """What a rule changes in the records that it is about."""

    set_: Annotated[dict[str, Expression], Field(min_length=1)] = Field(alias="set")
    """Columns, each with the CXL expression of its new value."""


class Synthesize(Model):
    """The record that a rule adds for each that it is about."""

    copy_from: Literal["trigger", "none"] = "trigger"
    """What the new record begins with: the values of the record that the rule is about, or nothing. With `none`,
    `overrides` gives every column a value."""
    overrides: dict[str, Expression] = Field(default_factory=dict)
    """Columns of the new record, each with a CXL expression over the record that the rule is about."""


class ReshapeRule(Model):
    """A rule: which records it is about, what it changes in them, and what it adds."""

    name: Words
    """The name in dead letters and in `$meta`."""
    when: Text
    """A CXL condition: the records for which it is true."""
    mutate: Mutate | None = None
    synthesize: Synthesize | None = None

    def check(self) -> Iterator[Finding]:
        if self.mutate is None and self.synthesize is None:
            help_text = "add mutate: { set: { column: value } }, or synthesize: { overrides: { column: value } }"
            yield Finding("E007", f"rule '{self.name}' does nothing", ("name",), help_text)


class ReshapeConfig(Model):
    """The groups, and the rules for their records."""

    partition_by: tuple[Words, ...]
    """The columns whose values make a group; [] is one group of everything."""
    order_by: SortOrder = ()
    """The order inside a group; by default the order of arrival."""
    rules: Annotated[tuple[ReshapeRule, ...], Field(min_length=1)]
    """Every rule sees the records as they came, whatever the other rules do."""

    def check(self) -> Iterator[Finding]:
        yield from _check_groups(self.order_by, [rule.name for rule in self.rules])


class ReshapeNode(InputNode):
    """Repairs groups of records: changes some records, and adds others."""

    type: Literal["reshape"]
    config: ReshapeConfig


class CullRule(Model):
    """A condition on a group."""

    name: Words
    """The name under which left out records are counted."""
    drop_group_when: Text
    """A CXL condition over the aggregates of a group, such as count(*) > 3: the groups for which it is true leave."""


class CullConfig(Model):
    """The groups, and which of them leave."""

    partition_by: tuple[Words, ...]
    """The columns whose values make a group; [] is one group of everything."""
    order_by: SortOrder = ()
    """The order inside a group; by default the order of arrival."""
    removed_to: Words | None = None
    """The port for the records that leave: other nodes read node.port. Without it they are left out, and counted."""
    rules: Annotated[tuple[CullRule, ...], Field(min_length=1)]
    """A group leaves when any of these is true for it."""

    def check(self) -> Iterator[Finding]:
        if self.removed_to is not None and "." in self.removed_to:
            help_text = "name the port without a dot: other nodes read it as node.port"
            yield Finding("E010", f"'{self.removed_to}' cannot name a port", ("removed_to",), help_text)
        yield from _check_groups(self.order_by, [rule.name for rule in self.rules])


class CullNode(InputNode):
    """Takes whole groups of records out of the stream."""

    type: Literal["cull"]
    config: CullConfig

    def check(self) -> Iterator[Finding]:
        yield from super().check()
        if self.config.removed_to == self.name:
            message = f"the port for the records that leave has the name of the node, '{self.name}'"
            help_text = "give it another one: the bare name stands for the records that stay"
            yield Finding("E010", message, ("config", "removed_to"), help_text)

    @classmethod
    def side_ports_in(cls, node: Mapping) -> tuple[str, ...]:
        port = text_of(node.get("config"), "removed_to")
        return (port,) if port else ()


def _check_groups(order_by: Sequence[SortField], names: Sequence[str]) -> Iterator[Finding]:
    for i, name in enumerate(names):
        if name in names[:i]:
            see = (("rules", names.index(name), "name"), "the first one")
            yield Finding("E007", f"two rules are named '{name}'", ("rules", i, "name"), "rename one of them", see=see)
    for i, item in enumerate(order_by):
        if item.null_order == "drop":
            help_text = "write first or last; a filter can leave records out"
            yield Finding("E007", "a group cannot drop records by its order", ("order_by", i, "null_order"), help_text)
