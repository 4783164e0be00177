"""Query types of Spark schemas, and Spark schemas of query types."""

from __future__ import annotations

from pyspark.sql import types as st

from clinker_spark.core.types import Kind
from clinker_spark.query.types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    FLOAT,
    INT,
    STRING,
    ListType,
    MapType,
    QType,
    RecordType,
    Scalar,
)


def query_type(t: st.DataType, nullable: bool = True) -> QType:
    """The query type of a Spark column.

    >>> str(query_type(st.ArrayType(st.LongType(), False), False)), query_type(st.IntegerType(), False).narrow
    ('list<Int>', True)
    """
    made = _present(t)
    return made.as_nullable() if nullable else made


def _present(t: st.DataType) -> QType:
    match t:
        case st.BooleanType():
            return BOOL
        case st.LongType():
            return INT
        case st.ByteType() | st.ShortType() | st.IntegerType():
            return Scalar(Kind.INT, narrow=True)
        case st.DoubleType():
            return FLOAT
        case st.FloatType():
            return Scalar(Kind.FLOAT, narrow=True)
        case st.DecimalType():
            return Scalar(Kind.DECIMAL, scale=t.scale)
        case st.StringType() | st.CharType() | st.VarcharType():
            return STRING
        case st.DateType():
            return DATE
        case st.TimestampType() | st.TimestampNTZType():
            return DATETIME
        case st.ArrayType():
            return ListType(query_type(t.elementType, t.containsNull))
        case st.MapType():
            return MapType(query_type(t.keyType, False), query_type(t.valueType, t.valueContainsNull))
        case st.StructType():
            return RecordType(tuple((f.name, query_type(f.dataType, f.nullable)) for f in t.fields))
    return ANY


def row_type(schema: st.StructType) -> RecordType:
    return RecordType(tuple((f.name, query_type(f.dataType, f.nullable)) for f in schema.fields))
