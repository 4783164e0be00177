"""As-of joins: the latest record of the build that is not too late.

Both sides go into one stream, sorted by key and time; each record of the probe side then takes the last record
of the build that it has seen. That costs one shuffle and one sort, whatever the distances are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import JOIN_PREFIX
from clinker_spark.spark.joins.names import BUILD, BUILD_RANGE, LEFT, LEFT_RANGE
from clinker_spark.spark.joins.sides import HIT, Sides

_SIDE, _TIME, _SEEN = f"{JOIN_PREFIX}side", f"{JOIN_PREFIX}time", f"{JOIN_PREFIX}seen"


def join_latest(sides: Sides, config: Any) -> DataFrame:
    """At most one record of the build for each of the probe side."""
    [range_] = sides.step.ranges
    # Of records at one time, the probe side comes after the build when it may take it (`>=`), else before.
    probe_side = 1 if range_.op == ">=" else -1
    own = [n for n in sides.build.columns if not n.startswith((BUILD, BUILD_RANGE)) or n == sides.place]
    left_names = [n for n in sides.left.columns if not n.startswith(LEFT_RANGE)]
    left = sides.left.select(
        *[F.col(quote(n)) for n in left_names],
        F.col(quote(f"{LEFT_RANGE}0")).alias(_TIME),
        F.lit(probe_side).alias(_SIDE),
    )
    found = _last_seen(sides, left.unionByName(_seen_from(sides, own), allowMissingColumns=True), config.ties)
    found = found.where(F.col(quote(_SIDE)) == probe_side)
    seen = F.col(quote(_SEEN))
    valid = seen.isNotNull() & F.col(quote(_TIME)).isNotNull() & _have(sides, LEFT)
    if config.tolerance is not None:
        valid = valid & _near(found, config.tolerance)
    found = found.withColumn(HIT, F.when(valid, F.lit(True)))
    hit = F.col(quote(HIT)).isNotNull()
    columns = [F.col(quote(n)) for n in left_names]
    columns += [F.when(hit, seen[f"c{i}"]).alias(n) for i, n in enumerate(own)]
    found = found.select(*columns, F.col(quote(HIT)))
    return found.where(hit) if sides.on_miss == "skip" else found


def _have(sides: Sides, side: str) -> Column:
    """Has a record all its keys?"""
    keys = [F.col(quote(f"{side}{i}")).isNotNull() for i in range(len(sides.step.equalities))]
    return reduce(Column.__and__, keys, F.lit(True))


def _seen_from(sides: Sides, own: Sequence[str]) -> DataFrame:
    """The records of the build that can be matched, each in one column."""
    time = F.col(quote(f"{BUILD_RANGE}0"))
    fields = [F.col(quote(n)).alias(f"c{i}") for i, n in enumerate(own)]
    return sides.build.where(_have(sides, BUILD) & time.isNotNull()).select(
        *[F.col(quote(f"{BUILD}{i}")).alias(f"{LEFT}{i}") for i in range(len(sides.step.equalities))],
        time.alias(_TIME),
        F.lit(0).alias(_SIDE),
        F.col(quote(sides.place)).alias(f"{JOIN_PREFIX}order"),
        F.struct(*fields, time.alias("t")).alias(_SEEN),
    )


def _last_seen(sides: Sides, both: DataFrame, ties: str) -> DataFrame:
    """Each record with the last one of the build before it."""
    order = F.col(quote(f"{JOIN_PREFIX}order"))
    window = (
        Window.partitionBy(*[F.col(quote(f"{LEFT}{i}")) for i in range(len(sides.step.equalities))])
        .orderBy(
            F.col(quote(_TIME)).asc_nulls_first(), F.col(quote(_SIDE)), order.desc() if ties == "first" else order.asc()
        )
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return both.withColumn(_SEEN, F.last(quote(_SEEN), ignorenulls=True).over(window))


def _near(frame: DataFrame, tolerance: dt.timedelta | float) -> Column:
    time, seen = F.col(quote(_TIME)), F.col(quote(_SEEN))["t"]
    match frame.schema[_TIME].dataType:
        case DateType():
            days = tolerance.days if isinstance(tolerance, dt.timedelta) else tolerance
            return F.date_diff(time, seen) <= F.lit(days)
        case TimestampNTZType() | TimestampType():
            assert isinstance(tolerance, dt.timedelta)
            micros = tolerance // dt.timedelta(microseconds=1)
            return F.unix_micros(time.cast("timestamp")) - F.unix_micros(seen.cast("timestamp")) <= F.lit(micros)
    return time - seen <= F.lit(tolerance)
