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
from clinker_spark.config.model.source_formats import CsvRead
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.hidden import ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import FILE_COLUMN, ROW_COLUMN
from clinker_spark.plan.query.files import BROKEN, FileSource
from clinker_spark.plan.query.literals import ddl
from clinker_spark.query.types import STRING, QType, Scalar, is_kind
from clinker_spark.spark.scan.csv.source import read_csv
from clinker_spark.spark.scan.request import ReadRequest, Scan, SourceFile

_TYPES = {Kind.BOOL: "bool", Kind.INT: "int", Kind.FLOAT: "float", Kind.DATE: "date", Kind.DATETIME: "date_time"}


def csv_frame(spark: SparkSession, source: FileSource, ordered: bool) -> DataFrame:
    """The rows of CSV files, in the order of the files and their lines."""
    names = ", ".join(Path(path).name for path in source.paths[:3]) + (" ..." if len(source.paths) > 3 else "")
    frame = _scan(spark, source).frame
    error = quote(ERROR_COLUMN)
    told = f"raise_error(concat({sql_string(f'{BROKEN}a record of {names} cannot be used: ')}, {_reason(source)}))"
    # A filter stays, whatever columns the query needs.
    frame = frame.where(f"CASE WHEN {error} IS NULL THEN TRUE ELSE {told} END")
    patterns = dict(source.patterns)
    columns = [
        F.expr(_value(_column(source, name), t, patterns.get(name), name, names)).alias(name)
        for name, t in source.row.fields
    ]
    if ordered:  # the splits are the partitions, in order
        columns.append(F.monotonically_increasing_id().alias(ROW_COLUMN))
    return frame.select(*columns)


@dataclass(frozen=True)
class BrokenRecord:
    """The first record of files that cannot be used. `row` is its number in the file."""

    file: str
    row: int
    reason: str


def first_broken(spark: SparkSession, source: FileSource) -> BrokenRecord | None:
    """Looks for the record that stopped a query."""
    frame = _scan(spark, source, positions=True).frame
    error = quote(ERROR_COLUMN)
    wrong = f"{error} IS NOT NULL"
    reason = _reason(source)
    for name, pattern in source.patterns:
        text = _column(source, name)
        told = f"concat({sql_string(_unlike(name) + ': ')}, {text})"
        reason = f"CASE WHEN {error} IS NULL AND NOT {_fits(text, pattern)} THEN {told} ELSE {reason} END"
        wrong += f" OR NOT {_fits(text, pattern)}"
    found = frame.where(wrong).selectExpr(quote(FILE_COLUMN), quote(ROW_COLUMN), f"{reason} AS reason")
    rows = found.orderBy(quote(FILE_COLUMN), quote(ROW_COLUMN)).limit(1).collect()
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
        on_unmapped="drop",
        positions=positions,
    )
    return read_csv(spark, request)


def _reason(source: FileSource) -> str:
    """SQL for why a record cannot be used, with the column it is about or else the beginning of its line."""
    error = quote(ERROR_COLUMN)
    names = ", ".join(f"'c{i}', {sql_string(name)}" for i, name in enumerate(source.names))
    column = f"concat('column ', try_element_at(map({names}), {error}.field))"
    return f"concat_ws(': ', {error}.message, coalesce({column}, {error}.value))"


def _spelled(t: QType) -> str:
    if isinstance(t, Scalar) and t.kind is Kind.DECIMAL:
        return f"decimal({t.scale if t.scale is not None else 10})"
    return _TYPES.get(t.kind, "string") if isinstance(t, Scalar) else "string"


def _column(source: FileSource, name: str) -> str:
    return f"`c{source.names.index(name)}`"


def _value(column: str, t: QType, pattern: str | None, name: str, files: str) -> str:
    """How a column is read, as SQL."""
    if pattern is not None:
        told = f"raise_error(concat({sql_string(f'{BROKEN}{_unlike(name)} in {files}: ')}, {column}))"
        number = f"CASE WHEN {_fits(column, pattern)} THEN CAST({column} AS {ddl(t)}) ELSE {told} END"
        return f"CASE WHEN {column} IS NOT NULL THEN {number} END"
    if is_kind(t, Kind.STRING):
        return f"coalesce({column}, '')"  # an empty cell of a text column is the empty text
    return f"CAST({column} AS {ddl(t)})"


def _fits(column: str, pattern: str) -> str:
    return f"coalesce({column} RLIKE {sql_string(pattern)}, TRUE)"


def _unlike(name: str) -> str:
    return f"column '{name}' has numbers at the beginning, but also"
