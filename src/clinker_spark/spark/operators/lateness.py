"""Which records come too late for their window, by the order in which they arrive.

The watermark at a record is, over all sources, the least of the latest times that came before it; as long as one of
them has sent nothing, there is none. Latest times are prefix maxima. The order of arrival is cut into blocks: the
maxima of whole blocks are few and are put together in one place, those inside of a block by the task that has it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from clinker_spark.config.model.aggregate import Hopping, Session
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import DOCUMENT_COLUMN, EVENT_COLUMN, LATEST_PREFIX, WATERMARK_COLUMN, WINDOW_COLUMN
from clinker_spark.plan.nodes.aggregate import LATE, AggregatePlan
from clinker_spark.query.hidden import BLOCK_COLUMN
from clinker_spark.spark.build.stream import DOCUMENT_BITS, Stream
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.operators.record_log import block_of
from clinker_spark.spark.operators.time_windows import last_start, micros

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def without_late(builder: Builder, node: AggregatePlan, stream: Stream) -> DataFrame:
    """The records that come in time, with the watermark at each; the others are diverted."""
    columns = stream.frame.columns
    frame = _with_watermark(builder, node, stream.frame)
    failed = select_sql(frame, [*map(quote, columns), quote(WATERMARK_COLUMN), named(_error(node), ERROR_COLUMN)])
    return builder.divert(node, builder.mark(node, replace(stream.over(failed), pushes=False)), "late").frame


def still_open(frame: DataFrame, node: AggregatePlan) -> DataFrame:
    """The records without those of their windows that were closed when they came: only some of those that overlap."""
    if isinstance(node.window, Hopping):
        end = f"{quote(WINDOW_COLUMN)} + {micros(node.window.size)}L + {_lateness(node)}"
        frame = frame.where(f"{quote(WATERMARK_COLUMN)} IS NULL OR {end} > {quote(WATERMARK_COLUMN)}")
    return frame.drop(WATERMARK_COLUMN)


def _with_watermark(builder: Builder, node: AggregatePlan, frame: DataFrame) -> DataFrame:
    assert node.late is not None
    indexes = [builder.plan.source(name).index for name in node.late.sources]
    frame = builder.memo.store(node.name, frame.withColumn(BLOCK_COLUMN, block_of(frame)))
    times = {f"{LATEST_PREFIX}{i}": f"CASE WHEN {_source()} = {i} THEN {quote(EVENT_COLUMN)} END" for i in indexes}
    maxima = frame.groupBy(BLOCK_COLUMN).agg(*[F.max(F.expr(text)).alias(name) for name, text in times.items()])
    before = Window.orderBy(BLOCK_COLUMN).rowsBetween(Window.unboundedPreceding, -1)
    earlier = maxima.select(BLOCK_COLUMN, *[F.max(quote(name)).over(before).alias(name) for name in times])
    rows = f"PARTITION BY {quote(BLOCK_COLUMN)} ORDER BY {quote(ARRIVAL_COLUMN)}"
    rows += " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    frame = frame.join(F.broadcast(earlier), BLOCK_COLUMN)
    latest = [f"greatest({quote(name)}, max({text}) OVER ({rows}))" for name, text in times.items()]
    names = list(times)
    kept = [quote(name) for name in frame.columns if name not in (*names, BLOCK_COLUMN)]
    frame = select_sql(frame, [*kept, *(named(text, name) for name, text in zip(names, latest, strict=True))])
    silent = " OR ".join(f"{quote(name)} IS NULL" for name in names)
    least = quote(names[0]) if len(names) == 1 else f"least({', '.join(map(quote, names))})"
    return select_sql(frame, [*kept, named(f"CASE WHEN {silent} THEN NULL ELSE {least} END", WATERMARK_COLUMN)])


def _source() -> str:
    """SQL: the position of the source of a record."""
    return f"shiftright({quote(DOCUMENT_COLUMN)}, {DOCUMENT_BITS})"


def _lateness(node: AggregatePlan) -> str:
    assert node.late is not None
    return f"{micros(node.late.allowed)}L"


def _error(node: AggregatePlan) -> str:
    """SQL: why a record is late. Of several windows, the last one counts; of a session, the one it could begin."""
    window = node.window
    assert window is not None
    time = quote(EVENT_COLUMN)
    start = time if isinstance(window, Session) else f"({last_start(window)})"
    length = micros(window.gap if isinstance(window, Session) else window.size)
    late = f"{time} < {start} + {length}L AND {start} + {length}L + {_lateness(node)} <= {quote(WATERMARK_COLUMN)}"
    closed = f"{_nanoseconds(start)}, ', ', {_nanoseconds(f'{start} + {length}L')}"
    at = _nanoseconds(quote(WATERMARK_COLUMN))
    message = f"concat('late: the window [', {closed}, ') was closed at ', {at})"
    value = f"CAST(timestamp_micros({time}) AS STRING)"
    fields = f"'kind', '{LATE}', 'field', CAST(NULL AS STRING), 'value', {value}, 'message', {message}"
    return f"CAST(CASE WHEN {late} THEN named_struct({fields}) END AS {ERROR_TYPE})"


def _nanoseconds(micros: str) -> str:
    """SQL: a number of microseconds as the text of one of nanoseconds, which a BIGINT does not hold beyond 2262."""
    return f"CAST(CAST({micros} AS DECIMAL(20, 0)) * 1000 AS STRING)"
