"""Columns of Spark, read as types of CXL."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as st

from clinker_spark.core.types import DECIMAL, FLOAT, INT, STRING, array_of, map_of
from clinker_spark.spark.columns.types import read_as


def test_fields_of_structs_may_have_any_name(spark: Any) -> None:
    """They come from files, whose authors knew nothing of SQL."""
    names = ("plain", "it's", "a`b", "${HOME}", "a.b", r"\d", "x y")
    struct = st.StructType([st.StructField(name, st.IntegerType()) for name in names])
    rows = [(tuple(range(len(names))),), (None,)]
    frame = spark.createDataFrame(rows, st.StructType([st.StructField("s", struct)]))
    text = read_as("s", struct, map_of(INT))
    assert text is not None
    first, second = frame.select(F.expr(text).alias("m")).collect()
    assert first["m"] == {name: i for i, name in enumerate(names)}
    assert second["m"] is None


def test_what_fits_and_what_does_not() -> None:
    long, text = st.LongType(), st.StringType()
    assert read_as("c", long, INT) == "c"
    assert read_as("c", st.ShortType(), INT) == "CAST(c AS BIGINT)"
    assert read_as("c", long, FLOAT) == "CAST(c AS DOUBLE)"
    assert read_as("c", st.DecimalType(38, 2), DECIMAL) == "try_cast(c AS STRING)"
    assert read_as("c", st.NullType(), DECIMAL) == "CAST(c AS STRING)"
    assert read_as("c", st.ArrayType(st.ByteType()), array_of(INT)) == "transform(c, cxl_e -> CAST(cxl_e AS BIGINT))"
    assert read_as("c", text, INT) is None
    assert read_as("c", long, STRING) is None
    assert read_as("c", st.StructType([st.StructField("a", text)]), map_of(INT)) is None
