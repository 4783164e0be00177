"""What an expression stands for while a query is lowered: SQL, a record of such values, rows, a group, or a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import HERE_COLUMN
from clinker_spark.plan.query.pieces import STEP, nested
from clinker_spark.query.types import (
    ANY,
    GroupType,
    ListType,
    QType,
    RecordType,
    Scalar,
)


@dataclass(frozen=True)
class Column:
    """SQL text of a known type."""

    text: str
    type: QType
    query: str = field(default="", compare=False)
    """The query that gives this value as its only row. Asked by itself it runs as it is, not as a sub-query."""
    number: int | float | Decimal | None = field(default=None, compare=False)
    """The number that is written there, if it is one."""


class Presence:
    """Is the row of an outer join there? Whoever asks makes the source carry a column that says so."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.asked = False

    def text(self) -> str:
        self.asked = True
        return f"({self.alias}.{quote(HERE_COLUMN)} IS NOT NULL)"


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

    text: str
    descending: bool = False
    plain: bool = True
    type: QType = ANY

    def sql(self) -> str:
        if self.plain:
            return self.text
        return f"{self.text} {'DESC' if self.descending else 'ASC'} NULLS LAST"


@dataclass(frozen=True)
class Rendered:
    """A query as text with marks (see `pieces`).

    `table` is set when it is no more than a table, `in_order` when its last step sorts it.
    """

    text: str
    order: tuple[OrderTerm, ...] = ()
    table: str | None = None
    in_order: bool = False

    def source(self) -> str:
        """As it stands after FROM or JOIN."""
        return self.table if self.table is not None else nested(self.text)

    def sorted(self, row: QType) -> str:
        """The whole query, its rows in order and without hidden columns."""
        if not self.order:
            return self.text
        names = [quote(name) for name, _ in columns_of(row)]
        order = "" if self.in_order else f"{STEP}ORDER BY {', '.join(t.sql() for t in self.order)}"
        if all(t.text in names for t in self.order):
            return f"{self.text}{order}"
        return f"{self.text}{order}{STEP}SELECT {', '.join(names)}"


@dataclass(frozen=True)
class Relation:
    """Rows on Spark. `build(ordered)` gives their SQL, with hidden order columns if somebody needs the order."""

    row: QType
    build: Callable[[bool], Rendered] = field(repr=False)
    scans: frozenset[str] = frozenset()

    @property
    def type(self) -> ListType:
        return ListType(self.row, dataset=True)


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
    if isinstance(row, RecordType) and not row.null:
        return row.fields
    return ((VALUE, row),)


def row_value(alias: str, row: QType, presence: Presence | None = None) -> Value:
    """The row of a source called `alias`; with `presence`, one that an outer join may leave empty."""
    fields = {name: Column(f"{alias}.{quote(name)}", t.as_nullable() if presence else t) for name, t in columns_of(row)}
    if isinstance(row, RecordType) and not row.null:
        return Record(fields, presence)
    return fields[VALUE]


def wide(column: Column) -> str:
    """A number with all the bits that computing with it needs."""
    t = column.type
    if isinstance(t, Scalar) and t.narrow:
        return f"CAST({column.text} AS {'BIGINT' if t.kind is Kind.INT else 'DOUBLE'})"
    return column.text


def widened(t: QType) -> QType:
    return replace(t, narrow=False) if isinstance(t, Scalar) and t.narrow else t
