"""What CSV and fixed-width files share: a cell is a text, so that arrays are written as JSON and maps not at all."""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.core.types import ANY, Kind, Type, array_of
from clinker_spark.cxl.builtins.physical import kind_sql, variant_is
from clinker_spark.cxl.lower.plan import Failing
from clinker_spark.spark.render.cell_text import CellStyle, bound, is_kind, scalar_text
from clinker_spark.spark.render.contract import NAN, OutColumn, unwritable
from clinker_spark.spark.render.json_values import json_value, not_finite, not_finite_text

_REMEDIES = "emit a value of it, or leave it out of the schema, and include_unmapped writes each of its fields"


def flat_text(sql: str, t: Type, style: CellStyle) -> str:
    """The text of a cell; NULL for maps, which are refused by `flat_failures`."""
    if t.is_dynamic:
        return bound(sql, "out_v", lambda v: _variant_text(v, style))
    if t.kind is Kind.ARRAY:
        return json_value(sql, t)
    return "CAST(NULL AS STRING)" if t.kind is Kind.MAP else scalar_text(sql, t, style)


def _variant_text(v: str, style: CellStyle) -> str:
    is_array = variant_is(kind_sql(v), Kind.ARRAY)
    return f"CASE WHEN {is_array} THEN {json_value(v, ANY)} ELSE {scalar_text(v, ANY, style)} END"


def flat_failures(column: OutColumn, file: str) -> Iterator[tuple[Failing, str | None]]:
    """Why a value cannot be a cell of a `file` (CSV, a fixed-width file)."""
    sql, t = column.sql, column.type
    is_map = is_kind(sql, t, Kind.MAP)
    if is_map is not None:
        message = f"a map cannot be written to {file}: {_REMEDIES}"
        yield unwritable(is_map, f"to_json({sql})", message), column.name
    is_array = is_kind(sql, t, Kind.ARRAY)
    inner = None if is_array is None else not_finite(sql, t if t.kind is Kind.ARRAY else array_of(ANY))
    if t.is_dynamic:
        inner = not_finite(sql, t)
    if inner is not None:
        message = "an array is written as JSON, which has neither NaN nor infinity"
        yield unwritable(f"({is_array} AND {inner})", not_finite_text(sql, t), message, NAN), column.name
