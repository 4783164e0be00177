"""Log lines for single records: which records a rule speaks of, and the values it shows.

Records are counted as they come in, over all tasks: in blocks of neighbours, whose sizes say where each block begins.
Only the lines that are shown leave Spark, and there is a limit to these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.core.types import Type
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import LOG_COLUMN, NUMBER_COLUMN, SIZE_COLUMN, START_COLUMN
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.record_rules import RecordLog
from clinker_spark.query.hidden import BLOCK_COLUMN
from clinker_spark.spark.build.stream import failed
from clinker_spark.spark.columns.programs import apply

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


MOST_LINES = 1_000
"""Of one rule in one run."""
MOST_CHARACTERS = 200
"""Of one value."""
_BLOCK_BITS = 20
_MOST_INPUTS = 256
"""Below it, the first part of an arrival can be the position of an input."""


@dataclass(frozen=True)
class RecordLines:
    """The first lines of a rule, each with the values of its fields, and how many more there would be."""

    shown: list[dict[str, str | None]]
    more: int


def record_lines(builder: Builder, node: PlanNode, log: RecordLog) -> RecordLines:
    """What a rule says about the records that come into a transform, in their order."""
    stream = builder.inputs(node)[0]
    frame = builder.with_file_values(node, stream.frame)
    if stream.fallible:
        frame = frame.where(~failed()).drop(ERROR_COLUMN)
    every = log.rule.every or 1
    if every > 1:
        frame = _every(frame, every)
    if log.condition is not None:
        frame = apply(log.condition, frame, context=builder.context(node))
        # A condition that fails is not true. The record itself is none the worse for it.
        there = F.col(quote(LOG_COLUMN)) & (~failed() if ERROR_COLUMN in frame.columns else F.lit(True))
        frame = frame.where(F.coalesce(there, F.lit(False)))
    schema = builder.plan[node.inputs[0].node].schema
    values = [_shown(name, schema[name]).alias(name) for name in log.rule.fields]
    chosen = frame.select(*values, F.col(quote(ARRIVAL_COLUMN)))
    rows = chosen.orderBy(quote(ARRIVAL_COLUMN)).limit(MOST_LINES + 1).drop(ARRIVAL_COLUMN).collect()
    more = chosen.count() - MOST_LINES if len(rows) > MOST_LINES else 0
    return RecordLines([row.asDict() for row in rows[:MOST_LINES]], more)


def _shown(name: str, t: Type) -> Column:
    return F.expr(f"substring({sql_text(quote(name), t)}, 1, {MOST_CHARACTERS})")


def _every(frame: DataFrame, every: int) -> DataFrame:
    """The first record and each that comes so many after one that was taken."""
    arrival = F.col(quote(ARRIVAL_COLUMN))
    frame = frame.withColumn(BLOCK_COLUMN, block_of(frame))
    in_order = Window.orderBy(BLOCK_COLUMN).rowsBetween(Window.unboundedPreceding, -1)
    sizes = frame.groupBy(BLOCK_COLUMN).agg(F.count(F.lit(1)).alias(SIZE_COLUMN))  # one row for a million records
    starts = sizes.select(BLOCK_COLUMN, F.coalesce(F.sum(SIZE_COLUMN).over(in_order), F.lit(0)).alias(START_COLUMN))
    number = F.row_number().over(Window.partitionBy(BLOCK_COLUMN).orderBy(arrival)) - 1
    numbered = frame.withColumn(NUMBER_COLUMN, number).join(F.broadcast(starts), BLOCK_COLUMN)
    return numbered.where((F.col(START_COLUMN) + F.col(NUMBER_COLUMN)) % every == 0).drop(
        BLOCK_COLUMN, NUMBER_COLUMN, START_COLUMN
    )


def block_of(frame: DataFrame) -> Column:
    """A number, or a pair of numbers, that never falls as records arrive; a stretch of them shares it. Where the first
    part of an arrival is the input of a merge, the second tells the records of one input apart."""
    arrival = quote(ARRIVAL_COLUMN)
    if not isinstance(frame.schema[ARRIVAL_COLUMN].dataType, ArrayType):
        return F.expr(f"shiftright({arrival}, {_BLOCK_BITS})")
    first, second = (f"coalesce(get({arrival}, {i}), 0L)" for i in range(2))
    is_input = f"{first} < {_MOST_INPUTS}"
    place = f"IF({is_input}, {first}, {_MOST_INPUTS}L + shiftright({first}, {_BLOCK_BITS}))"
    return F.expr(f"struct({place}, IF({is_input}, shiftright({second}, {_BLOCK_BITS}), 0L))")
