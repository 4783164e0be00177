"""Python readers as DataFrames: partition i of the DataFrame is split i.

Not a Python data source: Spark would start Python twice more before the first task, to register it and to ask for
its partitions (measured: 5 s of 14 s for a first small run). A range with one number per task, and a function over
Arrow batches, does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from clinker_spark.cxl.lower.plan import quote

ReadSplit = Callable[[int], Iterable[pa.RecordBatch]]


def scan(spark: SparkSession, splits: int, fields: Sequence[tuple[str, str]], read: ReadSplit) -> DataFrame:
    """The batches of all splits, in order. `fields` are names and SQL types; `read` runs on the workers."""
    schema = ", ".join(f"{quote(name)} {kind}" for name, kind in fields)

    def batches(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                if number < splits:
                    yield from read(number)

    # A range of nothing would have no partition to run in; the one number that is no split gives no record.
    tasks = max(splits, 1)
    return spark.range(0, tasks, 1, tasks).mapInArrow(batches, schema)
