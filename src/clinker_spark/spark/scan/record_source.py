"""The plan of a read as a DataFrame, for the formats that are parsed record by record."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.plan.budget import SPLIT_SETTING
from clinker_spark.spark.fragments.work import FIELDS, then
from clinker_spark.spark.scan.csv.splits import TARGET
from clinker_spark.spark.scan.record_batches import MAX_ROWS, engine_columns, read_batches
from clinker_spark.spark.scan.record_plan import RecordPlan
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.scan.scans import scan, tasks_of


def scan_of(spark: SparkSession, plan: RecordPlan, request: ReadRequest) -> Scan:
    """The records of a plan: a task for each split, or for several small ones."""
    fields = [*plan.fields, *engine_columns(plan)]
    worker = request.worker(plan.widened)
    most = MAX_ROWS if worker is None else sys.maxsize
    plan = plan if worker is None else replace(plan, members=worker.members)
    frame, here = scan(
        spark,
        len(plan.splits),
        fields if worker is None else FIELDS,
        lambda i: read_batches(plan, plan.splits[i], most),
        request.readers,
        then(worker),
        tasks_of([split.bytes_of(plan.files[split.file].size) for split in plan.splits], parallelism_of(spark)),
    )
    if request.arrival:
        # The splits lie in the partitions in order, so the number Spark gives grows along the files.
        frame = frame.withColumn(ARRIVAL_COLUMN, F.monotonically_increasing_id())
    return Scan(
        frame,
        fallible=True,
        in_python=True,
        here=here,
        widened=plan.widened,
        row_offsets=plan.row_offsets,
        splits=len(plan.splits),
    )


def split_target(spark: SparkSession) -> int:
    """How many bytes of a file a task reads, where nothing else matters. Each reader of text holds about as much."""
    return int(spark.conf.get(SPLIT_SETTING, None) or TARGET)


def parallelism_of(spark: SparkSession) -> int:
    try:
        return spark.sparkContext.defaultParallelism
    except PySparkException:  # Spark Connect has no context
        return os.cpu_count() or 1
