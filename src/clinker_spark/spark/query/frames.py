"""Sources of queries as DataFrames: files, lists and DataFrames, with hidden columns for the order when asked."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from clinker_spark.core.types import STRING, Kind
from clinker_spark.query.files.formats import FILE_PLACES, FileSource
from clinker_spark.query.hidden import ROW_COLUMN
from clinker_spark.query.lower.order import ASCENDING_ID
from clinker_spark.query.lower.spelling import spark_type
from clinker_spark.query.lower.values import VALUE, columns_of
from clinker_spark.query.sources import ListSource
from clinker_spark.query.types import QType, RecordType, is_kind
from clinker_spark.spark.query.csv_frames import csv_frame
from clinker_spark.spark.scan.files import hadoop_path
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import BIGINT, own_columns
from clinker_spark.sql.render import columns_text, render


def scan_frame(spark: SparkSession, content: Any, ordered: bool) -> DataFrame:
    """The rows of a source, wherever they come from."""
    if isinstance(content, FileSource):
        return file_frame(spark, content, ordered)
    if isinstance(content, ListSource):
        return list_frame(spark, content.rows, content.row, ordered)
    frame: DataFrame = content
    return frame


def list_frame(spark: SparkSession, rows: list[Any], row: QType, ordered: bool) -> DataFrame:
    """A list of the program as a DataFrame."""
    columns = columns_of(row)
    hidden = [(ROW_COLUMN, BIGINT)] if ordered else []
    schema = columns_text([*((n, spark_type(t)) for n, t in columns), *hidden])
    data = []
    for place, item in enumerate(rows):
        record = isinstance(row, RecordType) and columns[0][0] != VALUE
        values = [_fitted(item.get(n), t) if record else _fitted(item, t) for n, t in columns]
        data.append((*values, place) if ordered else tuple(values))
    return spark.createDataFrame(data, schema)


def _fitted(value: Any, t: QType) -> Any:
    """A value as createDataFrame wants it for its column: records complete, whole numbers as floats where needed."""
    if value is None:
        return None
    if isinstance(t, RecordType):
        return tuple(_fitted(value.get(n), f) for n, f in t.fields)
    if is_kind(t, Kind.FLOAT):
        return float(value)
    if isinstance(value, list):
        element = getattr(t, "element", STRING)
        return [_fitted(v, element) for v in value]
    return value


def file_frame(spark: SparkSession, source: FileSource, ordered: bool) -> DataFrame:
    """The rows of a file. A value that is not of its column's type stops the query."""
    if source.rows is not None:
        return list_frame(spark, list(source.rows), source.row, ordered)
    if source.format in ("csv", "tsv"):
        return csv_frame(spark, source, ordered)
    reader, paths = spark.read, [hadoop_path(path) for path in source.paths]
    if source.format == "parquet":
        frame = (reader.schema(source.schema) if source.schema else reader).parquet(*paths)
    else:
        schema = columns_text((n, spark_type(t)) for n, t in source.row.fields)
        frame = reader.json(paths, schema=schema, multiLine=source.format == "json", mode="FAILFAST")
    listed = [sql.As(_read_as(source, name, t), name) for name, t in source.row.fields]
    if ordered:
        about = sql.Column("_metadata")
        row = sql.Field(about, "row_index") if source.format == "parquet" else ASCENDING_ID
        places = (sql.Field(about, "file_path"), sql.Field(about, "file_block_start"), row)
        listed += [sql.As(e, n) for e, n in zip(places, FILE_PLACES, strict=True) if n in source.places]
    if tuple(listed) == own_columns(source.names) == own_columns(frame.columns):
        return frame
    return frame.selectExpr(*[str(render(c)) for c in listed])


def _read_as(source: FileSource, name: str, t: QType) -> sql.Expr:
    """How a column of a file is read, as SQL."""
    if source.format == "parquet" and is_kind(t, Kind.DATETIME):
        return sql.Cast(sql.Column(name), spark_type(t))
    return sql.Column(name)
