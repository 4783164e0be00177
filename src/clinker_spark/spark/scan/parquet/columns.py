"""Columns of Parquet files as SQL: read in the physical types of the schema, with an error where a value is none."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as st

from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import DATETIME, Kind
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.text import sql_decimal_text, sql_text
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.values import DECIMAL_DIGITS
from clinker_spark.plan.columns import RECORD_COLUMN, WIDENED_COLUMN
from clinker_spark.plan.nodes.source import checked_in_parquet
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.spark.columns.types import read_as, type_of
from clinker_spark.spark.columns.undeclared import VALUES
from clinker_spark.spark.render.json_values import json_float, json_string
from clinker_spark.spark.scan.csv.header import file_name
from clinker_spark.spark.scan.request import ReadRequest

_ROW = "_metadata.row_index"
_PER_FILE = 1 << 40
"""More records than a file has."""


@dataclass(frozen=True)
class FileColumn:
    """A column of a file: SQL that names it, and its type there."""

    sql: str
    type: st.DataType

    @property
    def shown(self) -> str:
        return self.type.simpleString()

    def read(self, column: Column) -> str | None:
        """SQL of the declared type, None if the file's type cannot be read so."""
        want = column.data_type
        if want.kind is Kind.DECIMAL and want.scale is None and isinstance(self.type, st.DecimalType):
            return sql_decimal_text(self.sql, self.type.scale)
        if want.kind is Kind.DECIMAL and want.scale is None and isinstance(self.type, st.StringType):
            return None  # both are STRING on Spark, but nobody has looked whether there are digits in it
        return read_as(self.sql, self.type, want)


@dataclass(frozen=True)
class PartFile:
    """A file as it is read: `file` is its place among the source's, `part` among all files, `before` the records
    of the same folder that come before its own."""

    schema: st.StructType
    file: int
    part: int
    before: int


def resolve(schema: st.StructType, name: str) -> FileColumn | None:
    """The column of a name, which may lead into structs with dots."""
    for field in schema.fields:
        if field.name == name:
            return FileColumn(quote(name), field.dataType)
    head, _, rest = name.partition(".")
    for field in schema.fields:
        if rest and field.name == head and isinstance(field.dataType, st.StructType):
            inner = resolve(field.dataType, rest)
            return None if inner is None else FileColumn(f"{quote(head)}.{inner.sql}", inner.type)
    return None


def column_problem(column: Column, source: FileColumn | None) -> str | None:
    """SQL of the `$error` of a record with a wrong value here, null for a right one; None if none can be wrong."""
    want = column.data_type
    if source is None or not checked_in_parquet(column):
        return None
    arms = []
    if not want.nullable:
        message = f"'{column.name}' is null, and its type {want} is not nullable"
        arms.append(f"WHEN {source.sql} IS NULL THEN {_error('missing_required_field', column, 'NULL', message)}")
    unfit = _unfit_decimal(column, source)
    if unfit is not None:
        message = f"the number has more digits than {want.unwrap()} of this column"
        text = f"CAST({source.sql} AS STRING)"
        arms.append(f"WHEN {unfit} THEN {_error('type_coercion_failure', column, text, message)}")
    return f"CASE {' '.join(arms)} END" if arms else None


def _unfit_decimal(column: Column, source: FileColumn) -> str | None:
    """When a decimal of the file would have to be rounded or cut."""
    want = column.data_type
    if want.kind is not Kind.DECIMAL or want.scale is None:
        return None
    have = source.type if isinstance(source.type, st.DecimalType) else st.DecimalType(19, 0)
    digits = min(column.digits or DECIMAL_DIGITS, DECIMAL_DIGITS)
    found = []
    if have.scale > want.scale:
        found.append(f"round({source.sql}, {want.scale}) <> {source.sql}")
    if have.precision - have.scale > digits - want.scale:
        limit = "1" + "0" * max(digits - want.scale, 0)
        found.append(f"abs({source.sql}) >= {limit}BD")
    return " OR ".join(found) or None


def _error(kind: str, column: Column, value: str, message: str) -> str:
    value_sql, message_sql = f"CAST({value} AS STRING)", sql_string(message)
    names = f"'kind', {sql_string(kind)}, 'field', {sql_string(column.name)}"
    return f"named_struct({names}, 'value', {value_sql}, 'message', {message_sql})"


def projection(request: ReadRequest, part: PartFile, widened: tuple[str, ...], *, fallible: bool) -> list[str]:
    """The columns of the contract for one file, as SQL with names."""
    sources = {column.name: resolve(part.schema, file_name(column)) for column in request.columns}
    declared = {column.name: column for column in request.columns}
    read = {name: _read(declared[name], source) for name, source in sources.items()}
    found = [f"{read[column.name]} AS {quote(column.name)}" for column in request.selected]
    if fallible:
        problems = [column_problem(column, sources[column.name]) for column in request.columns]
        known = [problem for problem in problems if problem is not None]
        error = f"coalesce({', '.join(known)})" if known else "NULL"
        found.append(f"CAST({error} AS {ERROR_TYPE}) AS {quote(ERROR_COLUMN)}")
    if widened:
        found.append(f"{_widened(part.schema, widened)} AS {quote(WIDENED_COLUMN)}")
    if request.positions:
        found += [
            f"CAST({part.file} AS INT) AS {quote(FILE_COLUMN)}",
            f"{_ROW} + {part.before + 1}L AS {quote(ROW_COLUMN)}",
        ]
    if request.record:
        texts = [
            f"{sql_string(name)}, CAST({_record_text(declared[name], source, read[name])} AS STRING)"
            for name, source in sources.items()
        ]
        found.append(f"named_struct({', '.join(texts)}) AS {quote(RECORD_COLUMN)}")
    if request.arrival:
        found.append(f"{_ROW} + {part.part * _PER_FILE}L AS {quote(ARRIVAL_COLUMN)}")
    return found


def _read(column: Column, source: FileColumn | None) -> str:
    sql = None if source is None else source.read(column)
    return f"CAST(NULL AS {physical(column.data_type)})" if sql is None else sql


def _record_text(column: Column, source: FileColumn | None, sql: str) -> str:
    """The text of a column. A number that does not fit its column shows as it is in the file."""
    if source is None:
        return "NULL"
    if _unfit_decimal(column, source) is not None:
        return f"CAST({source.sql} AS STRING)"
    return sql_text(sql, column.data_type)


def _widened(schema: st.StructType, names: tuple[str, ...]) -> str:
    pairs = [
        f"{sql_string(field.name)}, named_struct('json', CAST({_json(quote(field.name), field.dataType)} AS STRING))"
        for field in schema.fields
        if field.name in names
    ]
    return f"map({', '.join(pairs)})" if pairs else f"CAST(NULL AS {VALUES})"


def _json(sql: str, have: st.DataType) -> str:
    """Any column as JSON, as an output would write it."""
    if isinstance(have, st.StructType | st.ArrayType | st.MapType):
        return f"to_json({sql})"
    if isinstance(have, st.BinaryType):
        return json_string(f"base64({sql})")
    if isinstance(have, st.TimestampType):
        return json_string(sql_text(f"CAST({sql} AS TIMESTAMP_NTZ)", DATETIME))
    kind = type_of(have)
    if isinstance(have, st.FloatType | st.DoubleType):
        # The text of a double would show digits that a float of the file does not have. JSON has no NaN.
        text = f"CAST({sql} AS STRING)" if isinstance(have, st.FloatType) else json_float(sql)
        infinite = f"(isnan({sql}) OR abs({sql}) = double('Infinity'))"
        return f"CASE WHEN {infinite} THEN {json_string(f'CAST({sql} AS STRING)')} ELSE {text} END"
    if kind.kind in (Kind.BOOL, Kind.INT):
        return sql_text(sql, kind)
    return json_string(f"CAST({sql} AS STRING)" if kind.kind is Kind.ANY else sql_text(sql, kind))
