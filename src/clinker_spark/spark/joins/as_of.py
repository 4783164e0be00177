"""As-of joins: the latest record of the build that is not too late.

Both sides go into one stream, sorted by key and time; each record of the driver then takes the last record of the build
that it has seen. That costs one shuffle and one sort, whatever the distances are.
"""

from __future__ import annotations

import datetime as dt
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
    """At most one record of the build for each of the driver."""
    [range_] = sides.step.ranges
    keys = range(len(sides.step.equalities))
    own = [n for n in sides.build.columns if not n.startswith((BUILD, BUILD_RANGE)) or n == sides.place]
    fields = [F.col(quote(n)).alias(f"c{i}") for i, n in enumerate(own)]
    taken = F.struct(*fields, F.col(quote(f"{BUILD_RANGE}0")).alias("t"))
    there = F.lit(True)
    for i in keys:
        there = there & F.col(quote(f"{BUILD}{i}")).isNotNull()
    there = there & F.col(quote(f"{BUILD_RANGE}0")).isNotNull()
    # Of records at one time, the driver comes after the build when it may take it (`>=`), else before.
    driver_side = 1 if range_.op == ">=" else -1
    build = sides.build.where(there).select(
        *[F.col(quote(f"{BUILD}{i}")).alias(f"{LEFT}{i}") for i in keys],
        F.col(quote(f"{BUILD_RANGE}0")).alias(_TIME),
        F.lit(0).alias(_SIDE),
        F.col(quote(sides.place)).alias(f"{JOIN_PREFIX}order"),
        taken.alias(_SEEN),
    )
    left_names = [n for n in sides.left.columns if not n.startswith(LEFT_RANGE)]
    left = sides.left.select(
        *[F.col(quote(n)) for n in left_names],
        F.col(quote(f"{LEFT_RANGE}0")).alias(_TIME),
        F.lit(driver_side).alias(_SIDE),
    )
    both = left.unionByName(build, allowMissingColumns=True)
    order = F.col(quote(f"{JOIN_PREFIX}order"))
    ties = order.desc() if config.ties == "first" else order.asc()
    window = (
        Window.partitionBy(*[F.col(quote(f"{LEFT}{i}")) for i in keys])
        .orderBy(F.col(quote(_TIME)).asc_nulls_first(), F.col(quote(_SIDE)), ties)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    found = both.withColumn(_SEEN, F.last(quote(_SEEN), ignorenulls=True).over(window))
    found = found.where(F.col(quote(_SIDE)) == driver_side)
    seen = F.col(quote(_SEEN))
    valid = seen.isNotNull() & F.col(quote(_TIME)).isNotNull()
    for i in keys:
        valid = valid & F.col(quote(f"{LEFT}{i}")).isNotNull()
    if config.tolerance is not None:
        valid = valid & _near(found, config.tolerance)
    found = found.withColumn(HIT, F.when(valid, F.lit(True)))
    hit = F.col(quote(HIT)).isNotNull()
    columns = [F.col(quote(n)) for n in left_names]
    columns += [F.when(hit, seen[f"c{i}"]).alias(n) for i, n in enumerate(own)]
    found = found.select(*columns, F.col(quote(HIT)))
    return found.where(hit) if sides.on_miss == "skip" else found


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
