"""Merges: a union whose order is that of the inputs, or a mixture that is the same in every run."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import WIDENED_COLUMN
from clinker_spark.plan.ledger import total
from clinker_spark.plan.nodes.merge import MergePlan
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.types import read_as
from clinker_spark.spark.columns.undeclared import has_types, with_types

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def build_merge(builder: Builder, node: MergePlan) -> Stream:
    """All records of the inputs. `concat` puts them one after the other, `interleave` takes turns."""
    streams = builder.inputs(node)
    # How many there are of each follows from the sum, if only one is not known.
    unknown = [i for i, stream in enumerate(streams) if not builder.ledger.is_counted(stream.flow)]
    for i in unknown[1:]:
        streams[i] = builder.absorb(node, streams[i], str(node.inputs[i]))
    union = reduce(DataFrame.unionByName, _alike(builder, node, streams))
    if builder.run.small:  # one partition, in order: what follows needs no exchange
        union = union.coalesce(1)
    routes = {stream.route for stream in streams}
    in_place = node.in_order([stream.in_place for stream in streams])
    flow = total(stream.flow for stream in streams)
    return Stream(union, in_place, routes.pop() if len(routes) == 1 else None, flow)


def _alike(builder: Builder, node: MergePlan, streams: list[Stream]) -> list[DataFrame]:
    """The inputs with the same columns."""
    wanted = builder.plan.facts.columns.required[node.name].columns
    names = [name for name in node.schema if name in wanted or all(name in s.frame.columns for s in streams)]
    hidden = _shared_hidden(streams)
    kinds = [s.frame.schema[WIDENED_COLUMN].dataType for s in streams if WIDENED_COLUMN in s.frame.columns]
    typed = any(map(has_types, kinds))
    return [_aligned(stream, node, names, hidden, i, typed) for i, stream in enumerate(streams)]


def _shared_hidden(streams: list[Stream]) -> list[str]:
    """Hidden columns of any input; an input without one has null there."""
    found: dict[str, None] = {}
    for stream in streams:
        for name in stream.frame.columns:
            if name.startswith("$"):
                found.setdefault(name)
    return list(found)


def _aligned(
    stream: Stream, node: MergePlan, names: list[str], hidden: list[str], position: int, typed: bool
) -> DataFrame:
    """The stream with the columns of all. `typed`: the undeclared columns of some input keep their types."""
    have = {f.name: f.dataType for f in stream.frame.schema.fields}
    columns: list[Column] = []
    for name in names:
        if name in have:
            text = read_as(quote(name), have[name], node.schema[name]) or quote(name)
            columns.append(F.expr(text).alias(name))
    for name in hidden:
        if name == ARRIVAL_COLUMN:
            columns.append(_arrival(stream, node, position).alias(name))
        elif name == WIDENED_COLUMN and name in have and typed:
            columns.append(F.expr(with_types(have[name])).alias(name))
        elif name in have:
            columns.append(F.col(quote(name)))
        else:
            columns.append(F.lit(None).alias(name))
    return stream.frame.select(*columns)


def _arrival(stream: Stream, node: MergePlan, position: int) -> Column:
    """Where a record stands among those of all inputs, as an array that compares item by item."""
    column = F.col(quote(ARRIVAL_COLUMN))
    place = F.lit(position).cast("long")
    if not node.interleave:
        kind = stream.frame.schema[ARRIVAL_COLUMN].dataType
        return F.concat(F.array(place), column if isinstance(kind, ArrayType) else F.array(column))
    # The turn is the place among the records of the input as they are now. Counting them takes one task: a place
    # in the file would not do, it says nothing about records that were filtered or made on the way.
    turn = F.row_number().over(Window.orderBy(column)).cast("long")
    if node.seed is not None:
        # Who goes first changes from turn to turn, by the seed; the records of one input keep their order.
        place = F.abs(F.xxhash64(F.lit(node.seed), F.lit(position), turn)) % F.lit(1_000_003)
    return F.array(turn, place, F.lit(position).cast("long"))
