"""Shuffles of large inputs: cut so that a piece fits into what a task may hold.

Spark cuts a shuffle into as many pieces as a machine has use for, however large they get, and puts small ones together
up to a size that suits heaps of many gigabytes. A piece that does not fit is sorted in many parts, each of which is a
file; to merge these takes memory outside of the heap, and all of the piece is written and read once more.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import SparkSession

from clinker_spark.plan.budget import TASK_SETTING, piece_bytes, pieces
from clinker_spark.spark.session.meanwhile import meanwhile

_PIECES = "spark.sql.shuffle.partitions"


def settings(spark: SparkSession, size: int) -> AbstractContextManager[None]:
    """Meanwhile the session cuts shuffles as suits inputs of so many bytes. Sessions that were not started with a limit
    stay as they are."""
    limit = spark.conf.get(TASK_SETTING, None)
    if limit is None:
        return nullcontext()
    usual = int(spark.conf.get(_PIECES, "1") or 1)
    wanted = pieces(size, int(limit), usual)
    if wanted == usual:
        return nullcontext()
    together = {"spark.sql.adaptive.advisoryPartitionSizeInBytes": str(piece_bytes(int(limit)))}
    return meanwhile(spark, {_PIECES: str(wanted), **together})
