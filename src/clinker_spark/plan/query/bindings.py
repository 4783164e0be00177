"""A query while it is put together: its sources under their aliases, its order and its steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import HERE_COLUMN, POSITION_COLUMN
from clinker_spark.plan.query.pieces import STEP
from clinker_spark.plan.query.values import VALUE, Column, OrderTerm, Presence, Rendered, Value, row_value
from clinker_spark.query.types import QType


@dataclass
class Binding:
    """A source of a query under its alias. `lateral` is the text of a list of an earlier row."""

    name: str
    alias: str
    row: QType
    rendered: Rendered | None
    step: str = "FROM"
    on: str = ""
    lateral: str = ""
    presence: Presence | None = None

    def value(self) -> Value:
        if self.lateral:
            return Column(f"{self.alias}.{quote(VALUE)}", self.row)
        return row_value(self.alias, self.row, self.presence)

    def text(self) -> str:
        if self.lateral:
            return f"JOIN LATERAL posexplode({self.lateral}) AS {self.alias}({quote(POSITION_COLUMN)}, {VALUE})"
        assert self.rendered is not None
        source = self.rendered.source()
        if self.presence is not None and self.presence.asked:
            source = f"(FROM {source} |> EXTEND TRUE AS {quote(HERE_COLUMN)})"
        return f"{self.step} {source} AS {self.alias}" + (f" ON {self.on}" if self.on else "")


@dataclass
class Block:
    """A query while it is put together."""

    bindings: list[Binding] = field(default_factory=list)
    order: list[OrderTerm] = field(default_factory=list)
    """Where a row stands, outermost first."""
    steps: list[str] = field(default_factory=list)

    def text(self) -> str:
        return STEP.join([*(b.text() for b in self.bindings), *self.steps])
