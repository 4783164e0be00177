"""Running a plan: pass 1 writes outputs, pass 2 (only if records failed) dead letters; then all is published."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.plan.bind.increments import incremental_outputs
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.run_statistics import RunStatistics, encoded, statistics_file
from clinker_spark.plan.stages import CheckOrder, Find, Letters, LogRecords, Publish, Stage, Values, Write
from clinker_spark.plan.streams import check_finite
from clinker_spark.runtime.arbitrate.session import watched
from clinker_spark.runtime.arbitrate.spill_settings import spill_warnings
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.discover.bad_files import without_bad
from clinker_spark.runtime.discover.envelopes import envelope_values
from clinker_spark.runtime.discover.input_changes import changes_explained, check_inputs
from clinker_spark.runtime.discover.new_files import check_meanwhile, earlier_runs, reading
from clinker_spark.runtime.discover.remote_copies import remote_files, with_copies
from clinker_spark.runtime.discover.source_order import settle_order
from clinker_spark.runtime.discover.sources import discover
from clinker_spark.runtime.measure.memory import MemorySampler
from clinker_spark.runtime.measure.spool import spooled
from clinker_spark.runtime.measure.used import Used, measured
from clinker_spark.runtime.paths.checks import check_paths
from clinker_spark.runtime.reject.dead_letters import DeadLetters
from clinker_spark.runtime.run.accounting import Accounts
from clinker_spark.runtime.run.engine_failures import explained
from clinker_spark.runtime.run.options import Listener, Options, spool_folder
from clinker_spark.runtime.run.outputs import Outputs
from clinker_spark.runtime.run.progress import progress_folder
from clinker_spark.runtime.run.report import RunReport, SourceReport
from clinker_spark.runtime.run.state import RunState
from clinker_spark.runtime.run.variables import find_values
from clinker_spark.runtime.staging.checks import check_staging
from clinker_spark.runtime.staging.inputs import StagedInputs
from clinker_spark.runtime.staging.settings import settings_of
from clinker_spark.spark.build.passes import Pass, Show
from clinker_spark.spark.columns.undeclared import names_of
from clinker_spark.spark.joins.sides import key_sketches
from clinker_spark.spark.operators.record_log import record_lines
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.scan.record_source import parallelism_of
from clinker_spark.spark.session import shuffles, small_inputs, unknown_sizes
from clinker_spark.spark.session.sessions import SparkSession, is_local, working_session

CANNOT_WIDEN = (
    "fixed-width files have no columns but the declared ones: on_unmapped: auto_widen does nothing here; "
    "write on_unmapped: drop to say so"
)

NO_PLACE = (
    "a fixed-width file has no place for undeclared columns: {} are not written; give them places in the schema, "
    "or write include_unmapped: false to say so"
)


def run(plan: Plan, spark: SparkSession, options: Options | None = None, listener: Listener | None = None) -> RunReport:
    """Run a pipeline. Raises `ClinkerError`; nothing is published then."""
    check_finite(plan)
    used, given = working_session(spark), options or Options()
    given.measure = given.measure or spool_folder(plan, given) is not None
    with spooled(plan, given) as watch:
        state = RunState(plan, used, given, listener or (lambda event, details: None))
        watch(state.report)
        if given.begun is not None:
            given.begun(state.report)
        return _Run(state).run()


class _Run:
    """The stages, one after another."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.accounts = Accounts(state)
        self.outputs = Outputs(state, self.accounts)
        self.letters = DeadLetters(state, self.outputs)
        self.staged: StagedInputs | None = None

    def run(self) -> RunReport:
        began = time.monotonic()
        try:
            with (
                changes_explained(self.state),
                explained(self.state.plan, self._is_published),
                progress_folder() as folder,
                contextlib.ExitStack() as meanwhile,
                self._measured(),
                watched(self.state.plan, self.state.arbitrator, folder),
            ):
                self.state.folders.progress = folder
                self._log("before_transform")
                self._warn_of_letters()
                self.outputs.recover()
                self.state.inputs.earlier = earlier_runs(self.state.plan, self.state.options, self.state.base)
                claimed = False
                for stage in self.state.plan.facts.stages:
                    if not claimed and not isinstance(stage, Find):
                        if self._nothing_new():
                            return self.state.report
                        self.outputs.claim()
                        check_meanwhile(self.state.plan, self.state.inputs.earlier)
                        claimed = True
                        self._stage_inputs()
                        self._suit_size(meanwhile)
                        self._read_envelopes()
                    self._stage(stage)
                self._log("after_transform")
                self._log("on_error")
                self._warn()
                self._remember()
        finally:
            self.state.let_go()
            if self.staged is not None:
                self.state.report.warnings += self.staged.release(success=self._is_published())
            self.state.attempt.clean()
            self.state.report.cost.seconds = time.monotonic() - began
        return self.state.report

    def _read_envelopes(self) -> None:
        """What files say about all of their records; those of a replay say it where they came from."""
        feed = self.state.options.feed
        if feed is not None and feed.plan is not None:
            self.state.inputs.values.files |= envelope_values(feed.plan, {**self.state.files, **feed.origins})
        elif feed is None:
            self.state.inputs.values.files |= envelope_values(self.state.plan, self.state.files)

    def _stage_inputs(self) -> None:
        """All files are known, and all outputs are ours: copy the inputs that clinker.toml wants copied."""
        settings = settings_of(self.state.plan)
        if settings is not None:
            found = self._own_files()
            self.staged = StagedInputs(settings, self.state.plan, self.state.options.execution_id, self.state.tell)
            with self.state.timed("staging"):
                self.state.inputs.files |= self.staged.stage(found)
            self.state.report.staging = self.staged.report(found)

    def _measured(self) -> contextlib.AbstractContextManager[Any]:
        """Memory is looked at when somebody wants to know, and when it must not grow beyond a limit."""
        arbitrator = self.state.arbitrator
        tell = None if arbitrator is None else arbitrator.look
        if not self.state.options.measure:
            return contextlib.nullcontext() if tell is None else MemorySampler(tell=tell)

        def take(used: Used) -> None:
            used.arbitration = None if arbitrator is None else arbitrator.done.as_dict()
            self.state.report.cost.used = used

        return measured(self.state.spark, self.state.plan.outputs[-1].name, take, tell)

    def _suit_size(self, meanwhile: contextlib.ExitStack) -> None:
        """All files are known: is it so little that it should be planned for one task, or more than fits in memory?"""
        files = [(node, file) for node in self.state.plan.sources for file in self.state.files[node.name]]
        size = sum(node.unpacked(file.origin, file.size) for node, file in files)
        local = is_local(self.state.spark)
        if local and small_inputs.is_small(self.state.spark, size):
            self.state.inputs.small = True
            self.state.report.cost.tasks = 1
            meanwhile.enter_context(small_inputs.settings(self.state.spark, size))
            return
        self.state.report.cost.tasks = parallelism_of(self.state.spark)
        meanwhile.enter_context(unknown_sizes.settings(self.state.spark, self.state.plan))
        if local:
            meanwhile.enter_context(shuffles.settings(self.state.spark, size))

    def _is_published(self) -> bool:
        return self.state.attempt.state == "done"

    def _stage(self, stage: Stage) -> None:
        match stage:
            case Find():
                self._find(stage.source)
            case CheckOrder():
                name = f"order of {stage.source}"
                with self.state.timed(name), self.state.passing(f"checking the {name}", [stage.source]):
                    self.state.plan, found = settle_order(self.state.new_builder(), stage.source)
                    if found is not None:
                        self.state.inputs.unsorted[stage.source] = found.points
                        self.state.report.warnings.append(found.warning)
            case Values():
                with self.state.timed(stage.transform), self.state.passing(f"values of {stage.transform}"):
                    asked = Pass(Show(values_of=stage.transform))
                    find_values(self.state.new_builder(asked), self.state.inputs.values)
            case Write():
                self.outputs.write(stage.output)
            case LogRecords():
                name = f"log of {stage.transform}"
                with self.state.timed(name), self.state.passing(name):
                    self._log_records(stage.transform)
            case Letters():
                self.accounts.before_letters()
                self.letters.find_and_write()
            case Publish():
                self._note_run()
                check_inputs(self.state)
                with self.state.timed("publish"):
                    self.state.tell("publishing", {})
                    self.accounts.check()
                    self.letters.remove_old()
                    self.letters.note_replayed()
                    self.state.attempt.publish()
                    self.state.report.warnings += self.state.attempt.warnings
                    self.state.report.removed += self.state.attempt.removed

    def _nothing_new(self) -> bool:
        """Have earlier runs read everything that leads to an output? Then all outputs stay as they are."""
        reports = {report.name: report for report in self.state.report.sources}
        idle = {s.name for s in self.state.plan.sources if s.only_new and not reports[s.name].files}
        idle -= self.state.inputs.bad.keys()
        news = [s for s in self.state.plan.sources if s.only_new and s.name not in idle]
        outputs = incremental_outputs(self.state.plan)
        nothing = bool(idle) and not news and len(outputs) == len(self.state.plan.outputs)
        if nothing and self.state.inputs.earlier.any:
            self.state.tell("nothing_new", {name: reports[name].earlier for name in sorted(idle)})
            return True
        return False

    def _note_run(self) -> None:
        """For the manifests: what was read, and what the run did."""
        report, given = self.state.report, self.state.attempt.provenance
        if self.state.options.replay is None:
            inputs = self.state.inputs
            bad = {name: [item.file.name for item in found] for name, found in inputs.bad.items()}
            given.reading = reading(self.state.plan, inputs.earlier, inputs.files, bad, report.execution_id)
            given.adds = inputs.earlier.any
        given.run = {
            "run": report.execution_id,
            "started": report.identity.started,
            "kind": self.state.options.kind if given.reading.files or self.state.options.replay else "all files",
            "files": sum(source.files for source in report.sources),
            "read": sum(source.records or 0 for source in report.sources),
            "written": {output.name: output.records for output in report.outputs},
            "dead_letters": report.dead_letters,
        }

    def _warn_of_letters(self) -> None:
        """Letters that a replay does not feed, in numbers."""
        feed = self.state.options.feed
        if feed is not None and feed.skipped:
            message = f"{feed.skipped} dead letter(s) were added by an earlier replay, and are not added again"
            self.state.report.warnings.append(Diagnostic("W454", message))
        if feed is not None and feed.left:
            message = f"{feed.left} dead letter(s) are not fed: their sources are read from their own files"
            help_text = "others are looked up in these sources: correct the files, and run the pipeline again"
            self.state.report.warnings.append(Diagnostic("W455", message, help=help_text))

    def _warn(self) -> None:
        """What outputs and undeclared columns do not make of one another; validations that only warn, in numbers."""
        widened = {name: scan.widened for name, scan in self.state.builder.scans.items()}
        for output in self.state.plan.outputs:
            before = functools.partial(names_of, self.state.plan, output.inputs[0].node, widened)
            self._tell_of_lost(output, before)
            self._warn_of_unknown(output, before)
        for node in self.state.plan.nodes:
            for i, check in enumerate(node.checks):
                count = self.state.builder.metrics.counted(f"{node.name}.check {i}").get("warned", 0)
                if count:
                    message = f"{count} record(s) fail '{check.name}': {check.message}"
                    self.state.report.warnings.append(node.diagnostic("W017", message, "config", "validations", i))

    def _tell_of_lost(self, output: OutputPlan, undeclared: Callable[[], Sequence[str]]) -> None:
        """Columns that files have and an output cannot write."""
        if output.config.type != "fixed_width" or not output.config.include_unmapped:
            return
        places = {name for column in output.declared or () for name in (column.name, column.source_name)}
        lost = [name for name in undeclared() if name not in places | set(output.config.exclude)]
        if lost:
            message = NO_PLACE.format(", ".join(lost))
            self.state.tell("log", {"level": "info", "name": output.name, "message": message})

    def _warn_of_unknown(self, output: OutputPlan, undeclared: Callable[[], Sequence[str]]) -> None:
        """Columns that an output names and no file has."""
        named = [("mapping", "is written empty", name) for name in output.undeclared]
        named += [("sort_order", "sorts nothing", name) for name in output.sorted_undeclared]
        known = undeclared() if named else ()
        for key, what, name in named:
            if name not in known:
                message = f"'{name}' {what}: no schema declares it, and no file has it"
                help_text = did_you_mean(name, known) or f"undeclared columns: {', '.join(known) or 'none'}"
                self.state.report.warnings.append(output.diagnostic("W365", message, "config", key, help=help_text))

    def _remember(self) -> None:
        """Keep what the next plan of this pipeline can use. Replays read only some of the records."""
        if self.state.options.files is None and any(n.uses_statistics for n in self.state.plan.nodes):
            rows = {source.name: source.records for source in self.state.report.sources if source.records is not None}
            found = RunStatistics(rows, key_sketches(self.state.plan, self.state.builder))
            # A cache that cannot be written is no reason to fail, and one that is lost with the power none to wait.
            with contextlib.suppress(OSError, RuntimeError):
                place = statistics_file(self.state.plan.file.path)
                place.parent.mkdir(parents=True, exist_ok=True)
                replace_file(place, encoded(found), durable=False)

    def _log(self, when: str) -> None:
        for node in self.state.plan.nodes:
            failed = sum(
                letter.count for letter in self.state.report.letters if letter.stage == node.stage_of(letter.category)
            )
            for rule in node.log:
                if rule.when == when and (when != "on_error" or failed):
                    count = f" ({failed} records)" if when == "on_error" else ""
                    name = rule.name or node.name
                    self.state.tell("log", {"level": rule.level, "name": name, "message": rule.message + count})

    def _log_records(self, name: str) -> None:
        node = self.state.plan[name]
        for log in node.record_logs:
            lines = record_lines(self.state.new_builder(), node, log)
            event = {"level": log.rule.level, "name": log.rule.name or node.name, "message": log.rule.message}
            for fields in lines.shown:
                self.state.tell("log", {**event, "fields": fields})
            if lines.more:
                self.state.tell("log", {**event, "message": f"{log.rule.message}: and {lines.more:,} more records"})

    def _find(self, name: str) -> None:
        node = next(source for source in self.state.plan.sources if source.name == name)
        replayed, earlier = self.state.options.files, 0
        if replayed is not None and node.name in replayed:
            found = replayed[node.name]
        else:
            self.state.inputs.storage = self.state.inputs.storage or remote_files(self.state.spark)
            left = self.state.inputs.earlier.left
            result = discover(node, self.state.base, self.state.options.now, self.state.inputs.storage, left)
            earlier = result.earlier
            self.state.report.warnings += result.warnings
            found = with_copies(self.state.spark, node, result.files, str(self.state.progress))
            found = without_bad(self.state, node, found)
            if node.cannot_widen:
                self.state.tell("log", {"level": "info", "name": node.name, "message": CANNOT_WIDEN})
        self.state.files[node.name] = found
        self.state.report.sources.append(SourceReport(node.name, len(found), sum(f.size for f in found)))
        self.state.report.sources[-1].paths += [f.path for f in found]
        self.state.report.sources[-1].earlier = earlier
        self.state.tell("files_found", {node.name: [f.name for f in found]})
        if len(self.state.files) == len(self.state.plan.sources):
            self.state.report.warnings += check_paths(self.state.plan, self.state.options, self.state.files)
            check_staging(self.state.plan, self._own_files(), self.state.base)
            self.state.report.warnings += spill_warnings(self.state.plan)

    def _own_files(self) -> dict[str, tuple[SourceFile, ...]]:
        """The files that sources name, without those that a replay brings."""
        brought = self.state.options.files or {}
        return {name: files for name, files in self.state.files.items() if name not in brought}
