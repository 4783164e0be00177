"""Arrays that are written into one field (`join_values`): as one text in CSV, as elements with other names in XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clinker_spark.config.model.join_values import JoinValues
from clinker_spark.config.model.output import AnyOutput, XmlOutput
from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import STRING, Kind
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import Failing
from clinker_spark.spark.render.cell_text import CellStyle, declared, scalar_text
from clinker_spark.spark.render.contract import NAN, OutColumn, unwritable
from clinker_spark.spark.render.json_values import json_value, not_finite, not_finite_text

COLLISION = "multi_value_join_collision"


def with_joins(
    config: AnyOutput, columns: tuple[OutColumn, ...], schema: tuple[Column, ...] | None
) -> tuple[OutColumn, ...]:
    """The columns, with those that are joined as what is written of them."""
    joins = {join.field: join for join in config.join_values}
    if not joins:
        return columns
    if isinstance(config, XmlOutput):
        return tuple(_renamed(c, joins[c.name]) if c.name in joins else c for c in columns)
    known = declared(schema or ())
    base = CellStyle(between="T")
    return tuple(_joined(c, joins[c.name], base.of(known.get(c.name))) if c.name in joins else c for c in columns)


def _renamed(column: OutColumn, join: JoinValues) -> OutColumn:
    *before, last = column.name.split(".")
    wrapped = [join.wrap_in] if join.wrap_in is not None else []
    return replace(column, name=".".join([*before, *wrapped, join.repeat_as or last]))


def _joined(column: OutColumn, join: JoinValues, style: CellStyle) -> OutColumn:
    if join.on_conflict == "encode_json":
        text = json_value(column.sql, column.type)
    else:
        text = _text(column, join, style)
    failing = tuple((failing, column.name) for failing in _failures(column, join, style))
    return replace(column, type=STRING.as_nullable(), sql=text, failing=failing)


def _value(column: OutColumn, name: str, style: CellStyle) -> str:
    """SQL for the text of one value of the array."""
    element = column.type.element
    assert element is not None
    return f"coalesce({scalar_text(name, element, style)}, '')"


def _text(column: OutColumn, join: JoinValues, style: CellStyle) -> str:
    value = _value(column, "joined_v", style)
    if join.on_conflict == "escape":
        for character in (join.escape, join.delimiter):
            value = f"replace({value}, {sql_string(character)}, {sql_string(join.escape + character)})"
    return f"array_join(transform({column.sql}, joined_v -> {value}), {sql_string(join.delimiter)})"


def _failures(column: OutColumn, join: JoinValues, style: CellStyle) -> Iterator[Failing]:
    if join.on_conflict == "encode_json":
        bad = not_finite(column.sql, column.type)
        if bad is not None:
            message = "an array is written as JSON, which has neither NaN nor infinity"
            yield unwritable(bad, not_finite_text(column.sql, column.type), message, NAN)
        return
    element = column.type.element
    if join.on_conflict != "error" or (element is not None and element.kind in (Kind.INT, Kind.BOOL, Kind.NULL)):
        return
    held = f"contains({_value(column, 'joined_v', style)}, {sql_string(join.delimiter)})"
    message = f"a value has the delimiter {join.delimiter!r} in it: choose another delimiter, or an on_conflict"
    yield unwritable(
        f"exists({column.sql}, joined_v -> {held})", json_value(column.sql, column.type), message, COLLISION
    )
