"""Parquet files before Spark sees them: their footers say the types, and which columns have no nulls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from clinker_spark.core.types import BOOL, DATE, DATETIME, FLOAT, INT, STRING, decimal
from clinker_spark.query.files.csv import check_columns
from clinker_spark.query.types import ANY, ListType, QType, RecordType
from clinker_spark.sql.render import columns_text
from clinker_spark.sql.tree import Named


def parquet_row(paths: tuple[str, ...]) -> tuple[RecordType, str | None]:
    """The columns of Parquet files, and their Spark schema.

    Footers count nulls: a column without any is joined and compared faster."""
    import pyarrow.parquet as pq  # Arrow is loaded by queries that read such files

    schema = pq.read_schema(paths[0])
    without_nulls = set(schema.names)
    check_columns([(path, pq.read_schema(path).names) for path in paths])
    for path in paths:
        without_nulls &= _columns_without_nulls(pq.read_metadata(path))
    fields = [(f.name, _arrow_type(f.type)) for f in schema]
    row = RecordType(tuple((n, t if n in without_nulls else t.as_nullable()) for n, t in fields))
    spelled = [(f.name, _spark_spelling(f.type)) for f in schema]
    if any(text is None for _, text in spelled):
        return row, None
    return row, columns_text((name, Named(str(text))) for name, text in spelled)


_FLAT: dict[str, tuple[QType, str]] = {
    "bool": (BOOL, "BOOLEAN"),
    "int8": (replace(INT, narrow=True), "TINYINT"),
    "int16": (replace(INT, narrow=True), "SMALLINT"),
    "int32": (replace(INT, narrow=True), "INT"),
    "int64": (INT, "BIGINT"),
    "float": (replace(FLOAT, narrow=True), "FLOAT"),
    "double": (FLOAT, "DOUBLE"),
    "date32[day]": (DATE, "DATE"),
    **dict.fromkeys(("string", "large_string", "string_view"), (STRING, "STRING")),
}
"""Arrow types with those of queries and of Spark."""


def _spark_spelling(t: Any) -> str | None:
    """The Spark type of a flat Parquet column; None for those that Spark should look at itself."""
    import pyarrow as pa  # Arrow is loaded by queries that read such files

    if pa.types.is_decimal(t):
        return f"DECIMAL({t.precision}, {t.scale})"
    return _FLAT[str(t)][1] if str(t) in _FLAT else None


def _columns_without_nulls(metadata: Any) -> set[str]:
    counts: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for i in range(metadata.num_columns):
            column = metadata.row_group(group).column(i)
            stats = column.statistics
            nulls = stats.null_count if stats is not None and stats.has_null_count else 1
            counts[column.path_in_schema] = counts.get(column.path_in_schema, 0) + nulls
    return {name for name, nulls in counts.items() if nulls == 0}


def _arrow_type(t: Any) -> QType:
    import pyarrow as pa  # Arrow is loaded by queries that read such files

    if str(t) in _FLAT:
        return _FLAT[str(t)][0]
    if pa.types.is_integer(t) or pa.types.is_floating(t):
        return replace(INT if pa.types.is_integer(t) else FLOAT, narrow=t.bit_width < 64)
    if pa.types.is_decimal(t):
        return decimal(t.scale)
    if pa.types.is_date(t) or pa.types.is_timestamp(t):
        return DATE if pa.types.is_date(t) else DATETIME
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return ListType(_arrow_type(t.value_type).as_nullable())
    if pa.types.is_struct(t):
        return RecordType(tuple((f.name, _arrow_type(f.type).as_nullable()) for f in t)).as_nullable()
    return _arrow_type(t.value_type) if pa.types.is_dictionary(t) else ANY
