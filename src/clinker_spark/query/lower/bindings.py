"""A query while it is put together: its sources under their aliases, its order and its steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from clinker_spark.query.hidden import HERE_COLUMN, POSITION_COLUMN
from clinker_spark.query.lower.values import VALUE, Column, Lowered, OrderTerm, Presence, Value, row_value
from clinker_spark.query.types import QType
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import TRUE


@dataclass
class Binding:
    """A source of a query under its alias. `lateral` is a list of an earlier row, whose elements it goes through."""

    name: str
    alias: str
    row: QType
    rows: Lowered | None
    join: str = ""
    on: tuple[sql.Expr, ...] = ()
    lateral: sql.Expr | None = None
    presence: Presence | None = None

    def value(self) -> Value:
        if self.lateral is not None:
            return Column(sql.Column(VALUE, self.alias), self.row)
        return row_value(self.alias, self.row, self.presence)

    def step(self) -> sql.Step:
        if self.lateral is not None:
            return sql.Explode(self.lateral, self.alias, POSITION_COLUMN, VALUE)
        assert self.rows is not None
        relation = self.rows.relation
        if self.presence is not None and self.presence.asked:
            relation = sql.Query((sql.From(relation), sql.Extend((sql.As(TRUE, HERE_COLUMN),))))
        return sql.Join(self.join, relation, self.alias, self.on) if self.join else sql.From(relation, self.alias)


@dataclass
class Block:
    """A query while it is put together."""

    bindings: list[Binding] = field(default_factory=list)
    order: list[OrderTerm] = field(default_factory=list)
    """Where a row stands, outermost first."""
    steps: list[sql.Step] = field(default_factory=list)

    def query(self) -> sql.Query:
        return sql.Query((*(b.step() for b in self.bindings), *self.steps))
