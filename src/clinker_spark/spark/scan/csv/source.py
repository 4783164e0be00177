"""CSV files as a DataFrame: Python reads splits and hands typed Arrow batches to Spark.

Spark's own CSV codec is where a CSV job spends its time, and it cannot say which value of which record was wrong.
"""

from __future__ import annotations

import os
from contextlib import suppress

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import FAILED_COLUMN
from clinker_spark.spark.fragments.work import FIELDS, then
from clinker_spark.spark.scan.csv.plan import CsvPlan, CsvSplit
from clinker_spark.spark.scan.csv.planning import make_plan
from clinker_spark.spark.scan.csv.records import engine_columns, read_split
from clinker_spark.spark.scan.csv.splits import SMALLEST
from clinker_spark.spark.scan.record_source import parallelism_of, split_target
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.scan.scans import scan, tasks_of

_NO_TEXTS = ", ".join(f"'{name}', ''" for name in ("kind", "field", "value", "message"))


def read_csv(spark: SparkSession, request: ReadRequest, *, target: int | None = None, smallest: int = SMALLEST) -> Scan:
    """The files of a request as a DataFrame; `target` and `smallest` are sizes of splits in bytes.

    Raises InputError for files whose header does not fit, that cannot be read, or columns that no CSV file can hold.
    """
    target = split_target(spark) if target is None else target
    plan = make_plan(request, parallelism=parallelism_of(spark), target=target, smallest=smallest)
    fields = [(column.name, physical(column.data_type)) for column in request.selected] + engine_columns(plan)
    fields = fields or [(FAILED_COLUMN, "BOOLEAN")]
    worker = request.worker(plan.widened)
    frame, here = scan(
        spark,
        len(plan.splits),
        fields if worker is None else FIELDS,
        lambda i: read_split(plan, plan.splits[i]),
        request.readers,
        then(worker),
        tasks_of([_bytes(plan, split) for split in plan.splits], parallelism_of(spark)),
    )
    if worker is None and plan.extras.only_flags and plan.extras.aside is None:
        frame = with_short_errors(frame)
    if request.arrival:
        # The splits lie in the partitions in order, so the number Spark gives grows along the files.
        frame = frame.withColumn(ARRIVAL_COLUMN, F.monotonically_increasing_id())
    split_files = tuple(split.file for split in plan.splits) if plan.extras.aside is not None else None
    return Scan(
        frame,
        fallible=plan.extras.aside is None,
        in_python=True,
        here=here,
        widened=plan.widened,
        row_offsets=plan.row_offsets,
        split_files=split_files,
        split_keys=tuple(plan.key(split) for split in plan.splits),
        watches=plan.extras.aside is not None and bool(plan.extras.watched),
        splits=len(plan.splits),
        headers=tuple(file.header for file in plan.files),
    )


def _bytes(plan: CsvPlan, split: CsvSplit) -> int:
    if split.end is not None:
        return split.end - split.start
    with suppress(OSError):  # said by whoever reads it
        return os.path.getsize(plan.files[split.file].path)
    return 0


def with_short_errors(frame: DataFrame) -> DataFrame:
    """The flag as an error without texts: one bit of a batch instead of four columns."""
    columns = []
    for name in frame.columns:
        if name == FAILED_COLUMN:
            error = f"CASE WHEN {quote(FAILED_COLUMN)} THEN CAST(named_struct({_NO_TEXTS}) AS {ERROR_TYPE}) END"
            columns.append(F.expr(error).alias(ERROR_COLUMN))
        else:
            columns.append(F.col(quote(name)))
    return frame.select(*columns)
