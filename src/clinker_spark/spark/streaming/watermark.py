"""Times of records, and how far behind the newest of them a record may come."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import BEAT_COLUMN, TIME_COLUMN

NEWEST = "newest:"
"""What the name of a count begins with that holds the newest time of a source, in the progress of a query."""
_MILLISECOND = dt.timedelta(milliseconds=1)
_NEVER = "TIMESTAMP_LTZ'0001-01-01 00:00:00Z'"
_NO_BEAT = f"{quote(BEAT_COLUMN)} IS NULL"


def with_watermark(frame: DataFrame, column: str, delay: dt.timedelta, source: str) -> DataFrame:
    """Records with their time as `$time`, which has a watermark; beats only move it. The newest time of a batch is
    told under the name of the `source`.

    Spark drops what is not *after* its watermark. It stays one millisecond further behind, so that a record as old as
    the newest one less the delay is in time: files that were cut between two records of the same moment lose none.
    """
    time = f"coalesce(CAST({quote(column)} AS TIMESTAMP_LTZ), {quote(BEAT_COLUMN)}, {_NEVER})"
    span = delay // _MILLISECOND + 1
    frame = frame.withColumn(TIME_COLUMN, F.expr(time)).withWatermark(quote(TIME_COLUMN), f"{span} milliseconds")
    newest = F.max(F.expr(f"CASE WHEN {_NO_BEAT} THEN unix_millis({quote(TIME_COLUMN)}) END"))
    # Filters do not get past what is counted. That a join wants no keys that are null would otherwise be moved before
    # the watermark, and take beats away, which have none.
    frame = frame.observe(f"{NEWEST}{source}", newest.alias("time"))
    # Beats are left out behind the watermark: a filter that does not mention `$time` would be moved before it.
    return without_beats(frame, f"{_NO_BEAT} OR {quote(TIME_COLUMN)} < {_NEVER}")


def without_beats(frame: DataFrame, condition: str = _NO_BEAT) -> DataFrame:
    """Only records."""
    return frame.where(condition).drop(BEAT_COLUMN)
