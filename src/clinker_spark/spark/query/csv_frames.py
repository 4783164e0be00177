"""CSV files of queries, read as pipelines read them: a record that cannot be used stops the query and is named.

Spark's own reader would pass over values that are too many where it does not need them, and put other characters for
bytes that are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.sources.formats import CsvRead
from clinker_spark.core.types import STRING, Kind, Type
from clinker_spark.cxl.hidden import ERROR_COLUMN
from clinker_spark.query.files.formats import BROKEN, FileSource
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.query.lower.order import ASCENDING_ID
from clinker_spark.query.lower.spelling import spark_type
from clinker_spark.query.types import QType, is_kind
from clinker_spark.spark.scan.csv.source import read_csv
from clinker_spark.spark.scan.request import Conventions, ReadRequest, Scan, SourceFile
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import TRUE, all_of, any_of, call, negated, there, when
from clinker_spark.sql.render import render

_ERROR = sql.Column(ERROR_COLUMN)
_TYPES = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.DATE: "date", Kind.DATETIME: "date_time"}


def csv_frame(spark: SparkSession, source: FileSource, ordered: bool) -> DataFrame:
    """The rows of CSV files, in the order of the files and their lines."""
    names = ", ".join(Path(path).name for path in source.paths[:3]) + (" ..." if len(source.paths) > 3 else "")
    frame = _scan(spark, source).frame
    told = sql.Literal(f"{BROKEN}a record of {names} cannot be used: ")
    stop = call("raise_error", call("concat", told, _reason(source)))
    # A filter stays, whatever columns the query needs.
    frame = frame.where(str(render(when(sql.IsNull(_ERROR), TRUE, stop))))
    patterns = dict(source.patterns)
    listed = [
        sql.As(_value(_column(source, name), t, patterns.get(name), name, names), name) for name, t in source.row.fields
    ]
    if ordered:  # the splits are the partitions, in order
        listed.append(sql.As(ASCENDING_ID, ROW_COLUMN))
    return frame.selectExpr(*[str(render(c)) for c in listed])


@dataclass(frozen=True)
class BrokenRecord:
    """The first record of files that cannot be used. `row` is its number in the file."""

    file: str
    row: int
    reason: str


def first_broken(spark: SparkSession, source: FileSource) -> BrokenRecord | None:
    """Looks for the record that stopped a query."""
    frame = _scan(spark, source, positions=True).frame
    wrong: list[sql.Expr] = [there(_ERROR)]
    reason = _reason(source)
    for name, pattern in source.patterns:
        text = _column(source, name)
        unlike = negated(_fits(text, pattern))
        told = call("concat", sql.Literal(_unlike(name) + ": "), text)
        reason = when(all_of((sql.IsNull(_ERROR), unlike)), told, reason)
        wrong.append(unlike)
    found = frame.where(str(render(any_of(wrong)))).select(FILE_COLUMN, ROW_COLUMN, F.expr(str(render(reason))))
    rows = found.orderBy(FILE_COLUMN, ROW_COLUMN).limit(1).collect()
    return BrokenRecord(source.paths[rows[0][0]], rows[0][1], rows[0][2]) if rows else None


def _scan(spark: SparkSession, source: FileSource, *, positions: bool = False) -> Scan:
    types = dict(source.row.fields)
    patterns = dict(source.patterns)
    columns = []
    for i, name in enumerate(source.names):
        # Columns have names of their own, so that none of the file's can be taken for a hidden one.
        t = types.get(name, STRING) if name not in patterns else STRING
        header = {"source_name": name} if source.header else {}
        columns.append(Column.model_validate({"name": f"c{i}", "type": _spelled(t), "nullable": True, **header}))
    request = ReadRequest(
        "query",
        tuple(SourceFile(path, path) for path in source.paths),
        tuple(columns),
        CsvRead.model_validate({"delimiter": source.delimiter, "has_header": source.header}),
        Conventions(on_unmapped="drop"),
        positions=positions,
    )
    return read_csv(spark, request)


def _reason(source: FileSource) -> sql.Expr:
    """Why a record cannot be used, with the column it is about or else the beginning of its line."""
    pairs = [sql.Literal(text) for i, name in enumerate(source.names) for text in (f"c{i}", name)]
    named = call("try_element_at", call("map", *pairs), sql.Field(_ERROR, "field"))
    about = call("coalesce", call("concat", sql.Literal("column "), named), sql.Field(_ERROR, "value"))
    return call("concat_ws", sql.Literal(": "), sql.Field(_ERROR, "message"), about)


def _spelled(t: QType) -> str:
    if isinstance(t, Type) and t.kind is Kind.DECIMAL:
        return f"decimal({t.scale if t.scale is not None else 10})"
    return _TYPES.get(t.kind, "string") if isinstance(t, Type) else "string"


def _column(source: FileSource, name: str) -> sql.Expr:
    return sql.Column(f"c{source.names.index(name)}")


def _value(column: sql.Expr, t: QType, pattern: str | None, name: str, files: str) -> sql.Expr:
    """How a column is read."""
    if pattern is not None:
        told = call("concat", sql.Literal(f"{BROKEN}{_unlike(name)} in {files}: "), column)
        number = when(_fits(column, pattern), sql.Cast(column, spark_type(t)), call("raise_error", told))
        return when(there(column), number)
    if is_kind(t, Kind.STRING):
        return call("coalesce", column, sql.Literal(""))  # an empty cell of a text column is the empty text
    return sql.Cast(column, spark_type(t))


def _fits(column: sql.Expr, pattern: str) -> sql.Expr:
    return call("coalesce", call("rlike", column, sql.Literal(pattern)), TRUE)


def _unlike(name: str) -> str:
    return f"column '{name}' has numbers at the beginning, but also"
