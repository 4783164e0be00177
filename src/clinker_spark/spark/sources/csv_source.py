"""CSV files as a DataFrame: a Python data source that hands typed Arrow batches to Spark.

Spark's own CSV codec is where a CSV job spends its time, and it cannot say which value of which record was wrong.
"""

from __future__ import annotations

import base64
import os
import pickle
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.lower.plan import ARRIVAL_COLUMN
from clinker_spark.spark.sources.csv_plan import CsvPlan, CsvSplit, make_plan
from clinker_spark.spark.sources.csv_records import engine_columns, read_split
from clinker_spark.spark.sources.csv_splits import SMALLEST, TARGET
from clinker_spark.spark.sources.request import ReadRequest, Scan

_FORMAT = "clinker_csv"
_registered: weakref.WeakSet[SparkSession] = weakref.WeakSet()


def read_csv(spark: SparkSession, request: ReadRequest, *, target: int = TARGET, smallest: int = SMALLEST) -> Scan:
    """The files of a request as a DataFrame; `target` and `smallest` are sizes of splits in bytes.

    Raises InputError for files whose header does not fit, that cannot be read, or columns that no CSV file can hold.
    """
    plan = make_plan(request, parallelism=_parallelism(spark), target=target, smallest=smallest)
    if spark not in _registered:
        spark.dataSource.register(CsvDataSource)
        _registered.add(spark)
    fields = [(column.name, physical(column.data_type)) for column in request.selected] + engine_columns(plan)
    schema = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in fields)
    packed = base64.b64encode(pickle.dumps(plan)).decode("ascii")
    frame = spark.read.format(_FORMAT).schema(schema).option("plan", packed).load()
    if request.arrival:
        # The splits are the partitions, in order, so the number Spark gives grows along the files.
        frame = frame.withColumn(ARRIVAL_COLUMN, F.monotonically_increasing_id())
    return Scan(frame, fallible=True, in_python=True, widened=plan.widened)


def _parallelism(spark: SparkSession) -> int:
    try:
        return spark.sparkContext.defaultParallelism
    except PySparkException:  # Spark Connect has no context
        return os.cpu_count() or 1


class SplitPartition(InputPartition):
    """One split of the plan."""

    def __init__(self, split: CsvSplit | None) -> None:
        super().__init__(split)


class CsvDataSource(DataSource):
    """Reads the splits of a plan that was made beforehand; it comes as an option."""

    @classmethod
    def name(cls) -> str:
        return _FORMAT

    def reader(self, schema: StructType) -> CsvReader:
        return CsvReader(pickle.loads(base64.b64decode(self.options["plan"])))


class CsvReader(DataSourceReader):
    """One task per split."""

    def __init__(self, plan: CsvPlan) -> None:
        self._plan = plan

    def partitions(self) -> Sequence[InputPartition]:
        # Spark wants at least one partition, even for files without a record.
        return [SplitPartition(split) for split in self._plan.splits] or [SplitPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        split: Any = partition.value
        return iter(()) if split is None else read_split(self._plan, split)
