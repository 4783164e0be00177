"""What an expression stands for while a query is lowered: SQL, a record of such values, rows, a group, or a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.query.hidden import HERE_COLUMN
from clinker_spark.query.types import ANY, GroupType, ListType, QType, RecordType
from clinker_spark.query.values import Dataset
from clinker_spark.sql import tree
from clinker_spark.sql.build import BIGINT, DOUBLE, long, own_columns, there, written_number


@dataclass(frozen=True)
class Column:
    """An SQL expression of a known type."""

    sql: tree.Expr
    type: QType

    @property
    def number(self) -> int | float | Decimal | None:
        """The number that is written there, if it is one."""
        return written_number(self.sql)


class Presence:
    """Is the row of an outer join there? Whoever asks makes the source carry a column that says so."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.asked = False

    def sql(self) -> tree.Expr:
        self.asked = True
        return there(tree.Column(HERE_COLUMN, self.alias))


@dataclass(frozen=True)
class Record:
    """A record whose fields are known one by one; it becomes a struct only where it must be one value."""

    fields: Mapping[str, Value]
    presence: Presence | None = None
    row_of: str = ""

    def field(self, name: str) -> Value | None:
        own = self.fields.get(name)
        if own is not None:
            return own
        if self.row_of == name:
            return self
        if self.row_of == "*":
            rows = (row for row in self.fields.values() if isinstance(row, Record))
            return next((found for row in rows if (found := row.field(name)) is not None), None)
        return None


@dataclass(frozen=True)
class OrderTerm:
    """SQL that says where a row stands, mostly a column, hidden or not. `plain` ones ascend and are never null."""

    sql: tree.Expr
    descending: bool = False
    plain: bool = True
    type: QType = ANY

    def key(self) -> tree.Sort:
        return tree.Sort(self.sql, "" if self.plain else "DESC" if self.descending else "ASC")


def sorted_by(terms: tuple[OrderTerm, ...] | list[OrderTerm]) -> tree.OrderBy:
    return tree.OrderBy(tuple(t.key() for t in terms))


@dataclass(frozen=True)
class Lowered:
    """Rows as a query, and what orders them. `in_order` says that its last step sorts them."""

    query: tree.Query
    order: tuple[OrderTerm, ...] = ()
    in_order: bool = False

    @property
    def relation(self) -> tree.Source | tree.Query:
        """As it stands after FROM or JOIN."""
        first = self.query.steps[0]
        if len(self.query.steps) == 1 and isinstance(first, tree.From) and isinstance(first.relation, tree.Source):
            return first.relation
        return self.query

    def sorted(self, row: QType) -> tree.Query:
        """The whole query, its rows in order and without hidden columns."""
        if not self.order:
            return self.query
        names = [name for name, _ in columns_of(row)]
        made = self.query if self.in_order else self.query.then(sorted_by(self.order))
        if all(t.sql in [tree.Column(name) for name in names] for t in self.order):
            return made
        return made.then(tree.Select(own_columns(names)))


@dataclass(frozen=True)
class Relation:
    """Rows on Spark. `build(ordered)` gives their SQL, with hidden order columns if somebody needs the order."""

    row: QType
    build: Callable[[bool], Lowered] = field(repr=False)


@dataclass(eq=False)
class SparkDataset(Dataset):
    """Rows on Spark as a value of a program."""

    relation: Relation


@dataclass(frozen=True)
class Rows:
    """A relation as a value: something to count, to look into, or to go through."""

    relation: Relation


@dataclass(frozen=True)
class GroupRef:
    """A group: `context` turns uses of it into aggregates. `type` is what the checker calls it."""

    context: Any
    type: GroupType


@dataclass(frozen=True)
class Local:
    """A value that the program already has: a constant, a list, a function."""

    value: Any


Value = Column | Record | Rows | GroupRef | Local

VALUE = "value"
"""The column of a relation whose rows are no records."""


def columns_of(row: QType) -> tuple[tuple[str, QType], ...]:
    """The columns that rows of a type have: one for each field. A row that may be null is one struct."""
    if isinstance(row, RecordType) and not row.nullable:
        return row.fields
    return ((VALUE, row),)


def row_value(alias: str, row: QType, presence: Presence | None = None) -> Value:
    """The row of a source called `alias`; with `presence`, one that an outer join may leave empty."""
    fields = {n: Column(tree.Column(n, alias), t.as_nullable() if presence else t) for n, t in columns_of(row)}
    if isinstance(row, RecordType) and not row.nullable:
        return Record(fields, presence)
    return fields[VALUE]


def wide(column: Column) -> tree.Expr:
    """A number with all the bits that computing with it needs: Spark takes one that is written for 32 bits."""
    t = column.type
    if isinstance(column.number, int):
        return long(column.number)
    if isinstance(t, Type) and t.narrow:
        return tree.Cast(column.sql, BIGINT if t.kind is Kind.INT else DOUBLE)
    return column.sql


def widened(t: QType) -> QType:
    return replace(t, narrow=False) if isinstance(t, Type) and t.narrow else t


def list_type(relation: Relation) -> ListType:
    return ListType(relation.row, dataset=True)
