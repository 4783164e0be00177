"""What is done with the records of one batch: the nodes after the root of a query, as in a run over files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.streams import StreamQuery
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.metrics import Metrics
from clinker_spark.spark.build.passes import Find, Pass, RunContext, Write
from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.columns.made_letters import made_letter
from clinker_spark.spark.operators.output import prepare_output, records_of
from clinker_spark.spark.rejects.letters import letters
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.streaming.watermark import with_watermark, without_beats

FILES = ("csv", "json", "xml", "fixed_width", "parquet")
"""Outputs whose records are given as lines, or as Parquet columns."""
_PATIENCE = 2.0
"""So many seconds after its job the counts of an output are there, hardly ever later."""
Open = Callable[[ReadRequest], Scan]


@dataclass(frozen=True)
class Staged:
    """A batch that waits for its last step at an output: until then nobody sees anything of it."""

    publish: Callable[[], None]
    """The last step, which is done wholly or not at all."""
    discard: Callable[[], None] = lambda: None
    """The batch failed at another output."""
    computed: bool = True
    """Were its records computed? Else the last step does that, and they may still fail."""


Stage = Callable[[OutputPlan, DataFrame], Staged | None]
"""Brings the records of a batch to an output; None, when they were published before a crash."""


@dataclass(frozen=True)
class Root:
    """The stream that a query runs, and what comes after it."""

    context: RunContext
    query: StreamQuery
    stream: Stream
    strict: bool
    """Does the first record that fails end the stream?"""

    @property
    def fails_later(self) -> bool:
        """May records fail after the root?"""
        fallible, plan = self.context.plan.facts.fallible, self.context.plan
        before = {node.name for node in plan.upstream(self.query.name)}
        before |= set() if self.query.root.stateful else {self.query.name}  # totals are finished batch by batch
        after = {node.name for output in self.query.outputs for node in (output, *plan.upstream(output.name))}
        return bool((after - before) & set(fallible))

    def write(self, batch: DataFrame, stage: Stage) -> bool:
        """All outputs: none of them shows the batch before all have it. May records have failed? Also when nobody
        counted them: because an output had the batch already, from before a crash, or because the counts are late."""
        builder = self._over(batch, Pass(Write(strict=self.strict, audited=False)))
        metrics = builder.metrics
        ready: list[tuple[OutputPlan, DataFrame, Staged]] = []
        silent = 0
        try:
            for node in self.query.outputs:
                frame = _given(builder, node)
                staged = stage(node, frame)
                if staged is None:
                    silent += 1
                    continue
                ready.append((node, frame, staged))
                if staged.computed:
                    _hear(metrics, node)
            # One that computes what it publishes does so before the others; of several, the records are tried first.
            ready.sort(key=lambda each: each[2].computed)
            if self.strict and self.fails_later:
                for _, frame, staged in ready[1:]:
                    if not staged.computed:
                        _compute(frame)
            while ready:
                node, _, staged = ready[0]
                staged.publish()
                del ready[0]
                if not staged.computed:
                    _hear(metrics, node)
        finally:
            for _, _, staged in ready:
                staged.discard()
        if silent == len(self.query.outputs):
            # All outputs had the batch already, from before a crash. What Spark has to learn from it (the state of
            # joins, the newest times, how many records failed) comes only from reading it.
            _compute(batch)
        return bool(silent or metrics.failed()) or not all(metrics.told(name) for name in metrics.counts)

    def find(self, batch: DataFrame) -> DataFrame | None:
        """The records that fail after a root that makes its records of others."""
        if not self.query.root.totals:
            batch = batch.withColumns(made_letter(self.query.root.schema))
        builder = self._over(batch, Pass(Find()))
        for node in self.query.outputs:
            _given(builder, node)
        return letters(builder)

    def _over(self, batch: DataFrame, asked: Pass) -> Builder:
        """A pass over one batch."""
        builder, root = Builder(self.context, asked), self.query.root
        if root.totals:
            for ref in root.inputs:
                builder.memo.built[ref.node] = {ref.port: self.stream.over(batch)}
            builder.memo.totals[root.name] = batch
        else:
            builder.memo.built[root.name] = {None: self.stream.over(batch)}
        return builder


def _given(builder: Builder, node: OutputPlan) -> DataFrame:
    """The records of an output as it takes them."""
    return prepare_output(builder, node).frame if node.config.type in FILES else records_of(builder, node)


def _hear(metrics: Metrics, output: OutputPlan) -> None:
    """What the job of an output has counted."""
    metrics.told(output.name, _PATIENCE)
    metrics.heard(output)


def _compute(frame: DataFrame) -> None:
    frame.write.format("noop").mode("append").save()


def opened(query: StreamQuery, sources: Mapping[str, Open]) -> dict[str, Open]:
    """The sources of a query with their watermarks, where records are held for the sake of time."""

    def watched(name: str) -> Open:
        node = next(source for source in query.sources if source.name == name)
        mark = node.config.watermark

        def open_source(request: ReadRequest) -> Scan:
            scan = sources[name](request)
            if mark is None or not query.stateful:
                return replace(scan, frame=without_beats(scan.frame))
            delay = query.delay(node)
            return replace(scan, frame=with_watermark(scan.frame, mark.column, delay, name))

        return open_source

    return {name: watched(name) for name in sources}


def root_of(context: RunContext, query: StreamQuery, *, strict: bool) -> Root:
    """The stream of a query: all nodes up to its root."""
    builder = Builder(context, Pass(Write(strict=strict, audited=False)))
    builder.inputs(query.outputs[0])
    # Records of a batch have no order: outputs take them as they come.
    stream = replace(builder.memo.built[query.root.name][None], in_place=True)
    return Root(context, query, stream, strict)


def read_letters(context: RunContext, query: StreamQuery) -> DataFrame | None:
    """The records that fail before they are held for the first time, or on their way to the outputs where none are.
    The sources of `context` give one batch once more."""
    builder = Builder(context, Pass(Find()))
    if query.stateful:
        for node in query.first_stateful(context.plan):
            builder.inputs(node)
    else:
        for output in query.outputs:
            _given(builder, output)
    return letters(builder)
