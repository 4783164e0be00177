"""The declared order of a source: is every file in it, and how to put records in order that are not.

Neighbours are compared in blocks of a million records, many blocks at once; then the last record of each block is
compared with the first of the next. Only the columns of the order are read, and one row per file that is out of order
comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.config.model.order import SortField
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import RANGE_COLUMN
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import Points
from clinker_spark.spark.build.source_columns import read_columns
from clinker_spark.spark.build.stream import direction

_BLOCK_BITS = 20
_SAMPLED = 4_000
_RANGES = 64


@dataclass(frozen=True)
class Inversion:
    """The first two neighbours of a file that stand the wrong way round: their rows, and the keys as texts."""

    file: int
    row_before: int
    keys_before: str
    row: int
    keys: str


def inversions(builder: Builder, node: SourcePlan) -> list[Inversion]:
    """One for each file that is not in the declared order. Records that cannot be read have no place in it."""
    rows = _first_inversions(_good(builder, node), node).collect()
    return [Inversion(*row) for row in rows]


def split_points(builder: Builder, node: SourcePlan) -> Points:
    """Where to cut the records to sort them in parallel: quantiles of a sample. Found once in a run, so that every job
    cuts at the same places and gives a record the same arrival."""
    order = node.config.sort_order
    sample = _good(builder, node).orderBy(F.xxhash64(quote(FILE_COLUMN), quote(ROW_COLUMN))).limit(_SAMPLED)
    sample = sample.orderBy(*[direction(item, item.field) for item in order])
    rows = sample.select(*[F.col(quote(item.field)).cast("string") for item in order]).collect()
    step = max(len(rows) // _RANGES, 1)
    return tuple(tuple(row) for row in rows[step::step][: _RANGES - 1])


def _good(builder: Builder, node: SourcePlan) -> DataFrame:
    """The columns of the order, and where the records stand."""
    wanted = frozenset(item.field for item in node.config.sort_order)
    files = builder.run.files[node.name]
    frame = read_columns(builder.spark, builder.plan, node, files, wanted, positions=True, limit=builder.asked.limit)
    return frame.where(F.col(quote(ERROR_COLUMN)).isNull()) if ERROR_COLUMN in frame.columns else frame


def _first_inversions(frame: DataFrame, node: SourcePlan) -> DataFrame:
    order = node.config.sort_order
    row = F.col(quote(ROW_COLUMN))
    keys = [F.col(quote(item.field)).alias(f"k{i}") for i, item in enumerate(order)]
    record = F.struct(*keys, row.alias("row"))
    frame = frame.select(
        F.col(quote(FILE_COLUMN)).alias("file"),
        F.shiftright(row, _BLOCK_BITS).alias("block"),
        row.alias("row"),
        record.alias("here"),
    )
    in_block = Window.partitionBy("file", "block").orderBy("row")
    frame = frame.withColumn("before", F.lag("here").over(in_block))
    blocks = frame.groupBy("file", "block").agg(
        F.min(_found(order, F.col("before"), F.col("here"))).alias("inside"),
        F.min_by("here", "row").alias("first"),
        F.max_by("here", "row").alias("last"),
    )
    blocks = blocks.withColumn("ended", F.lag("last").over(Window.partitionBy("file").orderBy("block")))
    found = F.least(F.col("inside"), _found(order, F.col("ended"), F.col("first")))
    files = blocks.groupBy("file").agg(F.min(found).alias("found")).where("found IS NOT NULL")
    shown = [_text(node, f"found.{side}").alias(side) for side in ("before", "here")]
    rows = files.select("file", F.col("found.before.row").alias("row_before"), shown[0], "found.row", shown[1])
    return rows.orderBy("file")


def _text(node: SourcePlan, record: str) -> Column:
    """The keys of a record for people."""
    types = [node.schema[item.field] for item in node.config.sort_order]
    texts = [f"coalesce({sql_text(f'{record}.k{i}', t)}, 'null')" for i, t in enumerate(types)]
    return F.expr(f"concat_ws(', ', {', '.join(texts)})")


def _found(order: Sequence[SortField], before: Column, here: Column) -> Column:
    """The two neighbours, if they stand the wrong way round. The first of a file is the smallest."""
    pair = F.struct(here["row"].alias("row"), before.alias("before"), here.alias("here"))
    return F.when(before.isNotNull() & precedes(order, here, before), pair)


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
