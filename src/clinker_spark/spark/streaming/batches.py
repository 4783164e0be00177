"""What is done with the records of one batch: the nodes after the root of a query, as in a run over files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.streams import StreamQuery
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import Pass, RunContext, Write
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.operators.output import prepare_output, records_of
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.streaming.watermark import with_watermark, without_beats

FILES = ("csv", "json", "xml", "fixed_width", "parquet")
"""Outputs whose records are given as lines, or as Parquet columns."""
Put = Callable[[OutputPlan, DataFrame], None]


@dataclass(frozen=True)
class Root:
    """The stream that a query runs, and what comes after it."""

    context: RunContext
    query: StreamQuery
    stream: Stream

    def over(self, batch: DataFrame, asked: Pass) -> Builder:
        """A pass over one batch."""
        builder = Builder(self.context, asked)
        builder.memo.built[self.query.root.name] = {None: self.stream.over(batch)}
        return builder

    def write(self, batch: DataFrame, put: Put) -> Builder:
        """All outputs, one after the other. What was counted, and whether records failed, the builder knows then."""
        shared = len(self.query.outputs) > 1
        if shared:
            batch = batch.persist()
        builder = self.over(batch, Pass(Write()))
        try:
            for node in self.query.outputs:
                frame = prepare_output(builder, node).frame if node.config.type in FILES else records_of(builder, node)
                put(node, frame)
        finally:
            if shared:
                batch.unpersist()
        return builder


def opened(
    query: StreamQuery, sources: Mapping[str, Callable[[ReadRequest], Scan]]
) -> dict[str, Callable[[ReadRequest], Scan]]:
    """The sources of a query with their watermarks, where records are held for the sake of time."""

    def watched(name: str) -> Callable[[ReadRequest], Scan]:
        node = next(source for source in query.sources if source.name == name)
        mark = node.config.watermark

        def open_source(request: ReadRequest) -> Scan:
            scan = sources[name](request)
            if mark is None or not query.stateful:
                return replace(scan, frame=without_beats(scan.frame))
            delay = query.lag + mark.delay if mark.delay is not None else query.lag
            return replace(scan, frame=with_watermark(scan.frame, mark.column, delay))

        return open_source

    return {name: watched(name) for name in sources}


def root_of(context: RunContext, query: StreamQuery) -> Root:
    """The stream of a query: all nodes up to its root."""
    builder = Builder(context, Pass(Write()))
    builder.inputs(query.outputs[0])
    # Records of a batch have no order: outputs take them as they come.
    return Root(context, query, replace(builder.memo.built[query.root.name][None], in_place=True))
