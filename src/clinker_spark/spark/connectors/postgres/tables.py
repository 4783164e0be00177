"""Types of columns in PostgreSQL, and whether a table can hold the records of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.types import Kind, Type

_MADE = {
    Kind.BOOL: "boolean",
    Kind.INT: "bigint",
    Kind.FLOAT: "double precision",
    Kind.DECIMAL: "numeric",
    Kind.STRING: "text",
    Kind.NULL: "text",
    Kind.DATE: "date",
    Kind.DATETIME: "timestamp without time zone",
}
# What holds every value of a kind; numbers of narrower columns would be refused one record at a time.
_HOLDS = {
    Kind.BOOL: ("boolean",),
    Kind.INT: ("bigint", "numeric"),
    Kind.FLOAT: ("double precision",),
    Kind.DECIMAL: ("numeric",),
    Kind.STRING: ("text", "character varying", "citext"),
    Kind.NULL: ("text", "character varying", "citext"),
    Kind.DATE: ("date", "timestamp without time zone"),
    Kind.DATETIME: ("timestamp without time zone", "timestamp with time zone"),
}
_JSON = ("jsonb", "json", "text", "character varying")


def is_json(t: Type) -> bool:
    """Is it written as JSON?"""
    return t.is_dynamic or t.kind in (Kind.ARRAY, Kind.MAP)


def made_type(t: Type) -> str:
    """The type of a column that is made for values of a CXL type.

    >>> from clinker_spark.core.types import ANY, INT, decimal
    >>> made_type(INT), made_type(decimal(2)), made_type(ANY)
    ('bigint', 'numeric(29,2)', 'jsonb')
    """
    if is_json(t):
        return "jsonb"
    if t.kind is Kind.DECIMAL and t.scale is not None:
        return f"numeric(29,{t.scale})"
    return _MADE[t.kind]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Name:
    """A table: its schema, if one is given, and its name."""

    schema: str | None
    name: str

    @classmethod
    def of(cls, text: str) -> Name:
        first, dot, second = text.partition(".")
        return cls(first, second) if dot else cls(None, first)

    def beside(self, name: str) -> Name:
        """Another table in the same schema."""
        return Name(self.schema, name)

    @property
    def sql(self) -> str:
        return quoted(self.name) if self.schema is None else f"{quoted(self.schema)}.{quoted(self.name)}"


def create_table(table: Name, columns: Mapping[str, Type], keys: Sequence[str]) -> str:
    """The statement that makes a table for the records.

    >>> from clinker_spark.core.types import INT, STRING
    >>> create_table(Name.of("paid"), {"id": INT, "note": STRING.as_nullable()}, ["id"])
    'CREATE TABLE IF NOT EXISTS "paid" ("id" bigint NOT NULL, "note" text, PRIMARY KEY ("id"))'
    """
    lines = [
        f"{quoted(name)} {made_type(t)}{'' if t.nullable or t.is_dynamic or t.kind is Kind.NULL else ' NOT NULL'}"
        for name, t in columns.items()
    ]
    if keys:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, keys))})")
    return f"CREATE TABLE IF NOT EXISTS {table.sql} ({', '.join(lines)})"


_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_UNIQUE = """
SELECT array_agg(a.attname::text) FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
AND i.indimmediate GROUP BY i.indexrelid"""


@dataclass(frozen=True)
class Problem:
    """Why a table does not fit, and what would help."""

    message: str
    help: str


def table_columns(connection: Any, table: Name) -> dict[str, tuple[str, bool, bool, bool]]:
    """By column: its type; must it not be null? Has it a default? Is it never written? Empty if there is no table."""
    rows = connection.execute(_COLUMNS, (table.sql,)).fetchall()
    return {name: (kind, strict, default, generated) for name, kind, strict, default, generated in rows}


def problems(connection: Any, table: Name, columns: Mapping[str, Type], keys: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with a table that is there."""
    there = table_columns(connection, table)
    shown = table.name if table.schema is None else f"{table.schema}.{table.name}"
    for name, t in columns.items():
        if name in there:
            yield from _unfit(there[name], name, t, table, shown)
        else:
            help_text = f"ALTER TABLE {table.sql} ADD COLUMN {quoted(name)} {made_type(t)}"
            yield Problem(f"table '{shown}' has no column '{name}'", help_text)
    for name, (_, strict, default, generated) in there.items():
        if name not in columns and strict and not default and not generated:
            message = f"column '{name}' of table '{shown}' needs a value, and the records have none"
            yield Problem(message, f"give it a default, or write it with 'mapping: [{name}: column]'")
    if keys and all(key in there for key in keys):
        unique = [set(found) for (found,) in connection.execute(_UNIQUE, (table.sql,)).fetchall()]
        if set(keys) not in unique:
            message = f"table '{shown}' has no unique index over {', '.join(keys)}"
            help_text = f"CREATE UNIQUE INDEX ON {table.sql} ({', '.join(map(quoted, keys))})"
            yield Problem(message, help_text)


def _unfit(found: tuple[Any, ...], name: str, t: Type, table: Name, shown: str) -> Iterator[Problem]:
    """Why values of a type cannot go into a column."""
    kind, strict, _, generated = found
    if generated:
        message = f"column '{name}' of table '{shown}' is computed by the database"
        yield Problem(message, "leave it out with 'exclude'")
    elif not _holds(kind, t):
        help_text = f"ALTER TABLE {table.sql} ALTER COLUMN {quoted(name)} TYPE {made_type(t)}"
        yield Problem(f"column '{name}' of table '{shown}' is {kind}, and the records have {t}", help_text)
    elif strict and (t.nullable or t.is_dynamic or t.kind is Kind.NULL):
        help_text = f"ALTER TABLE {table.sql} ALTER COLUMN {quoted(name)} DROP NOT NULL"
        yield Problem(f"column '{name}' of table '{shown}' takes no null, and the records have {t}", help_text)


def _holds(kind: str, t: Type) -> bool:
    if is_json(t):
        return kind in _JSON
    if t.kind is Kind.DECIMAL and t.scale is not None and kind.startswith("numeric("):
        digits, scale = (int(part) for part in kind[len("numeric(") : -1].split(","))
        return scale >= t.scale and digits - scale >= 29 - t.scale
    if t.kind is Kind.INT and kind.startswith("numeric("):
        digits, scale = (int(part) for part in kind[len("numeric(") : -1].split(","))
        return digits - scale >= 19
    return kind in _HOLDS[t.kind]
