"""Joins by one comparison alone: `left.x >= build.y`. The axis is cut where the values of the build are dense.

A record of the build can only match in its own bin and in those after it (before it, for `<=`), so it is written into
each of them, and the left side looks into one bin. All candidates but those of that one bin are pairs: what is compared
in vain is one bin, where a nested loop compares everything. If only the first match counts, one record stands for all
bins before: the earliest of them, so that nothing is copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import JOIN_PREFIX
from clinker_spark.plan.nodes.combine import CombinePlan
from clinker_spark.spark.joins.axis import BROADCAST_ROWS, axis_of_column, with_hit
from clinker_spark.spark.joins.names import BUILD_RANGE, LEFT_RANGE
from clinker_spark.spark.joins.sides import Sides

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


MOST_BINS = 256
MOST_COPIES = 8_000_000
_BIN = f"{JOIN_PREFIX}slot"


def join_one_range(builder: Builder, node: CombinePlan, sides: Sides) -> DataFrame:
    """The pairs of a step with a comparison and no equality."""
    upwards = sides.step.ranges[0].op in (">=", ">")
    left = f"CAST({axis_of_column(sides.left, f'{LEFT_RANGE}0').text} AS DOUBLE)"
    own = f"CAST({axis_of_column(sides.build, f'{BUILD_RANGE}0').text} AS DOUBLE)"
    build = sides.build.where(F.expr(f"{own} IS NOT NULL"))
    first_only = (
        sides.match == "first" and sides.residual is None and sides.later is None and len(sides.step.ranges) == 1
    )
    name = f"{node.name}: {sides.step.build}"
    if name not in builder.run.measured:
        builder.run.measured[name] = _cuts(node, build, own, copies=not first_only)
    cuts, rows = builder.run.measured[name]
    last = len(cuts)
    build = build.withColumn(f"{_BIN}.own", F.expr(bin_of(own, cuts)))
    place = quote(f"{_BIN}.own")
    bins = f"sequence({place}, {last})" if upwards else f"sequence(0, {place})"
    if first_only:
        spread, copies = _with_earliest(build, sides.place, bins), rows + last + 1
    else:
        spread, copies = build.withColumn(f"{_BIN}.b", F.explode(F.expr(bins))), rows * (last + 1)
    spread = with_hit(spread.drop(f"{_BIN}.own"))
    looked_up = sides.left.withColumn(
        f"{_BIN}.l", F.expr(f"CASE WHEN {left} IS NOT NULL THEN {bin_of(left, cuts)} END")
    )
    same = F.col(quote(f"{_BIN}.l")) == F.col(quote(f"{_BIN}.b"))
    right = spread.hint("broadcast") if copies <= BROADCAST_ROWS else spread
    joined = looked_up.join(right, sides.condition(same), sides.how)
    return sides.sort_out(joined, repeated=False)


def _with_earliest(build: DataFrame, place: str, bins: str) -> DataFrame:
    """Each record in its own bin, and in every other bin the earliest of all that reach it from outside."""
    own = quote(f"{_BIN}.own")
    names = [name for name in build.columns if name != f"{_BIN}.own"]
    record = F.struct(*[F.col(quote(name)) for name in names])
    earliest = build.groupBy(own).agg(F.min_by(record, F.col(quote(place))).alias("r"))
    reached = earliest.withColumn(f"{_BIN}.b", F.explode(F.expr(bins))).where(F.expr(f"{quote(f'{_BIN}.b')} <> {own}"))
    chosen = reached.groupBy(quote(f"{_BIN}.b")).agg(F.min_by(F.col("r"), F.col("r")[place]).alias("r"))
    others = chosen.select(*[F.col("r")[name].alias(name) for name in names], F.col(quote(f"{_BIN}.b")))
    mine = build.select(*[F.col(quote(name)) for name in names], F.col(own).alias(f"{_BIN}.b"))
    return mine.unionByName(others)


def _cuts(node: CombinePlan, build: DataFrame, own: str, *, copies: bool) -> tuple[list[float], int]:
    """Where the axis is cut, by a look at the build, and how many records it has."""
    rows = build.count()
    estimate = node.probe_estimate
    lookups = estimate.rows if estimate is not None else 10 * rows
    # Copies of the build against candidates that are compared in vain.
    wanted = math.isqrt(2 * max(lookups, 1)) if copies else rows // 16
    most = min(MOST_BINS, MOST_COPIES // max(rows, 1)) if copies else MOST_BINS
    bins = max(1, min(wanted, most))
    if bins == 1:
        return [], rows
    parts = ", ".join(str(i / bins) for i in range(1, bins))
    found = build.agg(F.expr(f"percentile_approx({own}, array({parts}), 10000)").alias("q")).first()
    values = (found["q"] or []) if found is not None else []
    return sorted({value for value in values if math.isfinite(value)}), rows


def bin_of(value: str, cuts: Sequence[float], first: int = 0) -> str:
    """SQL for the number of cuts at or below a value, by halving.

    >>> bin_of("x", [1.0, 5.0])
    'CASE WHEN x < 5.0D THEN CASE WHEN x < 1.0D THEN 0 ELSE 1 END ELSE 2 END'
    """
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    below, above = bin_of(value, cuts[:middle], first), bin_of(value, cuts[middle + 1 :], first + middle + 1)
    return f"CASE WHEN {value} < {cuts[middle]!r}D THEN {below} ELSE {above} END"
