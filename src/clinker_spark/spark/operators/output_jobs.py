"""The jobs that write the parts of outputs."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pyspark.sql import functions as F

from clinker_spark.spark.fragments.task import OUTPUT, PLACE
from clinker_spark.spark.operators.output import LINE_COLUMN, RECORD_SEPARATOR, Prepared
from clinker_spark.spark.parts import part_writer
from clinker_spark.spark.plan_cuts import united


def write_parts(prepared: Prepared, folder: str) -> None:
    """Run the job: parts in `folder`, whose names sort in the order of the records."""
    node = prepared.node
    if prepared.rendering is None:
        codec = node.config.options.compression
        part_writer(prepared.frame, folder).option("compression", codec).partitionBy(*node.partition_by).parquet(folder)
        return
    part_writer(prepared.frame, folder).option("lineSep", separator(prepared)).text(folder)


def separator(prepared: Prepared) -> str | None:
    """What Spark writes after each row; None for formats that have no lines."""
    if prepared.rendering is None:
        return None
    if prepared.line_end is not None:
        return prepared.line_end
    several = prepared.node.config.split is not None or prepared.node.per_file
    return RECORD_SEPARATOR if several else prepared.rendering.separator.decode() or "\n"


def write_parts_in_workers(outputs: Sequence[Prepared]) -> list[str]:
    """Run the job whose workers write the parts of outputs; gives the folders of these."""
    if not outputs[0].written:
        outputs[0].frame.write.format("noop").mode("overwrite").save()
    return [each.parts for each in outputs if each.parts is not None]


def write_parts_together(outputs: Sequence[Prepared], folder: str) -> list[str]:
    """Run one job for several outputs whose lines have one separator; gives the folder of each one's parts."""
    if outputs[0].beside:  # lines of all of them in one frame, in their order within each task
        numbers = [outputs[0].beside.index(each.node.name) for each in outputs]
        lines = outputs[0].frame.sortWithinPartitions(OUTPUT, PLACE).select(LINE_COLUMN, OUTPUT)
    else:
        numbers = list(range(len(outputs)))
        frames = [each.frame.withColumn(OUTPUT, F.lit(i)) for i, each in enumerate(outputs)]
        lines = united(frames)
    part_writer(lines, folder).option("lineSep", separator(outputs[0])).partitionBy(OUTPUT).text(folder)
    folders = [os.path.join(folder, f"{OUTPUT}={i}") for i in numbers]
    for each in folders:  # of an output without records there is none
        os.makedirs(each, exist_ok=True)
    return folders
