"""What the stages of one run share: the plan, what was found out so far, and how to build a pass over the data."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from clinker_spark.config.model.documents.pipeline import ErrorHandling
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.fast_paths import taken
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.arbitrate.session import arbitrator_of
from clinker_spark.runtime.commit.attempt import Attempt
from clinker_spark.runtime.commit.staging import Provenance
from clinker_spark.runtime.discover.new_files import Earlier
from clinker_spark.runtime.run.options import Listener, Options, contexts
from clinker_spark.runtime.run.progress import FINDING, Passes, Watch, records_read, writing
from clinker_spark.runtime.run.report import OutputReport, RunIdentity, RunReport
from clinker_spark.runtime.run.variables import Values, with_values
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import FileFacts, Pass, Points, RunContext, Write
from clinker_spark.spark.remote_files import RemoteFiles
from clinker_spark.spark.scan.request import SourceFile
from clinker_spark.spark.session.jvm import while_it_lives
from clinker_spark.spark.session.sessions import SparkSession, is_connect, is_local, share_of_tasks


@dataclass(frozen=True)
class BadFile:
    """A file that is not read, and why."""

    file: SourceFile
    problem: Diagnostic


@dataclass
class Inputs:
    """What was found out about the inputs."""

    files: dict[str, tuple[SourceFile, ...]] = field(default_factory=dict)
    """By source."""
    storage: RemoteFiles | None = None
    """Where those lie that are on no disk of this machine."""
    unsorted: dict[str, Points] = field(default_factory=dict)
    """The sources whose files are not in their declared order."""
    small: bool = False
    """Are they so small that each job is one task?"""
    measured: dict[str, Any] = field(default_factory=dict)
    """What passes found out for the next ones."""
    bad: dict[str, list[BadFile]] = field(default_factory=dict)
    """By source: the files that could not be read, and were passed over (`on_bad_file: skip`)."""
    earlier: Earlier = field(default_factory=Earlier)
    """What earlier runs read, where only new files are."""
    values: Values = field(default_factory=Values)
    """Of variables, as far as they are found."""
    compared: bool = False
    """Were all of them read, and compared with what they were when they were chosen?"""


@dataclass
class Folders:
    """Where the workers of a run write what is not for anybody else."""

    progress: str | None = None
    """How far they are."""
    parts: Callable[[str], str] | None = None
    """The folder for the parts of an output, once it is known where outputs go."""


@dataclass
class Outcome:
    """What became of records."""

    written: dict[str, OutputReport] = field(default_factory=dict)
    """By output: what was written, in whatever order."""
    failed_at: Counter[str] = field(default_factory=Counter)
    """By node: how many dead letters come from there."""
    again: str | None = None
    """What was done to outputs when groups are withheld: lines were `cut`, or they were written once more, without
    the records that were `removed` or without whole `groups`."""


class RunState:
    """One run."""

    def __init__(self, plan: Plan, spark: SparkSession, options: Options, listener: Listener) -> None:
        self.plan = plan
        self.spark = spark
        self.options = options
        self.tell = listener
        self.attempt = Attempt(
            options.execution_id,
            pipeline=plan.file.settings.name,
            force=options.force,
            wait=options.lock_wait,
            tell=listener,
            provenance=Provenance(replayed=None if options.replay is None else []),
        )
        started = options.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.report = RunReport(RunIdentity(plan.file.settings.name, options.execution_id, self.batch_id, started))
        self.inputs = Inputs()
        self.folders = Folders()
        self.outcome = Outcome()
        self.arbitrator = arbitrator_of(plan, spark, options.execution_id)
        self._builders: list[Builder] = []

    @property
    def base(self) -> Path:
        """What relative paths start from."""
        return self.options.base or self.plan.file.folder

    @property
    def batch_id(self) -> str:
        return self.options.batch_id or self.options.execution_id

    @property
    def handling(self) -> ErrorHandling:
        return self.plan.file.error_handling

    @property
    def files(self) -> dict[str, tuple[SourceFile, ...]]:
        return self.inputs.files

    @property
    def holds_groups(self) -> bool:
        """Are groups with a failure withheld? A run that stops at the first failure does not."""
        return self.plan.facts.correlation.correlated and self.handling.strategy == "continue"

    @cached_property
    def builder(self) -> Builder:
        """The last pass that wrote outputs."""
        # Small inputs share all rows that have several readers; where groups are watched, jobs do not build the same.
        kept = () if self.inputs.small or self.holds_groups else self.plan.facts.order.materialized
        aside = is_local(self.spark) and taken("readers_letters")
        return self.new_builder(Pass(Write(sets_aside=aside, materialized=kept)))

    def context(self) -> RunContext:
        """What passes that begin now have in common."""
        return with_values(
            RunContext(
                spark=self.spark,
                plan=self.plan,
                contexts=contexts(self.plan, self.options),
                files=self.files,
                found=FileFacts(unsorted=self.inputs.unsorted),
                small=self.inputs.small,
                folder=self.folders.progress,
                parts=self.folders.parts if taken("worker_parts") else None,
                local=is_local(self.spark),
                measured=self.inputs.measured,
            ),
            self.inputs.values,
        )

    def new_builder(self, asked: Pass | None = None, plan: Plan | None = None) -> Builder:
        """A pass over the data, by the plan of the run or one that was made for it."""
        context = self.context()
        builder = Builder(context if plan is None else replace(context, plan=plan), asked or Pass())
        self._builders.append(builder)
        return builder

    def write_again(self, asked: Pass) -> Builder:
        """A pass that writes all outputs once more."""
        self.builder = self.new_builder(asked)
        return self.builder

    def let_go(self) -> None:
        """Of everything that passes keep in memory."""
        with while_it_lives():
            for builder in self._builders:
                builder.memo.let_go()

    @property
    def unsure(self) -> bool:
        """May records have failed that nobody counted? A query reads views, and Spark Connect does not bring back what
        was counted behind them: failures are looked for in any case then."""
        return is_connect(self.spark) and any(node.reads_views for node in self.plan.nodes)

    def failed(self) -> int:
        """How many records failed in the jobs that wrote outputs, apart from those that readers kept."""
        return sum(self.builder.metrics.failed().values())

    def note_output(self, name: str, report: OutputReport) -> None:
        """An output is written. The report has outputs in the order of the plan, however they were written."""
        self.outcome.written[name] = report
        self.report.outputs[:] = [
            self.outcome.written[o.name] for o in self.plan.outputs if o.name in self.outcome.written
        ]

    def forget_outputs(self) -> None:
        """All outputs are written again."""
        self.outcome.written.clear()
        self.report.outputs.clear()

    @property
    def progress(self) -> Path:
        """The folder in which workers say how far they are. It is there while a run reads."""
        assert self.folders.progress is not None
        return Path(self.folders.progress)

    def source(self, name: str) -> SourcePlan:
        return next(node for node in self.plan.sources if node.name == name)

    def sources_of(self, output: str) -> list[str]:
        """The sources whose records come to an output."""
        return [node.name for node in self.plan.sources_of(output)]

    def source_records(self, name: str) -> int:
        """How many records a source has."""
        [report] = [source for source in self.report.sources if source.name == name]
        if report.records is None:
            report.records = records_read(self.progress, name)
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
        sizes = {source.name: source.bytes for source in self.report.sources}
        expected = {
            writing(output.name): sum(sizes[name] for name in self.sources_of(output.name))
            for output in self.plan.outputs
        }
        return Watch(self.progress, sizes, Passes(expected), lambda found: self.tell("progress", found))

    @contextmanager
    def passing(
        self, name: str, sources: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> Iterator[None]:
        """A pass over some sources, or all of them, for some outputs, or all: the listener is told how far it is."""
        chosen = [source.name for source in self.plan.sources] if sources is None else list(sources)
        with (
            nullcontext() if self.arbitrator is None else self.arbitrator.job(self._nodes_of(chosen, outputs)),
            self._watch.over(name, chosen, lambda: share_of_tasks(self.spark)),
        ):
            yield

    def _nodes_of(self, sources: Sequence[str], outputs: Sequence[str] | None) -> list[str]:
        """The nodes of a pass."""
        wanted = [output.name for output in self.plan.outputs] if outputs is None else outputs
        found = {node.name for output in wanted for node in self.plan.upstream(output)} | {*wanted, *sources}
        read = {source.name for source in self.plan.sources} - set(sources)
        return [node.name for node in self.plan.nodes if node.name in found - read]

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
        self.report.cost.stage_seconds[name] = round(time.monotonic() - began, 3)
