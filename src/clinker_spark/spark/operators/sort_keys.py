"""What the records of an output are sorted by."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column
from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import DOCUMENT_COLUMN, SORT_FILE_COLUMN, SORT_PREFIX, WIDENED_COLUMN
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns import undeclared


def sort_keys(node: OutputPlan, stream: Stream, known: Collection[str]) -> dict[str, Column]:
    """The columns to sort by, in their order; none when records lie as they should. `known` are the undeclared columns
    that the files have."""
    sorting = node.config.sort_order
    moved = bool(node.partition_by) or not stream.in_place
    by_arrival = bool(sorting or node.framing) or (node.config.order == "source" and moved)
    keys = [_key(node, item.field, stream, known) for item in sorting]
    keys += [F.col(quote(ARRIVAL_COLUMN))] if by_arrival else []
    found = {f"{SORT_PREFIX}{i}": key for i, key in enumerate(keys)}
    # The records of one input file must come together to be written to one file.
    if node.per_file and (sorting or not stream.in_place):
        return {SORT_FILE_COLUMN: F.col(quote(DOCUMENT_COLUMN)), **found}
    return found


def dropped(node: OutputPlan, stream: Stream, known: Collection[str]) -> list[Column]:
    """Conditions under which a record is left out (`null_order: drop`)."""
    return [
        _key(node, item.field, stream, known).isNull() for item in node.config.sort_order if item.null_order == "drop"
    ]


def _key(node: OutputPlan, name: str, stream: Stream, known: Collection[str]) -> Column:
    if name not in node.sorted_undeclared:
        return F.col(quote(name))
    fields = stream.frame.schema
    if name not in known or WIDENED_COLUMN not in fields.names:
        return F.lit(None).cast("string")
    return F.expr(undeclared.order(name, fields[WIDENED_COLUMN].dataType))
