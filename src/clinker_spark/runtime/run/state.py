"""What the stages of one run share: the plan, what was found out so far, and how to build a pass over the data."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.run.options import Listener, Options, contexts
from clinker_spark.runtime.run.progress import FINDING, Passes, Watch, records_read, writing
from clinker_spark.runtime.run.report import OutputReport, RunReport
from clinker_spark.runtime.run.variables import Values, with_values
from clinker_spark.spark.operators.build import Builder
from clinker_spark.spark.operators.source_order import Points
from clinker_spark.spark.remote_files import RemoteFiles
from clinker_spark.spark.scan.request import SourceFile
from clinker_spark.spark.session.jvm import while_it_lives
from clinker_spark.spark.session.sessions import SparkSession, is_connect, is_local, share_of_tasks


class RunState:
    """One run."""

    def __init__(self, plan: Plan, spark: SparkSession, options: Options, listener: Listener) -> None:
        self.plan = plan
        self.spark = spark
        self.options = options
        self.tell = listener
        self.base = options.base or plan.file.folder
        self.batch_id = options.batch_id or options.execution_id
        self.attempt = Attempt(
            options.execution_id,
            pipeline=plan.file.settings.name,
            force=options.force,
            wait=options.lock_wait,
            tell=listener,
            replayed=None if options.replay is None else [],
        )
        started = options.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.report = RunReport(plan.file.settings.name, options.execution_id, self.batch_id, started)
        self.files: dict[str, tuple[SourceFile, ...]] = {}
        self.handling = plan.file.error_handling
        self.values = Values()
        self.progress: str | None = None
        self.measured: dict[str, Any] = {}
        self.unsorted: dict[str, Points] = {}
        self.failed_at: Counter[str] = Counter()
        """By node: how many dead letters come from there."""
        self.again: str | None = None
        """What was done to outputs when groups are held back: lines were `cut`, or they were written once more, without
        the records that were `removed` or without whole `groups`."""
        self.written: dict[str, OutputReport] = {}
        """By output: what was written, in whatever order."""
        self.storage: RemoteFiles | None = None
        self._builders: list[Builder] = []
        self.small = False
        """Are the inputs so small that each job is one task?"""
        self.inputs_read = False
        """Were all inputs read, and compared with what they were when they were chosen?"""

    @property
    def holds_groups(self) -> bool:
        """Are groups with a failure held back? A run that stops at the first failure does not."""
        return self.plan.facts.correlated and self.handling.strategy == "continue"

    @cached_property
    def builder(self) -> Builder:
        """The first pass."""
        builder = self.new_builder(letters=False)
        builder.writes = True
        builder.sets_aside = builder.keeps_progress = is_local(self.spark)
        # Small inputs share all rows that have several readers; where groups are watched, jobs do not build the same.
        builder.keeps = () if self.small or self.holds_groups else self.plan.facts.materialized
        return builder

    def pass_without(self) -> Builder:
        """A first pass once more; whoever asks says what it leaves out."""
        builder = self.builder = self.new_builder(letters=False)
        builder.writes = True
        builder.keeps_progress = is_local(self.spark)
        return builder

    def new_builder(self, *, letters: bool, suspects: frozenset[str] | None = None) -> Builder:
        """A pass over the data; one with `letters` looks for failures, at `suspects` only if these are known."""
        known = {
            name: with_values(context, self.values.pipeline)
            for name, context in contexts(self.plan, self.options).items()
        }
        builder = Builder(self.spark, self.plan, known, self.files, letters, suspects)
        builder.file_values = self.values.files
        builder.progress = builder.meter = self.progress
        builder.measured = self.measured
        builder.unsorted = self.unsorted
        builder.small = self.small
        self._builders.append(builder)
        return builder

    def let_go(self) -> None:
        """Of everything that passes keep in memory."""
        with while_it_lives():
            for builder in self._builders:
                builder.let_go()

    @property
    def unsure(self) -> bool:
        """May records have failed that nobody counted? A query reads views, and Spark Connect does not bring back what
        was counted behind them: failures are looked for in any case then."""
        return is_connect(self.spark) and any(node.reads_views for node in self.plan.nodes)

    def failed(self) -> int:
        """How many records failed in the jobs that wrote outputs, apart from those that readers kept."""
        return sum(self.builder.counted(name).get("failed", 0) for name in self.builder.counts)

    def note_output(self, name: str, report: OutputReport) -> None:
        """An output is written. The report has outputs in the order of the plan, however they were written."""
        self.written[name] = report
        self.report.outputs[:] = [self.written[o.name] for o in self.plan.outputs if o.name in self.written]

    def forget_outputs(self) -> None:
        """All outputs are written again."""
        self.written.clear()
        self.report.outputs.clear()

    def source(self, name: str) -> SourcePlan:
        return next(node for node in self.plan.sources if node.name == name)

    def sources_of(self, output: str) -> list[str]:
        """The sources whose records come to an output."""
        return [node.name for node in self.plan.sources_of(output)]

    def source_records(self, name: str) -> int:
        """How many records a source has."""
        assert self.progress is not None
        [report] = [source for source in self.report.sources if source.name == name]
        if report.records is None:
            report.records = records_read(Path(self.progress), name)
        return self.records(name)

    def records(self, source: str | None) -> int:
        """How many records a source (or all of them) has: an extra pass that only pipelines with limits pay for."""
        total = 0
        for node, report in zip(self.plan.sources, self.report.sources, strict=True):
            if source in (None, node.name):
                if report.records is None:
                    report.records = self.builder.source_count(node)
                total += report.records
        return total

    @cached_property
    def _watch(self) -> Watch:
        """Tells how far the run is. All files are found when the first pass begins."""
        assert self.progress is not None
        sizes = {source.name: source.bytes for source in self.report.sources}
        expected = {
            writing(output.name): sum(sizes[name] for name in self.sources_of(output.name))
            for output in self.plan.outputs
        }
        return Watch(Path(self.progress), sizes, Passes(expected), lambda found: self.tell("progress", found))

    def passing(self, name: str, sources: Sequence[str] | None = None) -> AbstractContextManager[None]:
        """A pass over some sources, or all of them: the listener is told how far it is."""
        chosen = [source.name for source in self.plan.sources] if sources is None else list(sources)
        return self._watch.over(name, chosen, lambda: share_of_tasks(self.spark))

    def expects_failures(self) -> None:
        """Records failed: there will be a pass that finds out why."""
        self._watch.passes.expect(FINDING, sum(source.bytes for source in self.report.sources))

    def skips(self, name: str) -> None:
        """A pass that was expected is not needed."""
        self._watch.passes.skip(name)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note in the report how long something took."""
        began = time.monotonic()
        yield
        self.report.stage_seconds[name] = round(time.monotonic() - began, 3)
