"""Running a pipeline as a stream: its queries, batch by batch, until they are drained or somebody stops them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery, queries
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.run.engine_failures import explained
from clinker_spark.runtime.run.options import Listener, Options, contexts
from clinker_spark.spark.build.passes import RunContext
from clinker_spark.spark.session.sessions import SparkSession
from clinker_spark.spark.streaming.batches import Root, opened, root_of
from clinker_spark.spark.streaming.query import RunningQuery
from clinker_spark.spark.streaming.state import stream_session
from clinker_spark.streaming.checkpoint import Checkpoint, checkpoint_folder
from clinker_spark.streaming.ends import SourceOptions, StreamSink, StreamSource, sink_of, source_of

if TYPE_CHECKING:
    from clinker_spark.spark.streaming.query import DataFrame

_POLL = 0.1
_PATIENCE = 30.0
"""So many seconds a batch may take to end when the stream is stopped."""


@dataclass
class StreamOptions:
    """What the command line adds to a plan."""

    once: bool = False
    """Stop when all is read that was there at the start."""
    flush: bool = False
    """Then close all windows: records of outer joins that still wait for others come out."""
    base: Path | None = None
    checkpoint: str | None = None


@dataclass
class StreamReport:
    """What a stream did."""

    batches: int = 0
    records: dict[str, int] = field(default_factory=dict)
    """By source: how many were read."""
    written: dict[str, int] = field(default_factory=dict)
    """By output."""
    letters: int = 0
    late: int = 0
    """Records that came behind the watermark, and were dropped."""
    progress: list[dict[str, Any]] = field(default_factory=list)
    interrupted: bool = False


def run_stream(plan: Plan, spark: SparkSession, options: StreamOptions, tell: Listener) -> StreamReport:
    """Run a pipeline as a stream. Raises `ClinkerError`; what was written is complete up to a batch then."""
    with explained(plan):
        return _Run(plan, spark, options, tell).run()


class _Run:
    def __init__(self, plan: Plan, spark: SparkSession, options: StreamOptions, tell: Listener) -> None:
        self.plan = plan
        self.options = options
        self.tell = tell
        self.base = options.base or plan.file.folder
        self.queries = queries(plan)
        settings = plan.file.stream
        self.checkpoint = Checkpoint(checkpoint_folder(plan, self.base, options.checkpoint))
        partitions = settings.partitions or os.cpu_count() or 1
        self.about = self.checkpoint.begin({"partitions": partitions})
        self.spark = stream_session(spark, self.about["partitions"], settings.restarts)
        self.report = StreamReport()
        self.sinks: dict[str, StreamSink] = {o.name: sink_of(o, self.base) for o in plan.outputs}
        for sink in self.sinks.values():
            sink.check(self.about["id"])

    def run(self) -> StreamReport:
        try:
            self._drive([self._start(query) for query in self.queries])
        finally:
            for sink in self.sinks.values():
                sink.close()
        return self.report

    def _start(self, query: StreamQuery) -> RunningQuery:
        tasks = os.cpu_count() or 1
        settings = self.plan.file.stream
        sources: dict[str, StreamSource] = {}
        for node in query.sources:
            folder = self.checkpoint.source(query, node.name)
            sources[node.name] = source_of(node, SourceOptions(folder, self.base, settings.max_files, tasks))
        own = {
            name: lambda request, source=source: source.open(self.spark, request) for name, source in sources.items()
        }
        given = Options(execution_id=self.about["id"], base=self.base)
        context = RunContext(
            spark=self.spark,
            plan=self.plan,
            contexts=contexts(self.plan, given),
            files={source.name: () for source in self.plan.sources},
            local=False,
            opened=opened(query, own),
        )
        root = root_of(context, query)
        every = settings.trigger.total_seconds()

        def each(batch: DataFrame, number: int) -> None:
            self._batch(root, batch, number)

        place = self.checkpoint.spark(query)
        return RunningQuery(root.stream.frame, query.name, place, each, once=self.options.once, every=every)

    def _batch(self, root: Root, batch: DataFrame, number: int) -> None:
        """The records of one batch to all outputs."""

        def put(node: Any, frame: DataFrame) -> None:
            self.sinks[node.name].write(frame, number, self.about["id"])

        builder = root.write(batch, put)
        failed = builder.metrics.failed()
        if failed:
            name, count = next(iter(failed.items()))
            message = f"{count} record(s) failed at '{name}' in batch {number}"
            raise DataError([self.plan[name.split(".")[0]].diagnostic("E408", message)])

    def _drive(self, running: list[RunningQuery]) -> None:
        """Until all queries are done, or one of them fails, or somebody interrupts."""
        try:
            while any(query.active for query in running):
                for query in running:
                    self._hear(query)
                if any(query.error() is not None for query in running):
                    break
                time.sleep(_POLL)
        except KeyboardInterrupt:
            self.report.interrupted = True
        finally:
            for query in running:
                query.stop(_PATIENCE)
        for query in running:
            self._hear(query)
            if (error := query.error()) is not None:
                raise error

    def _hear(self, query: RunningQuery) -> None:
        for told in query.progress():
            self.report.batches += 1
            self.report.progress.append(told)
            self.report.late += sum(op.get("numRowsDroppedByWatermark", 0) for op in told["stateOperators"])
            self.tell("batch", told)
