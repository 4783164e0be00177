"""Stream joins: the same condition over files that end and over streams that do not.

Of a stream, records carry their time once more as `$time`, with its watermark: Spark takes from the condition how long
each side must be held, and lets go of what nothing can be joined with any more.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.config.model.stream_join import SIDES
from clinker_spark.cxl.conditions import as_program
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    BUILT_COLUMN,
    EVENT_COLUMN,
    JOIN_PREFIX,
    OK_COLUMN,
    ORIGIN_COLUMN,
    TIME_COLUMN,
)
from clinker_spark.plan.ledger import count
from clinker_spark.plan.nodes.stream_join import StreamJoinPlan
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.made_letters import made_letter
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.joins.sides import inlined_condition

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder

_KINDS = {"inner": "inner", "left": "left_outer", "right": "right_outer", "full": "full_outer"}
_MICROSECOND = dt.timedelta(microseconds=1)


def build_stream_join(builder: Builder, node: StreamJoinPlan) -> Stream:
    """The pairs, and with an outer join the records that have no other."""
    streams = builder.inputs(node)
    if builder.writes:
        streams = [builder.absorb(node, stream, side) for stream, side in zip(streams, SIDES, strict=True)]
    left, right = (_side(node, stream.frame, i) for i, stream in enumerate(streams))
    joined = left.join(right, F.expr(_condition(builder, node, left, right)), _KINDS[node.config.kind])
    rows = count(f"{node.name}: rows")
    result = select_sql(joined, [*_columns(node, joined), *_hidden(builder, node, joined)])
    if builder.finds:
        result = result.withColumns(made_letter({n: t for n, t in node.schema.items() if n in result.columns}))
    if builder.writes:
        result = builder.metrics.count(node.name, result, rows=F.count(F.lit(1)))
    return Stream(result, False, flow=rows)


def _side(node: StreamJoinPlan, frame: DataFrame, i: int) -> DataFrame:
    """Columns as the condition calls them: `left.id`, and hidden ones `$join.left.$time`."""
    kept = [
        name
        for name in frame.columns
        if not name.startswith("$") or name in (TIME_COLUMN, EVENT_COLUMN, ARRIVAL_COLUMN, ORIGIN_COLUMN)
    ]
    return select_sql(frame, [named(quote(name), _own(i, name)) for name in kept])


def _own(i: int, name: str) -> str:
    return f"{JOIN_PREFIX}{SIDES[i]}.{name}" if name.startswith("$") else f"{SIDES[i]}.{name}"


def _condition(builder: Builder, node: StreamJoinPlan, left: DataFrame, right: DataFrame) -> str:
    """Spark's own equality: a null equals nothing."""
    terms = [f"{quote(f'left.{a}')} = {quote(f'right.{b}')}" for a, b in node.key_pairs]
    if node.config.kind == "full" and left.isStreaming:
        # Where Spark 4.3 keeps records of both sides that have a null in their keys, it finds them for each other.
        terms.append(f"{_kept_apart(node, 0)} = {_kept_apart(node, 1)}")
    times = [
        quote(_own(i, TIME_COLUMN) if _own(i, TIME_COLUMN) in side.columns else _own(i, node.events[i]))
        for i, side in enumerate((left, right))
    ]
    window = node.config.time_window
    terms.append(f"{times[1]} >= {times[0]} + {_interval(window.min)}")
    terms.append(f"{times[1]} <= {times[0]} + {_interval(window.max)}")
    if node.condition is not None:
        schema = {_own(i, name): t for i, columns in enumerate(node.schemas) for name, t in columns.items()}
        program = as_program(schema, [(OK_COLUMN, node.condition.value)])
        terms.append(inlined_condition(program, OK_COLUMN, left.join(right), builder.context(node)))
    return " AND ".join(f"({term})" for term in terms)


def _kept_apart(node: StreamJoinPlan, i: int) -> str:
    """SQL: 0, or a number that the other side never has where a key is null. It is a part of the key in the state."""
    nulls = [f"{quote(f'{SIDES[i]}.{pair[i]}')} IS NULL" for pair in node.key_pairs]
    return f"CASE WHEN {' OR '.join(nulls)} THEN {i + 1} ELSE 0 END"


def _interval(span: dt.timedelta) -> str:
    micros = span // _MICROSECOND
    sign = "-" if micros < 0 else ""
    return f"INTERVAL '{sign}{abs(micros) // 1_000_000}.{abs(micros) % 1_000_000:06}' SECOND"


def _columns(node: StreamJoinPlan, joined: DataFrame) -> list[str]:
    """Those that somebody needs: others were not even read."""
    there = set(joined.columns)
    return [named(quote(_own(c.side, c.source)), c.name) for c in node.columns if _own(c.side, c.source) in there]


def _hidden(builder: Builder, node: StreamJoinPlan, joined: DataFrame) -> list[str]:
    columns = []
    side = node.config.event_side
    for name in (TIME_COLUMN, EVENT_COLUMN):
        if side is not None and _own(side, name) in joined.columns:
            columns.append(named(quote(_own(side, name)), name))
    arrivals = [_own(i, ARRIVAL_COLUMN) for i in range(2)]
    if all(name in joined.columns for name in arrivals):
        # Pairs in the order of their left records, then of the right ones; what has no left record comes last.
        parts = [f"array(CAST({quote(arrivals[0])} IS NULL AS BIGINT))", *(_array(joined, name) for name in arrivals)]
        columns.append(named(f"concat({', '.join(parts)})", ARRIVAL_COLUMN))
    if builder.finds:
        origins = [quote(name) for i in range(2) if (name := _own(i, ORIGIN_COLUMN)) in joined.columns]
        if origins:
            built = f"filter(array({', '.join(origins)}), origin -> origin.source IS NOT NULL)"
            columns.append(named(built, BUILT_COLUMN))
    return columns


def _array(frame: DataFrame, name: str) -> str:
    text = quote(name)
    if not isinstance(frame.schema[name].dataType, ArrayType):
        text = f"array({text})"
    return f"coalesce({text}, array())"
