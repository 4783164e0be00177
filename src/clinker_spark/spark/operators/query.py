"""Query nodes: the lowered text over views of the input streams.

Records that fail in a clause that looks at them one by one are diverted before. Any other value that the query cannot
go on with ends the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.query.node import NodeInput, QueryPlan
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.made_letters import made_letter
from clinker_spark.spark.query.frames import scan_frame
from clinker_spark.spark.query.patterns import register_patterns
from clinker_spark.sql import tree as sql

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


def build_query(builder: Builder, node: QueryPlan) -> Stream:
    """The rows of the query, each a new record: it has no place in a file of its own."""
    streams = [_without_failed(builder, node, i, stream) for i, stream in enumerate(builder.inputs(node))]
    query = node.ordered if builder.plan.facts.columns.required[node.name].arrival else node.query
    tag = f"{id(builder)}_{builder.plan.nodes.index(node)}"
    made: set[str] = set()

    def view(source: sql.Source) -> str:
        scan = node.scans[source.number]
        # The two passes of a run read different streams, so each has views of its own.
        name = f"{scan.name(source.ordered)}_{tag}"
        if name not in made:
            content = scan.content
            frame = (
                _visible(streams[content.position].frame, source.ordered, node.arrays)
                if isinstance(content, NodeInput)
                else scan_frame(builder.spark, content, source.ordered)
            )
            frame.createOrReplaceTempView(name)
            made.add(name)
        return name

    register_patterns(builder.spark, node.functions)
    frame = builder.spark.sql(query.text(view))
    if builder.finds:
        frame = frame.withColumns(made_letter(node.schema))
    return builder.mark(node, Stream(frame, in_place=False, flow=builder.ledger.unknown(f"{node.name}.made")))


def _without_failed(builder: Builder, node: QueryPlan, position: int, stream: Stream) -> Stream:
    """An input without the records that fail in the query, which are diverted at this node."""
    errors = node.errors.get(position)
    if errors is None:
        return builder.absorb(node, stream, f"input {position + 1}")
    register_patterns(builder.spark, node.functions)
    frame = stream.frame
    for i, (alias, error) in enumerate(errors):
        found = F.expr(f"CAST({error} AS {ERROR_TYPE})")
        if i:  # the first query that a record fails in has the say
            found = F.coalesce(F.col(quote(ERROR_COLUMN)), found)
        frame = frame.alias(alias).withColumn(ERROR_COLUMN, found)
    return builder.divert(node, builder.mark(node, stream.over(frame)), f"input {position + 1}")


def _visible(frame: DataFrame, ordered: bool, arrays: bool) -> DataFrame:
    columns = [F.col(quote(n)) for n in frame.columns if not n.startswith("$")]
    if ordered:
        arrival = F.col(quote(ARRIVAL_COLUMN))
        alone = not isinstance(frame.schema[ARRIVAL_COLUMN].dataType, ArrayType)
        columns.append(F.array(arrival).alias(ARRIVAL_COLUMN) if arrays and alone else arrival)
    return frame.select(*columns)
