"""The declared order of a source: is every file in it, and how to put the records of one that is not in order.

Neighbours are compared in blocks of a million records, many blocks at once; then the last record of each block is
compared with the first of the next. Only the columns of the order are read, and one row per file that is out of order
comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.config.model.order import SortField
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.lower.plan import ARRIVAL_COLUMN, ERROR_COLUMN, quote
from clinker_spark.plan.nodes import SourcePlan
from clinker_spark.spark.operators.stream import direction
from clinker_spark.spark.sources.formats import read
from clinker_spark.spark.sources.request import FILE_COLUMN, ROW_COLUMN, ReadRequest

if TYPE_CHECKING:
    from clinker_spark.spark.operators.build import Builder

_BLOCK_BITS = 20


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
    request = ReadRequest(
        source=node.name,
        files=builder.files[node.name],
        columns=node.columns,
        options=node.config.options,
        compression=node.config.compression,
        on_unmapped="drop",
        date_formats=tuple(builder.plan.file.settings.date_formats),
        wanted=frozenset(item.field for item in node.config.sort_order),
        positions=True,
        limit=builder.limit,
    )
    frame = read(builder.spark, node.config.type, request).frame
    if ERROR_COLUMN in frame.columns:
        frame = frame.where(F.col(quote(ERROR_COLUMN)).isNull())
    rows = _first_inversions(frame, node).collect()
    return [Inversion(*row) for row in rows]


def _first_inversions(frame: DataFrame, node: SourcePlan) -> DataFrame:
    order = node.config.sort_order
    row = F.col(quote(ROW_COLUMN))
    keys = [F.col(quote(item.field)).alias(f"k{i}") for i, item in enumerate(order)]
    texts = [F.expr(f"coalesce({sql_text(quote(i.field), node.schema[i.field])}, 'null')") for i in order]
    record = F.struct(*keys, row.alias("row"), F.concat_ws(", ", *texts).alias("text"))
    frame = frame.select(
        F.col(quote(FILE_COLUMN)).alias("file"),
        F.shiftright(row, _BLOCK_BITS).alias("block"),
        row.alias("row"),
        record.alias("here"),
    )
    in_block = Window.partitionBy("file", "block").orderBy("row")
    frame = frame.withColumn("before", F.lag("here").over(in_block))
    blocks = frame.groupBy("file", "block").agg(
        F.min(_found(order, "before", "here")).alias("inside"),
        F.min_by("here", "row").alias("first"),
        F.max_by("here", "row").alias("last"),
    )
    blocks = blocks.withColumn("ended", F.lag("last").over(Window.partitionBy("file").orderBy("block")))
    found = F.least(F.col("inside"), _found(order, "ended", "first"))
    files = blocks.groupBy("file").agg(F.min(found).alias("found")).where("found IS NOT NULL")
    return files.select("file", "found.row_before", "found.keys_before", "found.row", "found.keys").orderBy("file")


def _found(order: Sequence[SortField], before: str, here: str) -> Column:
    """The two neighbours, if they stand the wrong way round. The first of a file is the smallest."""
    wrong = reduce(
        lambda later, i: (
            _precedes(order[i], here, before, i) | (F.col(f"{here}.k{i}").eqNullSafe(F.col(f"{before}.k{i}")) & later)
        ),
        reversed(range(len(order))),
        F.lit(False),
    )
    pair = F.struct(
        F.col(f"{here}.row").alias("row"),
        F.col(f"{before}.row").alias("row_before"),
        F.col(f"{before}.text").alias("keys_before"),
        F.col(f"{here}.text").alias("keys"),
    )
    return F.when(F.col(before).isNotNull() & wrong, pair)


def _precedes(item: SortField, a: str, b: str, i: int) -> Column:
    """Must the key of `a` stand before that of `b`?"""
    left, right = F.col(f"{a}.k{i}"), F.col(f"{b}.k{i}")
    smaller = F.coalesce(left < right if item.order == "asc" else left > right, F.lit(False))
    if item.null_order == "first":
        return smaller | (left.isNull() & right.isNotNull())
    return smaller | (left.isNotNull() & right.isNull())


def repaired(frame: DataFrame, node: SourcePlan) -> DataFrame:
    """The records file by file in the declared order, equal ones as they were read, with an arrival that says so."""
    keys = [direction(item, item.field) for item in node.config.sort_order]
    ordered = frame.orderBy(F.col(quote(FILE_COLUMN)), *keys, F.col(quote(ROW_COLUMN)))
    # Every task has a range of the order, so the number that Spark gives grows along it.
    return ordered.withColumn(ARRIVAL_COLUMN, F.monotonically_increasing_id())
