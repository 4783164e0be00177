"""CXL types and Spark types: reading a DataFrame's columns as the types a program expects."""

from __future__ import annotations

from pyspark.sql import types as st

from clinker_spark.core.types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    FLOAT,
    INT,
    STRING,
    Kind,
    Type,
    array_of,
    decimal,
    map_of,
)
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote

_WHOLE = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)


def type_of(spark_type: st.DataType) -> Type:
    """The CXL type of a Spark column.

    >>> str(type_of(st.IntegerType())), str(type_of(st.ArrayType(st.StringType())))
    ('Int', 'Array(String)')
    """
    match spark_type:
        case st.BooleanType():
            return BOOL
        case st.ByteType() | st.ShortType() | st.IntegerType() | st.LongType():
            return INT
        case st.FloatType() | st.DoubleType():
            return FLOAT
        case st.DecimalType():
            return decimal(spark_type.scale)
        case st.StringType() | st.CharType() | st.VarcharType():
            return STRING
        case st.DateType():
            return DATE
        case st.TimestampType() | st.TimestampNTZType():
            return DATETIME
        case st.ArrayType():
            return array_of(type_of(spark_type.elementType))
        case st.MapType():
            return map_of(type_of(spark_type.valueType))
    return ANY


def spelled(spark_type: st.DataType) -> str:
    return spark_type.simpleString().replace(" ", "").lower()


_CASTS: dict[Kind, tuple[type[st.DataType], ...]] = {
    Kind.INT: _WHOLE,
    Kind.FLOAT: (*_WHOLE, st.FloatType, st.DoubleType),
    Kind.DECIMAL: (*_WHOLE, st.DecimalType),
    Kind.STRING: (st.CharType, st.VarcharType),
    Kind.DATETIME: (st.TimestampType, st.DateType),
}
"""From which types a cast loses nothing; what has too many digits for a decimal becomes null."""


def read_as(column: str, have: st.DataType, want: Type) -> str | None:
    """SQL that reads a column as a CXL type: the column itself where it fits, None when it cannot be read so."""
    if spelled(have) == physical(want).replace(" ", "").lower():
        return column
    if want.is_dynamic:
        nested = isinstance(have, st.StructType | st.MapType | st.ArrayType)
        return f"to_variant_object({column})" if nested else f"CAST({column} AS VARIANT)"
    if isinstance(have, (st.NullType, *_CASTS.get(want.kind, ()))):
        function = "try_cast" if want.kind is Kind.DECIMAL and not isinstance(have, st.NullType) else "CAST"
        return f"{function}({column} AS {physical(want)})"
    if want.kind is Kind.ARRAY and isinstance(have, st.ArrayType):
        inner = read_as("cxl_e", have.elementType, want.element or ANY)
        return None if inner is None else f"transform({column}, cxl_e -> {inner})"
    return _read_as_map(column, have, want.element or ANY) if want.kind is Kind.MAP else None


def _read_as_map(column: str, have: st.DataType, want: Type) -> str | None:
    """A map with values of a type, of a map or of a struct."""
    if isinstance(have, st.MapType):
        inner = read_as("cxl_e", have.valueType, want)
        return None if inner is None else f"transform_values({column}, (cxl_k, cxl_e) -> {inner})"
    if not isinstance(have, st.StructType):
        return None
    pairs = []
    for f in have.fields:
        inner = read_as(f"{column}.{quote(f.name)}", f.dataType, want)
        if inner is None:
            return None
        pairs.append(f"{sql_string(f.name)}, {inner}")
    return f"CASE WHEN {column} IS NOT NULL THEN map({', '.join(pairs)}) END"
