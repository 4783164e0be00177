"""Aggregates: rows are prepared, grouped and finished by native expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.nodes import AggregatePlan
from clinker_spark.spark.columns import group
from clinker_spark.spark.operators.stream import (
    DOCUMENT_COLUMN,
    LETTER_COLUMN,
    LETTER_TYPE,
    ORIGIN_COLUMN,
    ORIGIN_TYPE,
    Stream,
)

if TYPE_CHECKING:
    from clinker_spark.spark.operators.build import Builder


def build_aggregate(builder: Builder, node: AggregatePlan) -> Stream:
    """The groups; rows that cannot be grouped are set aside as failures of this node."""
    [stream] = builder.inputs(node)
    stream = stream.over(builder.with_file_values(node, stream.frame))
    also = [DOCUMENT_COLUMN] if node.per_document and DOCUMENT_COLUMN in stream.frame.columns else []
    context = builder.contexts[node.name]
    groups = group(
        node.program,
        stream.frame,
        context,
        lambda rows: builder.settle(node, builder.mark(node, stream.over(rows))).frame,
        also,
    )
    if builder.letters:
        groups = groups.withColumns({ORIGIN_COLUMN: F.lit(None).cast(ORIGIN_TYPE), LETTER_COLUMN: _letter(node)})
    return builder.mark(node, Stream(groups, in_place=False))


def _letter(node: AggregatePlan) -> Column:
    """A group as a dead letter shows it."""
    pairs: list[Column] = []
    for name, t in node.schema.items():
        pairs += [F.lit(name), F.expr(sql_text(quote(name), t))]
    return F.create_map(*pairs).cast(LETTER_TYPE)
