"""Running a plan: pass 1 writes outputs, pass 2 (only if records failed) dead letters; then all is published."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.nodes import CombinePlan, Plan, TransformPlan
from clinker_spark.plan.remembered import Remembered, remember
from clinker_spark.plan.stages import CheckOrder, Find, Letters, LogRecords, Publish, Stage, Values, Write, stages
from clinker_spark.runtime.dead_letters import DeadLetters
from clinker_spark.runtime.discovery import discover
from clinker_spark.runtime.options import Listener, Options
from clinker_spark.runtime.outputs import Outputs
from clinker_spark.runtime.progress import records_read
from clinker_spark.runtime.remote_copies import remote_files, with_copies
from clinker_spark.runtime.report import RunReport, SourceReport
from clinker_spark.runtime.source_order import settle_order
from clinker_spark.runtime.spark_failures import explained
from clinker_spark.runtime.state import RunState
from clinker_spark.runtime.variables import find_values
from clinker_spark.spark.operators.combine_keys import key_sketches
from clinker_spark.spark.operators.record_log import record_lines
from clinker_spark.spark.session import SparkSession


def run(plan: Plan, spark: SparkSession, options: Options | None = None, listener: Listener | None = None) -> RunReport:
    """Run a pipeline. Raises `ClinkerError`; nothing is published then."""
    return _Run(RunState(plan, spark, options or Options(), listener or (lambda event, details: None))).run()


class _Run:
    """The stages, one after another."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.outputs = Outputs(state)
        self.letters = DeadLetters(state, self.outputs)

    def run(self) -> RunReport:
        began = time.monotonic()
        try:
            with explained(self.state.plan), tempfile.TemporaryDirectory(prefix="clinker-progress-") as folder:
                self.state.progress = folder
                self._log("before_transform")
                self._warn_of_letters()
                for stage in stages(self.state.plan):
                    self._stage(stage)
                self._log("after_transform")
                self._log("on_error")
                self._warn()
                for source in self.state.report.sources:
                    source.records = source.records or records_read(Path(folder), source.name)
                self._remember()
        finally:
            self.state.attempt.clean()
            self.state.report.seconds = time.monotonic() - began
        return self.state.report

    def _stage(self, stage: Stage) -> None:
        match stage:
            case Find():
                self._find(stage.source)
            case CheckOrder():
                with self.state.timed(f"order of {stage.source}"):
                    self.state.plan, found = settle_order(self.state.new_builder(letters=False), stage.source)
                    if found is not None:
                        self.state.unsorted[stage.source] = found.points
                        self.state.report.warnings.append(found.warning)
            case Values():
                with self.state.timed(stage.transform):
                    node = self.state.plan[stage.transform]
                    assert isinstance(node, TransformPlan)
                    find_values(self.state.new_builder(letters=False), node, self.state.values)
            case Write():
                self.outputs.write(stage.output)
            case LogRecords():
                with self.state.timed(f"log of {stage.transform}"):
                    self._log_records(stage.transform)
            case Letters():
                self.letters.settle()
            case Publish():
                with self.state.timed("publish"):
                    self.state.tell("publishing", {})
                    self.letters.remove_old()
                    self.letters.note_replayed()
                    self.state.attempt.publish()

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
        """Validations that only warn, in numbers."""
        for node in self.state.plan.of_kind(TransformPlan):
            for i, check in enumerate(node.checks):
                count = self.state.builder.counted(f"{node.name}: {check.name}").get("warned", 0)
                if count:
                    message = f"{count} record(s) fail '{check.name}': {check.message}"
                    self.state.report.warnings.append(node.diagnostic("W017", message, "config", "validations", i))

    def _remember(self) -> None:
        """Keep what the next plan of this pipeline can use. Replays read only some of the records."""
        if self.state.options.files is None and self.state.plan.of_kind(CombinePlan):
            rows = {source.name: source.records for source in self.state.report.sources if source.records is not None}
            remember(self.state.plan.file.path, Remembered(rows, key_sketches(self.state.plan, self.state.builder)))

    def _log(self, when: str) -> None:
        for node in self.state.plan.of_kind(TransformPlan):
            failed = sum(letter.count for letter in self.state.report.letters if letter.stage == node.stage)
            for rule in node.log:
                if rule.when == when and (when != "on_error" or failed):
                    count = f" ({failed} records)" if when == "on_error" else ""
                    name = rule.name or node.name
                    self.state.tell("log", {"level": rule.level, "name": name, "message": rule.message + count})

    def _log_records(self, name: str) -> None:
        node = self.state.plan[name]
        assert isinstance(node, TransformPlan)
        for log in node.record_logs:
            lines = record_lines(self.state.new_builder(letters=False), node, log)
            event = {"level": log.rule.level, "name": log.rule.name or node.name, "message": log.rule.message}
            for fields in lines.shown:
                self.state.tell("log", {**event, "fields": fields})
            if lines.more:
                self.state.tell("log", {**event, "message": f"{log.rule.message}: and {lines.more:,} more records"})

    def _find(self, name: str) -> None:
        node = next(source for source in self.state.plan.sources if source.name == name)
        replayed = self.state.options.files
        if replayed is not None and node.name in replayed:
            found = replayed[node.name]
        else:
            result = discover(node, self.state.base, self.state.options.now, remote_files(self.state.spark))
            self.state.report.warnings += result.warnings
            assert self.state.progress is not None
            found = with_copies(self.state.spark, node, result.files, self.state.progress)
        self.state.files[node.name] = found
        self.state.report.sources.append(SourceReport(node.name, len(found), sum(f.size for f in found)))
        self.state.tell("files_found", {node.name: [f.name for f in found]})
