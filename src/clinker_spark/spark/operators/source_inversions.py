"""Is every file of a source in its declared order, and where to cut the records if they must be sorted?

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
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.hidden import ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.spark.operators.build import Builder
from clinker_spark.spark.operators.source_columns import read_columns
from clinker_spark.spark.operators.source_order import Points, precedes
from clinker_spark.spark.operators.stream import direction

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
