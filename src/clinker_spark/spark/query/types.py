"""Query types of Spark schemas."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import types as st

from clinker_spark.query.types import ListType, MapType, QType, RecordType, from_core
from clinker_spark.spark.columns.types import type_of

_NARROW = (st.ByteType, st.ShortType, st.IntegerType, st.FloatType)


def query_type(t: st.DataType, nullable: bool = True) -> QType:
    """The query type of a Spark column.

    >>> str(query_type(st.ArrayType(st.LongType(), False), False)), query_type(st.IntegerType(), False).narrow
    ('list<Int>', True)
    """
    made: QType
    match t:
        case st.ArrayType():
            made = ListType(query_type(t.elementType, t.containsNull))
        case st.MapType():
            made = MapType(query_type(t.keyType, False), query_type(t.valueType, t.valueContainsNull))
        case st.StructType():
            made = row_type(t)
        case _:
            scalar = type_of(t)
            made = replace(scalar, narrow=True) if isinstance(t, _NARROW) else from_core(scalar)
    return made.as_nullable() if nullable else made


def row_type(schema: st.StructType) -> RecordType:
    return RecordType(tuple((f.name, query_type(f.dataType, f.nullable)) for f in schema.fields))
