"""`type: composition`, a call of a reusable part, and `_compose:`, the interface of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import Finding, Gone, Model, without_effect
from clinker_spark.config.model.documents.variable import NAME, VarType, check_default, check_names, read_value
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.model.schema import Column, SchemaSpec, check_columns
from clinker_spark.config.tree.yaml import Mapping
from clinker_spark.config.values import Anything, Bool, Float, Text, Words

_PORTS = Gone("a composition is read by its ports", "remove it; other nodes read node.port")


class CompositionNode(NodeModel):
    """Puts the nodes of a *.comp.yaml file in this place."""

    type: Literal["composition"]
    use: Words
    """The path of the *.comp.yaml file."""
    input: Words | None = None
    """The node that is read, when the composition has one input port."""
    inputs: dict[str, Words] | None = None
    """Each input port and the node that feeds it."""
    config: dict[str, Anything] = Field(default_factory=dict)
    """Values for the parameters of the composition."""

    gone: ClassVar[dict[str, Gone]] = {"outputs": _PORTS, "alias": _PORTS}
    resources: dict[str, Words] = Field(default_factory=dict)
    """For each slot of the composition the name of a file in clinker.toml: [catalog.resources.name]."""

    @classmethod
    def inputs_in(cls, node: Mapping) -> tuple[str, ...]:
        return ("inputs",) if isinstance(node.get("inputs"), Mapping) else ("input",)  # the map of ports is what counts

    @classmethod
    def ports_in(cls, node: Mapping) -> tuple[str, ...] | None:
        return None  # they stand in its file

    def check(self) -> Iterator[Finding]:
        if self.inputs and self.input not in (None, *self.inputs.values()):
            yield from without_effect(self, ("input",), "'inputs' says what feeds each port")


class Port(Model):
    """An input of the composition."""

    schema_: SchemaSpec | None = Field(default=None, alias="schema")
    """The columns that the stream must have at least."""
    required: Bool = True
    """Must a call feed it? Otherwise it has no records where none does, and needs a schema."""
    description: Text | None = None

    def check(self) -> Iterator[Finding]:
        if self.schema_ is not None and not isinstance(self.schema_, str):
            yield from self.check_schema(self.schema_)

    def check_schema(self, columns: tuple[Column, ...]) -> Iterator[Finding]:
        """What is wrong with the columns. Also for columns that came from a file."""
        for finding in check_columns(columns):
            yield finding.under("schema")


class Parameter(Model):
    """A parameter that the program reads as $config.name."""

    type: VarType
    """string, int, float, bool, date or date_time."""
    default: Any = None
    """Its value, when the call gives none."""
    required: Bool | None = None
    """Must the call give a value? By default when there is no default."""
    range: tuple[Float, Float] | None = None
    """The lowest and the highest number allowed."""
    enum: tuple[Words, ...] | None = None
    """The texts that are allowed."""
    description: Text | None = None

    @property
    def value(self) -> Any:
        """The default as a value of the declared type; None when there is none."""
        return None if self.default is None else read_value(self.type, self.default)

    @property
    def is_required(self) -> bool:
        return self.default is None if self.required is None else self.required

    def check(self) -> Iterator[Finding]:
        bad = list(check_default(self.type, self.default))
        yield from bad
        if self.range is not None and self.range[0] > self.range[1]:
            yield Finding("E007", "the range ends before it begins", ("range",), "write [lowest, highest]")
        elif self.range is not None and self.type not in ("int", "float"):
            yield Finding("E007", f"a {self.type} has no range", ("range",), "remove it", on_key=True)
        elif not bad and (reason := self.refuses(self.value)):
            yield Finding("E014", f"the default {reason}", ("default",), "choose one that is allowed")

    def refuses(self, value: Any) -> str | None:
        """Why a value of the right type is not allowed, or None."""
        if value is None:
            return None
        if self.range is not None and isinstance(value, int | float) and not self.range[0] <= value <= self.range[1]:
            return f"lies outside {self.range[0]} to {self.range[1]}"
        if self.enum is not None and str(value) not in self.enum:
            return f"is none of {', '.join(self.enum)}"
        return None


class ScopedVar(Model):
    """A variable of the caller that the body may read."""

    type: VarType


class ScopedVars(Model):
    """Variables of the caller that the body may read, by scope."""

    pipeline: dict[str, ScopedVar] = Field(default_factory=dict)
    source: dict[str, ScopedVar] = Field(default_factory=dict)
    record: dict[str, ScopedVar] = Field(default_factory=dict)


class ResourceSlot(Model):
    """A file that the body reads, and that each call chooses."""

    kind: Literal["file"] = "file"
    """What it is: a file."""
    required: Bool = True
    """Must a call choose one? Otherwise the source that reads it has no records where none does."""


class Interface(Model):
    """What a composition takes and gives."""

    name: Words
    """The name of the composition."""
    description: Text | None = None
    inputs: dict[str, Port]
    """The input ports; nodes of the body read them by name."""
    outputs: Annotated[dict[str, Words], Field(min_length=1)]
    """Each output port and the node of the body it is, or node.port."""
    config_schema: dict[str, Parameter] = Field(default_factory=dict)
    """The parameters, read as $config.name."""
    scoped_vars: ScopedVars = Field(default_factory=ScopedVars)

    resources_schema: dict[str, ResourceSlot] = Field(default_factory=dict)
    """Files that calls choose. A source of the body names one: resource: prices, in place of a path."""

    def check(self) -> Iterator[Finding]:
        for finding in check_names(list(self.config_schema), "parameter"):
            yield finding.under("config_schema")
        for section in ("inputs", "outputs"):
            for name in getattr(self, section):
                if not NAME.fullmatch(name):
                    help_text = "use letters, digits and '_': other nodes read node.port"
                    yield Finding("E101", f"'{name}' cannot name a port", (section, name), help_text, on_key=True)
