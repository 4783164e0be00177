"""Records that come as messages: as a stream of Spark, or once more as a DataFrame."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import BEAT_COLUMN
from clinker_spark.spark.scan.record_batches import engine_columns
from clinker_spark.spark.scan.record_plan import RecordPlan
from clinker_spark.spark.scan.request import Scan
from clinker_spark.spark.scan.scans import scan
from clinker_spark.spark.streaming.reader import BEAT_TYPE

_NUMBERS = itertools.count()


def open_messages(
    spark: SparkSession, kind: str, plan: RecordPlan, reader: Callable[[StructType], DataSourceStreamReader]
) -> Scan:
    """The records as they come, `$beat` last. `reader` reads those of a schema, in which that is not."""
    fields = ", ".join(f"{quote(name)} {type_}" for name, type_ in [*plan.fields, *engine_columns(plan)])
    name = f"clinker_{kind}_{next(_NUMBERS)}"

    # A class of this call: it is sent as it is, with the reader in it. Options stand in every plan that is shown.
    class MessageStream(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return f"{fields}, {quote(BEAT_COLUMN)} {BEAT_TYPE}"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return reader(StructType(schema.fields[:-1]))

    spark.dataSource.register(MessageStream)
    return Scan(spark.readStream.format(name).load(), fallible=True, in_python=True)


def read_messages(
    spark: SparkSession, plan: RecordPlan, tasks: int, read: Callable[[int], Iterator[pa.RecordBatch]]
) -> Scan:
    """The records of some tasks once more."""
    frame, here = scan(spark, tasks, [*plan.fields, *engine_columns(plan)], read)
    return Scan(frame, fallible=True, in_python=True, here=here)
