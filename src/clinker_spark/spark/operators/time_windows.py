"""Windows over time: each record gets the start of its window, which is then part of its group.

Times are microseconds since 1970, so that windows begin where they would in any engine, whatever the time zone of the
session is. All records are there before a window is closed; which of them came late is another matter (`lateness`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.config.model.aggregate import Hopping, Session, Tumbling
from clinker_spark.config.model.sources.keys import Watermark
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import BEGINS_COLUMN, EVENT_COLUMN, TIME_COLUMN, WINDOW_COLUMN
from clinker_spark.plan.nodes.aggregate import AggregatePlan

_DAY = 86_400_000_000
_END_OF_TEXT = -1


def micros_since_1970(name: str, t: Type) -> str:
    """SQL: a date or a time as a number."""
    x = quote(name)
    text = f"CAST(unix_date(CAST({x} AS DATE)) AS BIGINT) * {_DAY}L"
    if t.kind is Kind.DATETIME:
        seconds = f"CAST(hour({x}) * 3600 + minute({x}) * 60 AS BIGINT) * 1000000L"
        text += f" + {seconds} + CAST(extract(SECOND FROM {x}) * 1000000 AS BIGINT)"
    return text


def event_time(watermark: Watermark, t: Type) -> Column:
    """When a record happened: its time less the delay of the source."""
    return F.expr(f"{micros_since_1970(watermark.column, t)} - {micros(watermark.delay or dt.timedelta(0))}L")


def with_windows(
    frame: DataFrame, window: Tumbling | Hopping | Session, keys: Sequence[Column], also: Sequence[str]
) -> DataFrame:
    """The records with the start of their window. Those without a time are in none; hopping windows repeat them."""
    frame = frame.where(F.col(quote(EVENT_COLUMN)).isNotNull())
    time = quote(EVENT_COLUMN)
    if isinstance(window, Tumbling):
        return frame.withColumn(WINDOW_COLUMN, F.expr(last_start(window)))
    if isinstance(window, Hopping):
        size, slide = micros(window.size), micros(window.slide)
        last = last_start(window)
        first = f"{time} - {size}L - pmod({time} - {size}L, {slide}L) + {slide}L"
        starts = f"CASE WHEN {first} <= {last} THEN sequence({first}, {last}, {slide}L) END"
        return frame.withColumn(WINDOW_COLUMN, F.explode(F.expr(starts)))
    parts = [*keys, *(F.col(quote(name)) for name in also)]
    in_order = Window.partitionBy(*parts).orderBy(quote(EVENT_COLUMN), quote(ARRIVAL_COLUMN))
    here = F.col(quote(EVENT_COLUMN))
    before = F.lag(here).over(in_order)
    begins = F.when(before.isNull() | (here - before > F.lit(micros(window.gap))), here)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    frame = frame.withColumn(BEGINS_COLUMN, begins)
    return frame.withColumn(WINDOW_COLUMN, F.last(BEGINS_COLUMN, ignorenulls=True).over(so_far)).drop(BEGINS_COLUMN)


def stream_window(node: AggregatePlan) -> Column:
    """The same windows as Spark's own, which it can close one after the other."""
    window, time = node.window, quote(TIME_COLUMN)
    assert window is not None
    if isinstance(window, Session):  # a record that lies exactly the gap behind the last one still belongs to it
        return F.session_window(time, f"{micros(window.gap) + 1} microseconds")
    step = window.slide if isinstance(window, Hopping) else window.size
    shift = micros(node.delays[0]) % micros(step)
    spans = [f"{count} microseconds" for count in (micros(window.size), micros(step), shift)]
    return F.window(time, *spans)


def last_start(window: Tumbling | Hopping) -> str:
    """SQL: when the last window begins that a record is in."""
    time, step = quote(EVENT_COLUMN), window.slide if isinstance(window, Hopping) else window.size
    return f"{time} - pmod({time}, {micros(step)}L)"


def in_window_order(groups: DataFrame, node: AggregatePlan) -> DataFrame:
    """Groups by the start of their window and then by first appearance; sessions by the text of their keys first."""
    arrival = F.col(quote(ARRIVAL_COLUMN))
    if not isinstance(groups.schema[ARRIVAL_COLUMN].dataType, ArrayType):
        arrival = F.array(arrival)
    places = [F.array(F.col(quote(WINDOW_COLUMN))), arrival]
    if isinstance(node.window, Session):
        places = [*(_text_order(name, node.schema[name]) for name in node.group_by), *places]
    return groups.withColumn(ARRIVAL_COLUMN, F.concat(*places)).drop(F.col(quote(WINDOW_COLUMN)))


def _text_order(name: str, t: Type) -> Column:
    """A text as numbers that compare as it does: arrivals are arrays of numbers."""
    text = f"coalesce({sql_text(quote(name), t)}, '')"
    return F.expr(f"concat(transform(split({text}, ''), c -> CAST(ascii(c) AS BIGINT)), array({_END_OF_TEXT}L))")


def micros(duration: dt.timedelta) -> int:
    """A duration as a number."""
    return duration // dt.timedelta(microseconds=1)
