"""The undeclared columns of a source: the `$widened` map that rides along with every record.

Formats without types (CSV, XML) give texts. JSON and Parquet give each value as the JSON that stands for it, so that a
number stays a number, and all its digits stay: `{"n": {"json": "5"}, "s": {"json": "\\"five\\""}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql.types import DataType, MapType, StructType

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import WIDENED_COLUMN
from clinker_spark.plan.graph import Plan

TEXTS = "MAP<STRING, STRING>"
VALUES = "MAP<STRING, STRUCT<json: STRING>>"


def has_types(kind: DataType) -> bool:
    """Does a `$widened` column of this type keep the types of the values?"""
    return isinstance(kind, MapType) and isinstance(kind.valueType, StructType)


def text(name: str, kind: DataType) -> str:
    """SQL for an undeclared column as text: what a cell of a CSV file shows."""
    return _text(_entry(name), kind)


def _text(sql: str, kind: DataType) -> str:
    if not has_types(kind):
        return sql
    # A text without escapes is what stands between its quotes.
    quoted = f"{sql}.json LIKE '\"%'"
    plain = f"substring({sql}.json, 2, length({sql}.json) - 2)"
    read = f"get_json_object(concat('{{\"v\":', {sql}.json, '}}'), '$.v')"
    unquoted = f"IF(contains({sql}.json, chr(92)), {read}, {plain})"
    # A float that is whole has a point in JSON, and none in a cell.
    whole = f"WHEN {sql}.json LIKE '%.0' THEN substring({sql}.json, 1, length({sql}.json) - 2)"
    return f"CASE WHEN {quoted} THEN {unquoted} {whole} ELSE {sql}.json END"


def cells(names: Sequence[str], kind: DataType, between: str, cell: Callable[[str], str]) -> str:
    """SQL for the cells of many undeclared columns, with what stands `between` two of them; `cell` makes one of a text.

    A record has few of them, wherever it comes from. So not each column is looked for in the record: the places of its
    entries are looked up, and what lies between them is filled. With 3,000 columns, SQL for each of them took minutes
    to plan alone."""
    places = f"map_from_arrays(array({', '.join(map(sql_string, names))}), sequence(0, {len(names) - 1}))"
    delimiter = sql_string(between)
    entry = f"named_struct('p', {places}[e.key], 't', {cell(_text('e.value', kind))})"
    there = f"filter(transform(map_entries({quote(WIDENED_COLUMN)}), e -> {entry}), s -> s.p IS NOT NULL)"
    start = "named_struct('p', 0, 't', '')"
    step = f"(a, s) -> named_struct('p', s.p, 't', concat(a.t, repeat({delimiter}, s.p - a.p), coalesce(s.t, '')))"
    end = f"a -> concat(a.t, repeat({delimiter}, {len(names) - 1} - a.p))"
    none = sql_string(between * (len(names) - 1))
    return f"coalesce(aggregate(array_sort({there}), {start}, {step}, {end}), {none})"


def json(name: str) -> str:
    """SQL for an undeclared column as JSON, of a map that keeps types."""
    return f"{_entry(name)}.json"


def value(name: str, kind: DataType) -> str:
    """SQL for an undeclared column as a value of type Any."""
    return f"try_parse_json({json(name)})" if has_types(kind) else f"CAST({_entry(name)} AS VARIANT)"


def order(name: str, kind: DataType) -> str:
    """SQL for what sorts by an undeclared column: its text or, where values have types, numbers before all others."""
    shown = text(name, kind)
    if not has_types(kind):
        return shown
    number = f"IF({_entry(name)}.json LIKE '\"%', NULL, TRY_CAST({_entry(name)}.json AS DOUBLE))"
    parts = f"named_struct('other', {number} IS NULL, 'number', {number}, 'text', {shown})"
    return f"IF(coalesce({_entry(name)}.json, 'null') = 'null', NULL, {parts})"


def with_types(kind: DataType) -> str:
    """SQL for the map with types, made of one of either kind. Texts stay texts."""
    column = quote(WIDENED_COLUMN)
    if has_types(kind):
        return column
    literal = "substring(to_json(array(v)), 2, length(to_json(array(v))) - 2)"
    return f"transform_values({column}, (k, v) -> named_struct('json', CASE WHEN v IS NOT NULL THEN {literal} END))"


def _entry(name: str) -> str:
    return f"{quote(WIDENED_COLUMN)}[{sql_string(name)}]"


Widened = Mapping[str, tuple[str, ...]]
"""By source: the undeclared columns of its files."""


def names_of(plan: Plan, node: str, widened: Widened) -> list[str]:
    """The undeclared columns that the records of a node can carry, in the order of their sources and files."""
    names: dict[str, None] = {}
    todo = [node]
    while todo:
        before = plan[todo.pop(0)]
        names.update(dict.fromkeys(widened.get(before.name, ())))
        todo += [ref.node for ref in before.carried_from]
    return list(names)
