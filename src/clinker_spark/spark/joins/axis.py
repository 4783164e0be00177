"""The values that ranges compare, as numbers on an axis."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DoubleType, LongType, TimestampNTZType, TimestampType

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.spark.joins.sides import HIT

BROADCAST_ROWS = 2_000_000
"""Up to so many copies of build records are held whole by every task."""


@dataclass(frozen=True)
class OnAxis:
    """SQL for a value as a number that goes up where the value does; is it a whole one?"""

    text: str
    whole: bool


def axis_of_column(frame: DataFrame, name: str) -> OnAxis:
    """A column as a number. Decimals become floats: two of them may get the same one, but never the wrong order."""
    text = quote(name)
    match frame.schema[name].dataType:
        case LongType():
            return OnAxis(text, True)
        case DateType():
            return OnAxis(f"CAST(unix_date({text}) AS BIGINT)", True)
        case TimestampNTZType() | TimestampType():
            return OnAxis(f"unix_micros(CAST({text} AS TIMESTAMP))", True)
        case DoubleType():
            return OnAxis(text, False)
    return OnAxis(f"CAST({text} AS DOUBLE)", False)


def with_hit(build: DataFrame) -> DataFrame:
    """The build with the mark of a match."""
    return build.withColumn(HIT, F.lit(True))
