"""Windows over the records of another node: one row per partition there, joined to the records that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE, lookup_column
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import FOUND_COLUMN, LOST_COLUMN, THERE_PREFIX
from clinker_spark.plan.nodes.transform import TransformPlan, WindowLookup
from clinker_spark.spark.build.stream import Stream, order_text
from clinker_spark.spark.columns.programs import Window, apply

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


_OF_NOTHING = {"count": "0L", "any": "FALSE", "exists": "FALSE", "every": "TRUE", "not_exists": "TRUE"}
"""What functions say of a partition that has no record. Those that are missing here give null, or an empty array."""


def with_lookups(builder: Builder, node: TransformPlan, frame: DataFrame, other: Stream) -> DataFrame:
    """The records with the values of the `$window` functions as columns. A null finds no partition."""
    assert node.window is not None and node.window.lookup is not None
    lookup = node.window.lookup
    context = builder.context(node)
    before = frame.columns
    keys = list(lookup.keys.output)
    names = [lookup_column(i) for i in range(len(node.program.typed.lookups))]
    frame = apply(lookup.keys, frame, context=context)
    parts = _partitions(builder, node, lookup, other)
    same: Column = F.lit(True)
    for key in keys:
        same = same & (F.col(quote(key)) == F.col(quote(THERE_PREFIX + key)))
    frame = frame.join(parts, same, "left") if keys else frame.crossJoin(F.broadcast(parts))
    values = [_or_nothing(name, ref).alias(name) for name, ref in zip(names, node.program.typed.lookups, strict=True)]
    kept = [F.col(quote(name)) for name in before if name != ERROR_COLUMN]
    # of the keys, or of earlier nodes; or there is no such sum
    errors = [F.col(quote(name)).cast(ERROR_TYPE) for name in (ERROR_COLUMN, LOST_COLUMN) if name in frame.columns]
    if errors:
        kept.append(F.coalesce(*errors).alias(ERROR_COLUMN))
    return frame.select(*kept, *values)


def _partitions(builder: Builder, node: TransformPlan, lookup: WindowLookup, other: Stream) -> DataFrame:
    """One row for each partition: its keys and the values of the functions, which are the same for all its records."""
    assert node.window is not None
    frame = builder.absorb(node, builder.divert(node, other, "looked up"), "looked up").frame
    visible = [name for name in frame.columns if not name.startswith("$") or name == ARRIVAL_COLUMN]
    frame = frame.select(*[F.col(quote(name)) for name in visible])
    context = builder.context(node)
    window = Window(node.window.group_by, [order_text(item) for item in node.window.sort_by])
    frame = apply(lookup.there, frame, context=context)
    frame = apply(lookup.values, frame, context=context, window=window)
    keys = [F.col(quote(name)).alias(THERE_PREFIX + name) for name in lookup.there.output]
    values = [F.any_value(quote(name)).alias(name) for name in lookup.values.output]
    # All that can fail there is a float that leaves its range: then whoever asks for the partition fails.
    if ERROR_COLUMN in frame.columns:
        lost = F.any_value(quote(ERROR_COLUMN), ignoreNulls=F.lit(True))
        values.append(lost.alias(LOST_COLUMN))
    found = frame.groupBy(*keys).agg((F.count(F.lit(1)) > 0).alias(FOUND_COLUMN), *values)
    for name in lookup.there.output:
        found = found.where(F.col(quote(THERE_PREFIX + name)).isNotNull())
    return found


def _or_nothing(name: str, ref: ir.WindowRef) -> Column:
    if ref.function in _OF_NOTHING:
        # A null of a partition that is there means that only nulls could decide.
        return F.expr(f"CASE WHEN {quote(FOUND_COLUMN)} THEN {quote(name)} ELSE {_OF_NOTHING[ref.function]} END")
    if ref.function in ("collect", "distinct"):
        return F.expr(f"coalesce({quote(name)}, CAST(array() AS {physical(ref.type)}))")
    return F.col(quote(name))
