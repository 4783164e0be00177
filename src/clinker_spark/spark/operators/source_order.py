"""The declared order of a source: which of two records comes first, and how to put records in order that are not."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.config.model.order import SortField
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import RANGE_COLUMN
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.spark.operators.stream import direction

Points = tuple[tuple[str | None, ...], ...]
"""Keys, as texts, that cut the records of a source into ranges of about the same size."""


def precedes(order: Sequence[SortField], a: Column, b: Column) -> Column:
    """Must `a` stand before `b`? Both are structs of the keys `k0`, `k1`..."""
    result: Column = F.lit(False)
    for i, item in reversed(list(enumerate(order))):
        left, right = a[f"k{i}"], b[f"k{i}"]
        result = _is_first(item, left, right) | (left.eqNullSafe(right) & result)
    return result


def _is_first(item: SortField, left: Column, right: Column) -> Column:
    smaller = F.coalesce(left < right if item.order == "asc" else left > right, F.lit(False))
    if item.null_order == "first":
        return smaller | (left.isNull() & right.isNotNull())
    return smaller | (left.isNotNull() & right.isNull())


def repaired(frame: DataFrame, node: SourcePlan, points: Points) -> DataFrame:
    """The records with an arrival that puts them, file by file, into the declared order, equal ones as they were read.

    They are cut into ranges at `points`, and numbered in each: the same in every job, unlike the ranges that Spark
    would choose for a sort. Outputs sort by arrival as they do after any shuffle.
    """
    order = node.config.sort_order
    types = [physical(node.schema[item.field]) for item in order]
    keys = F.struct(*[F.col(quote(item.field)).alias(f"k{i}") for i, item in enumerate(order)])
    cuts = [
        F.struct(*[F.lit(text).cast(t).alias(f"k{i}") for i, (text, t) in enumerate(zip(point, types, strict=True))])
        for point in points
    ]
    place: Column = F.lit(0)
    if cuts:
        place = F.size(F.filter(F.array(*cuts), lambda cut: ~precedes(order, keys, cut)))
    frame = frame.withColumn(RANGE_COLUMN, place)
    sorting = [direction(item, item.field) for item in order]
    in_range = Window.partitionBy(quote(FILE_COLUMN), RANGE_COLUMN).orderBy(*sorting, quote(ROW_COLUMN))
    bits = f"shiftleft(CAST({quote(FILE_COLUMN)} AS BIGINT), 43) + shiftleft(CAST({quote(RANGE_COLUMN)} AS BIGINT), 36)"
    arrival = F.expr(bits) + F.row_number().over(in_range)
    return frame.withColumn(ARRIVAL_COLUMN, arrival).drop(RANGE_COLUMN)
