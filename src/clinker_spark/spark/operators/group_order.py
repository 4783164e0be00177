"""What reshapes and culls share: aggregates over the group of each record, and the order of groups.

Groups come in the order of their first records, and the records of a group in the order that the node asks for. No
sorting happens here: `$arrival` says the new order, and whoever needs it sorts by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.config.model.order import SortField
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.keys import partition_sql
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import LEADS_COLUMN, PLACE_COLUMN
from clinker_spark.plan.nodes.base import PlanNode, Schema
from clinker_spark.spark.build.stream import direction, order_text
from clinker_spark.spark.columns.select import named, select_sql

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def group_keys(names: Sequence[str], schema: Schema) -> list[str]:
    """SQL for what the records of a group have in common."""
    return [partition_sql(quote(name), schema[name]) or quote(name) for name in names]


def with_aggregates(
    builder: Builder, node: PlanNode, frame: DataFrame, keys: Sequence[str], aggregates: Mapping[str, str]
) -> DataFrame:
    """Each record with aggregates of its group, by their names. Groups are windows; but one group of everything is
    added up in parallel, over records that are kept for it, unless one task has them all anyway."""
    if not aggregates:
        return frame
    if keys or builder.run.small:
        window = f"OVER (PARTITION BY {', '.join(keys)})" if keys else "OVER ()"
        return select_sql(frame, ["*", *(named(f"{text} {window}", name) for name, text in aggregates.items())])
    kept = builder.memo.store(node.name, frame)
    total = kept.agg(*[F.expr(text).alias(name) for name, text in aggregates.items()])
    return kept.crossJoin(F.broadcast(total))


def with_places(frame: DataFrame, keys: Sequence[str], order_by: Sequence[SortField]) -> DataFrame:
    """The records with the arrival of the first one of their group, and their place in the group: arrays that compare
    as the order of the node."""
    arrival = quote(ARRIVAL_COLUMN)
    listed = arrival if isinstance(frame.schema[ARRIVAL_COLUMN].dataType, ArrayType) else f"array({arrival})"
    order = ", ".join([*map(order_text, order_by), arrival])
    if not keys:
        place = listed
        if order_by:  # after a sort, the numbers of tasks and of their records grow with the order
            frame = frame.orderBy(*[direction(item, item.field) for item in order_by], arrival)
            place = "array(monotonically_increasing_id())"
        return select_sql(frame, ["*", named("array(0L)", LEADS_COLUMN), named(place, PLACE_COLUMN)])
    partition = f"PARTITION BY {', '.join(keys)}"
    if not order_by:
        return select_sql(frame, ["*", named(_first(listed, partition), LEADS_COLUMN), named(listed, PLACE_COLUMN)])
    # One window for both, so that records are sorted once.
    whole = f"{partition} ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    place = f"array(CAST(row_number() OVER ({partition} ORDER BY {order}) AS BIGINT))"
    return select_sql(frame, ["*", named(_first(listed, whole), LEADS_COLUMN), named(place, PLACE_COLUMN)])


def _first(listed: str, window: str) -> str:
    return f"min({listed}) OVER ({window})"


def in_group_order(frame: DataFrame, *tail: str) -> DataFrame:
    """The records with their new `$arrival`, which ends with the numbers of `tail`."""
    end = f", array({', '.join(tail)})" if tail else ""
    text = f"concat({quote(LEADS_COLUMN)}, {quote(PLACE_COLUMN)}{end})"
    kept = [quote(n) for n in frame.columns if n not in (ARRIVAL_COLUMN, LEADS_COLUMN, PLACE_COLUMN)]
    return select_sql(frame, [*kept, named(text, ARRIVAL_COLUMN)])
