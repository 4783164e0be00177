"""Running a plan: pass 1 writes outputs, pass 2 (only if records failed) dead letters; then all is published."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.schema import layout as field_layout
from clinker_spark.cxl.system import Context
from clinker_spark.plan.nodes import CombinePlan, OutputPlan, Plan, PlanNode, SourcePlan, TransformPlan
from clinker_spark.plan.remembered import Remembered, remember
from clinker_spark.plan.stages import CheckOrder, Find, Letters, LogRecords, Publish, Stage, Values, Write, stages
from clinker_spark.runtime import assemble, thresholds
from clinker_spark.runtime.correlation import Groups, is_held_together, oversize_sources
from clinker_spark.runtime.discovery import discover
from clinker_spark.runtime.errors import DataError, IoError
from clinker_spark.runtime.parquet_files import SeveralParquet, one_parquet
from clinker_spark.runtime.paths import Names, Target, free_path, per_file_path, split_name, target
from clinker_spark.runtime.progress import Watch, records_read
from clinker_spark.runtime.publish import Attempt
from clinker_spark.runtime.remote_copies import remote_files, with_copies
from clinker_spark.runtime.replay import appendable, replay_path
from clinker_spark.runtime.report import LetterReport, OutputReport, RunReport, SourceReport
from clinker_spark.runtime.row_groups import RowGroups, can_settle_rows
from clinker_spark.runtime.saved_letters import count_saved
from clinker_spark.runtime.source_letters import SourceLetters, kept_letters
from clinker_spark.runtime.source_order import settle_order
from clinker_spark.runtime.spark_failures import explained
from clinker_spark.runtime.variables import Values as SharedValues
from clinker_spark.runtime.variables import find_values, with_defaults, with_values
from clinker_spark.spark.operators.build import Builder
from clinker_spark.spark.operators.combine import MISS
from clinker_spark.spark.operators.combine_keys import key_sketches
from clinker_spark.spark.operators.letters import (
    LetterCount,
    count_letters,
    first_letters,
    kept,
    layout,
    letter_lines,
    letters,
    of_sources,
    write_letters,
)
from clinker_spark.spark.operators.output import Prepared, prepare_output, write_parts
from clinker_spark.spark.operators.record_log import record_lines
from clinker_spark.spark.operators.source_order import Points
from clinker_spark.spark.session import SparkSession, is_local
from clinker_spark.spark.sources.request import SourceFile

Listener = Callable[[str, dict[str, Any]], None]
"""Told what happens: an event and its details."""


@dataclass
class Options:
    """What the command line adds to a plan."""

    execution_id: str = field(default_factory=lambda: str(uuid7()))
    batch_id: str = ""
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC).replace(tzinfo=None))
    base: Path | None = None
    """What relative paths start from; by default the folder of the pipeline."""
    force: bool = False
    files: dict[str, tuple[SourceFile, ...]] | None = None
    """Files to read instead of those the sources name (replays)."""
    replay: str | None = None
    """For replays: write outputs `beside` the old ones, or `append` to them."""


def run(plan: Plan, spark: SparkSession, options: Options | None = None, listener: Listener | None = None) -> RunReport:
    """Run a pipeline. Raises `ClinkerError`; nothing is published then."""
    return _Run(plan, spark, options or Options(), listener or (lambda event, details: None)).run()


def contexts(plan: Plan, options: Options) -> dict[str, Context]:
    """What the programs of each node read besides columns."""
    batch = options.batch_id or options.execution_id
    pipeline = {
        "name": plan.file.settings.name,
        "execution_id": options.execution_id,
        "batch_id": batch,
        "start_time": options.now,
    }
    source = {"batch": batch, "ingestion_timestamp": options.now}
    context = with_defaults(plan, Context(options.now, pipeline, source, vars=plan.vars))
    return {node.name: context for node in plan.nodes}


@dataclass(frozen=True)
class Unfinished:
    """An output whose records are written, in parts."""

    prepared: Prepared
    parts: Path
    folder: Path
    place: Target
    report: OutputReport


class _Run:
    def __init__(self, plan: Plan, spark: SparkSession, options: Options, listener: Listener) -> None:
        self.plan = plan
        self.spark = spark
        self.options = options
        self.tell = listener
        self.base = options.base or plan.file.folder
        self.batch_id = options.batch_id or options.execution_id
        self.attempt = Attempt(options.execution_id)
        started = options.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.report = RunReport(plan.file.settings.name, options.execution_id, self.batch_id, started)
        self.files: dict[str, tuple[SourceFile, ...]] = {}
        self.handling = plan.file.error_handling
        self.values = SharedValues()
        self.progress: str | None = None
        self.measured: dict[str, Any] = {}
        self.unsorted: dict[str, Points] = {}
        self.unfinished: dict[str, Unfinished] = {}
        """The outputs of which there are only parts."""
        self.again = False
        """Are the outputs written once more, without what was taken back?"""

    def run(self) -> RunReport:
        began = time.monotonic()
        try:
            with explained(self.plan), tempfile.TemporaryDirectory(prefix="clinker-progress-") as folder:
                self.progress = folder
                self._log("before_transform")
                for stage in stages(self.plan):
                    self._stage(stage)
                self._log("after_transform")
                self._log("on_error")
                self._warn()
                for source in self.report.sources:
                    source.records = source.records or records_read(Path(folder), source.name)
                self._remember()
        finally:
            self.attempt.clean()
            self.report.seconds = time.monotonic() - began
        return self.report

    def _stage(self, stage: Stage) -> None:
        match stage:
            case Find():
                self._find(stage.source)
            case CheckOrder():
                with self._timed(f"order of {stage.source}"):
                    self.plan, found = settle_order(self._builder(letters=False), stage.source)
                    if found is not None:
                        self.unsorted[stage.source] = found.points
                        self.report.warnings.append(found.warning)
            case Values():
                with self._timed(stage.transform):
                    node = self.plan[stage.transform]
                    assert isinstance(node, TransformPlan)
                    find_values(self._builder(letters=False), node, self.values)
            case Write():
                self._write(stage.output)
            case LogRecords():
                with self._timed(f"log of {stage.transform}"):
                    self._log_records(stage.transform)
            case Letters():
                if is_held_together(self):
                    self._hold_back()
                else:
                    self._letters()
            case Publish():
                with self._timed("publish"):
                    self.tell("publishing", {})
                    self._remove_old_letters()
                    self.attempt.publish()

    def _warn(self) -> None:
        """Validations that only warn, in numbers."""
        for node in self.plan.of_kind(TransformPlan):
            for i, check in enumerate(node.checks):
                count = self.builder.counted(f"{node.name}: {check.name}").get("warned", 0)
                if count:
                    message = f"{count} record(s) fail '{check.name}': {check.message}"
                    self.report.warnings.append(node.diagnostic("W017", message, "config", "validations", i))

    def _remember(self) -> None:
        """Keep what the next plan of this pipeline can use. Replays read only some of the records."""
        if self.options.files is None and self.plan.of_kind(CombinePlan):
            rows = {source.name: source.records for source in self.report.sources if source.records is not None}
            remember(self.plan.file.path, Remembered(rows, key_sketches(self.plan, self.builder)))

    def _log(self, when: str) -> None:
        for node in self.plan.of_kind(TransformPlan):
            failed = sum(letter.count for letter in self.report.letters if letter.stage == node.stage)
            for rule in node.log:
                if rule.when == when and (when != "on_error" or failed):
                    count = f" ({failed} records)" if when == "on_error" else ""
                    name = rule.name or node.name
                    self.tell("log", {"level": rule.level, "name": name, "message": rule.message + count})

    def _log_records(self, name: str) -> None:
        node = self.plan[name]
        assert isinstance(node, TransformPlan)
        for log in node.record_logs:
            lines = record_lines(self._builder(letters=False), node, log)
            event = {"level": log.rule.level, "name": log.rule.name or node.name, "message": log.rule.message}
            for fields in lines.shown:
                self.tell("log", {**event, "fields": fields})
            if lines.more:
                self.tell("log", {**event, "message": f"{log.rule.message}: and {lines.more:,} more records"})

    def _failed(self) -> int:
        return sum(self.builder.counted(name).get("failed", 0) for name in self.builder.counts)

    # ------------------------------------------------------------ before

    def _find(self, name: str) -> None:
        node = next(source for source in self.plan.sources if source.name == name)
        if self.options.files is not None:
            found = self.options.files.get(node.name, ())
        else:
            result = discover(node, self.base, self.options.now, remote_files(self.spark))
            self.report.warnings += result.warnings
            assert self.progress is not None
            found = with_copies(self.spark, node, result.files, self.progress)
        self.files[node.name] = found
        self.report.sources.append(SourceReport(node.name, len(found), sum(f.size for f in found)))
        self.tell("files_found", {node.name: [f.name for f in found]})

    @cached_property
    def builder(self) -> Builder:
        """The first pass."""
        builder = self._builder(letters=False)
        builder.writes = True
        builder.sets_aside = is_local(self.spark)
        return builder

    @cached_property
    def targets(self) -> dict[str, Target]:
        digest = hashlib.sha256(self.plan.file.source.text.encode()).hexdigest()
        stamp = self.options.now.strftime("%Y-%m-%dT%H-%M-%SZ")
        names = Names(self.options.execution_id, self.batch_id, stamp, digest)
        files = {name: tuple(f.name for f in found) for name, found in self.files.items()}
        result = {}
        taken: dict[Path, str] = {}
        for node in self.plan.outputs:
            place = target(self.plan, node, self.base, names, files)
            if self.options.replay == "append":
                reason = appendable(self.plan, node)
                if reason is not None:
                    message = f"cannot add to '{node.config.path}': {reason}"
                    help_text = "replay without --append"
                    raise IoError([node.diagnostic("E020", message, "config", "path", help=help_text)])
            elif self.options.replay is not None:
                beside = None if place.template is None else str(replay_path(Path(place.template)))
                place = Target(replay_path(place.path), place.folder, beside)
            if place.template is None and node.config.split is None and self.options.replay != "append":
                numbered = None if place.numbered is None else _path_of(place.numbered)
                place = Target(free_path(node, place.path, self.options.force, numbered), place.folder)
            other = taken.setdefault(place.path.absolute(), node.name)
            if other != node.name:
                message = f"'{node.name}' and '{other}' write the same file"
                raise IoError(
                    [node.diagnostic("E322", message, "config", "path", help="give each output its own path")]
                )
            result[node.name] = place
        return result

    def _builder(self, *, letters: bool, suspects: frozenset[str] | None = None) -> Builder:
        known = {
            name: with_values(context, self.values.pipeline)
            for name, context in contexts(self.plan, self.options).items()
        }
        builder = Builder(self.spark, self.plan, known, self.files, letters, suspects)
        builder.file_values = self.values.files
        builder.progress = self.progress
        builder.measured = self.measured
        builder.unsorted = self.unsorted
        return builder

    # ------------------------------------------------------------ outputs

    def _write(self, name: str) -> None:
        node = next(output for output in self.plan.outputs if output.name == name)
        place, builder = self.targets[name], self.builder
        if self._can_wait(node):
            return
        with self._timed(node.name):
            self.tell("output_started", {"output": node.name})
            prepared = prepare_output(builder, node)
            folder = self._folder(node, place)
            parts = folder / "parts"
            with self._watched(node.name):
                write_parts(prepared, str(parts))
            report = OutputReport(node.output_name)
            counts = builder.counted(node.name, patience=120)
            if "rows" not in counts:  # without them nobody knows whether records failed
                raise IoError([node.diagnostic("E402", "Spark did not say how many records it wrote")])
            report.records = counts["rows"]
            builder.job_done()
            thresholds.check_output_rows(self.plan, lambda name: builder.counted(f"{name}: pairs").get("pairs", 0))
            report.dropped = counts.get("dropped", 0)
            self.report.outputs.append(report)
            self.unfinished[node.name] = Unfinished(prepared, parts, folder, place, report)
            if self.again or not is_held_together(self):  # else lines may be cut out, or it is written again
                self._finish(node.name)

    def _can_wait(self, node: OutputPlan) -> bool:
        """Have records failed on the way to an output before this one? Then all outputs are written without their
        groups, and before that this one has nothing to tell but the records of sources that nobody read yet."""
        if self.again or not self.unfinished or not is_held_together(self):
            return False
        read = {source for name in self.unfinished for source in self._sources_of(name)}
        if not read.issuperset(self._sources_of(node.name)):
            return False
        kept_bad = self._kept_letters()
        return self._failed() > 0 or (kept_bad is not None and bool(kept_bad.counts))

    def _sources_of(self, output: str) -> list[str]:
        return [node.name for node in self.plan.upstream(output) if isinstance(node, SourcePlan)]

    def _finish(self, output: str) -> None:
        """Make the files of an output of its parts."""
        made = self.unfinished.pop(output)
        self._assemble(made.prepared, made.parts, made.folder, made.place, made.report)
        self.tell("output_written", {"output": output, "records": made.report.records, "bytes": made.report.bytes})

    def _watched(self, output: str) -> Watch:
        assert self.progress is not None
        return Watch(Path(self.progress), self._sources_of(output), lambda found: self.tell("progress", {"output": output, **found}))

    def _folder(self, node: OutputPlan, place: Target) -> Path:
        beside = place.path if place.template is None else self.base / place.template.split("{")[0] / "x"
        try:
            return self.attempt.folder(beside, node.name)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            help_text = f"check '{error.filename or beside.parent}'"
            message = f"cannot write '{node.config.path}': {reason}"
            raise IoError([node.diagnostic("E401", message, "config", "path", help=help_text)]) from None

    def _assemble(self, prepared: Prepared, parts: Path, folder: Path, place: Target, report: OutputReport) -> None:
        node, rendering = prepared.node, prepared.rendering
        found = assemble.part_files(parts)
        several = node.config.split is not None or place.template is not None
        if rendering is None and not several:
            made = self._parquet(node, found, folder, place, report)
        elif place.folder and rendering is not None:
            final = folder / "final"
            final.mkdir()
            made = assemble.part_folder(found, rendering, final, _suffix(node))
            self._rename(final, place.path, node, report)
        elif several or rendering is None:
            made = self._several(prepared, found, folder, place, report)
        else:
            before = place.path if self.options.replay == "append" and place.path.exists() else None
            made = [assemble.one_file(found, rendering, folder / "final", _record_bytes(node.declared), before)]
            self._rename(made[0].path, place.path, node, report)
        report.bytes = sum(m.size for m in made)
        if node.config.write_meta:
            self._meta(node, place.path, folder, report)

    def _rename(self, made: Path, place: Path, node: OutputPlan, report: OutputReport) -> None:
        self.attempt.rename(made, place)
        report.paths.append(str(place))

    def _parquet(
        self, node: OutputPlan, found: list[Path], folder: Path, place: Target, report: OutputReport
    ) -> list[assemble.Made]:
        if place.folder:
            final = folder / "final"
            final.mkdir()
            for i, part in enumerate(found):
                part.rename(final / f"part-{i:05}.parquet")
            self._rename(final, place.path, node, report)
            return [assemble.Made(p, p.stat().st_size) for p in final.iterdir()]
        made = one_parquet(found, folder / "final.parquet", node.config.options.compression)
        self._rename(made.path, place.path, node, report)
        return [made]

    def _several(
        self, prepared: Prepared, found: list[Path], folder: Path, place: Target, report: OutputReport
    ) -> list[assemble.Made]:
        node, rendering = prepared.node, prepared.rendering
        split = node.config.split
        writer: SeveralParquet | assemble.SeveralFiles
        if rendering is None:
            writer = SeveralParquet(split, node.config.options.compression, lambda n, key: folder / f"final-{n}")
        else:
            writer = assemble.SeveralFiles(rendering, split, prepared.keyed, lambda n, key: folder / f"final-{n}")
        made = writer.write(found)
        for number, item in enumerate(made, 1):

            def named(place: Target, number: int = number, item: assemble.Made = item) -> Path:
                if place.template is not None:
                    return per_file_path(self.base, place.template, self._file_name(item.key))
                assert split is not None
                return split_name(place.path, split.naming, number)

            path = named(place)
            numbered = None if place.numbered is None else _path_of(place.numbered, named)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._rename(item.path, free_path(node, path, self.options.force, numbered), node, report)
        if writer.oversize and split is not None and split.oversize_group != "allow":
            shown = ", ".join(repr(key) for key in writer.oversize[:3])
            message = f"{len(writer.oversize)} group(s) do not fit one file: {shown}"
            code = "E408" if split.oversize_group == "error" else "W408"
            finding = node.diagnostic(code, message, "config", "split", help="allow larger files, or another group_key")
            if code == "E408":
                raise DataError([finding])
            self.report.warnings.append(finding)
        return made

    def _file_name(self, key: str | None) -> str:
        if key is None:
            return "none"
        number = int(key)
        return self.files[self.plan.sources[number >> 32].name][number & 0xFFFFFFFF].name

    def _meta(self, node: OutputPlan, place: Path, folder: Path, report: OutputReport) -> None:
        data = {
            "output": node.output_name,
            "pipeline": self.report.pipeline,
            "execution_id": self.report.execution_id,
            "batch_id": self.batch_id,
            "written_at": self.report.started,
            "records": report.records,
            "bytes": report.bytes,
            "columns": [name for name, _ in node.columns],
            "sources": {name: [f.name for f in found] for name, found in self.files.items()},
        }
        made = folder / "meta.json"
        made.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        self.attempt.rename(made, place.with_name(place.name + ".meta.json"))

    # ------------------------------------------------------------ dead letters

    def _letters(self) -> None:
        found = self._kept_letters()
        failed = self._failed()
        if found is not None and not found.counts and not failed:
            return
        with self._timed("dead letters"):
            self.tell("dead_letters_started", {})
            if found is not None and not failed:
                self._note(list(found.counts))
                self._check_letters(list(found.counts), found.first)
                self._write_letters(found, list(found.counts))
                return
            builder = self._builder(letters=True, suspects=self._suspects(found))
            for node in self.plan.outputs:
                prepare_output(builder, node)
            frame = letters(builder)
            assert frame is not None
            with kept(frame) as stored:
                self._deliver(stored, count_letters(stored))

    def _kept_letters(self) -> SourceLetters | None:
        """The bad records that readers kept; None when it is not known whether there are any."""
        assert self.progress is not None
        found = kept_letters(self.plan, self.builder.scans, Path(self.progress))
        if found is not None:
            for report in self.report.sources:
                report.records = found.records.get(report.name, report.records)
        return found

    def _deliver(self, stored: Any, counts: list[LetterCount]) -> None:
        """Dead letters: compared with the limits, and written."""
        self._note(counts)
        misses = [c.stage for c in counts if c.category == MISS]
        thresholds.check_combines(self.plan, stored, self.files, misses)
        self._check_letters(counts, lambda: first_letters(stored, 1)[0])
        if counts:
            self._write_letters(stored, counts)

    def _hold_back(self) -> None:
        """Groups with a failure are held back, and totals are made without what failed."""
        kept_bad = self._kept_letters()
        for report in self.report.sources:
            report.records = self.source_records(report.name)
        oversize = oversize_sources(self)
        if not self._failed() and not oversize and kept_bad is not None and not kept_bad.counts:
            counts = {node.name: self.source_records(node.name) for node in self.plan.sources}
            self.report.rollback_cursors = {name: count for name, count in counts.items() if count}
            for name in list(self.unfinished):
                self._finish(name)
            return
        with self._timed("dead letters"):
            self.tell("dead_letters_started", {})
            if not oversize and can_settle_rows(self, kept_bad):
                groups: RowGroups | Groups = RowGroups(self)
            else:
                groups = Groups(self)
            stored = groups.settle(oversize, self._write_again)
            self._deliver(stored.frame, count_saved(stored))
            self.report.rollback_cursors = groups.cursors(stored)
            self.report.retraction = groups.counters

    def _cut_lines(self, node: OutputPlan, lines: Any) -> bool:
        """Finish an output without some of its lines, which are counted from 0; False when that cannot be done."""
        made = self.unfinished[node.name]
        assert made.report.records is not None
        if not assemble.cut_lines(assemble.part_files(made.parts), lines, made.report.records):
            return False
        made.report.records -= len(lines)
        self._finish(node.name)
        return True

    def _write_again(self, prepare: Callable[[Builder], None]) -> int:
        """All outputs once more; gives the number of records that failed."""
        self.again = True
        self.attempt.renames.clear()
        self.report.outputs.clear()
        self.__dict__["builder"] = self._builder(letters=False)
        self.builder.writes = True
        prepare(self.builder)
        for node in self.plan.outputs:
            shutil.rmtree(self._folder(node, self.targets[node.name]))
            self._write(node.name)
        return self._failed()

    def source_records(self, name: str) -> int:
        """How many records a source has."""
        assert self.progress is not None
        [report] = [source for source in self.report.sources if source.name == name]
        if report.records is None:
            report.records = records_read(Path(self.progress), name)
        return self._records(name)

    def _suspects(self, found: SourceLetters | None) -> frozenset[str] | None:
        """The nodes at which a second pass finds failures; None when nobody knows."""
        if found is None:
            return None
        names = {name for name in self.builder.counts if self.builder.counted(name).get("failed")}
        for count in found.counts:
            assert count.source is not None
            node: PlanNode = self.plan.sources[count.source]
            while node.name not in self.builder.settled and not isinstance(node, OutputPlan):
                readers = self.plan.readers(node.name)
                if len(readers) != 1:
                    return None
                node = readers[0]
            names.add(node.name)
        return frozenset(names)

    def _check_letters(self, counts: list[LetterCount], first: Callable[[], Any]) -> None:
        if self.handling.strategy == "fail_fast" and counts:
            raise DataError([thresholds.first_failure(self.plan, first(), self.files, counts)])
        thresholds.check(self.plan, counts, self._records)

    def _note(self, counts: list[LetterCount]) -> None:
        for count in counts:
            source = "<merged>" if count.source is None else self.plan.sources[count.source].name
            stage = self.plan.nodes[count.stage].stage
            self.report.letters.append(LetterReport(source, stage, count.category, count.count))
            if count.source is not None:
                self.report.sources[count.source].dead_letters += count.count

    def _records(self, source: str | None) -> int:
        """How many records a source (or all of them) has: an extra pass that only pipelines with limits pay for."""
        total = 0
        for node, report in zip(self.plan.sources, self.report.sources, strict=True):
            if source in (None, node.name):
                if report.records is None:
                    report.records = self.builder.source_count(node)
                total += report.records
        return total

    def _write_letters(self, found: Any, counts: list[LetterCount]) -> None:
        dlq = self.handling.dlq
        own = {name: setting.path for name, setting in dlq.per_source.items() if setting.path is not None}
        places: list[tuple[str, list[int], list[LetterCount]]] = []
        positions = {node.name: node.index for node in self.plan.sources}
        for name, path in own.items():
            mine = [c for c in counts if c.source == positions[name]]
            if mine:
                places.append((path, [positions[name]], mine))
        apart = [positions[name] for name in own]
        others = [i for i in positions.values() if i not in apart]
        rest = [c for c in counts if c.source not in apart]
        if dlq.path is not None and rest:
            places.append((dlq.path, others, rest))
        for i, (path, sources, mine) in enumerate(places):
            place = self.base / path
            if self.options.replay is not None:
                place = replay_path(place)
            folder = self.attempt.folder(place, f"dead-letters-{i}")
            columns = layout(self.plan, mine)
            if isinstance(found, SourceLetters):
                made = found.write(folder / "final", sources, columns, self.files, self.options.now, dlq)
            else:
                # Letters of no source, those of groups, are in the common file.
                common = path == dlq.path and mine is rest
                chosen = of_sources(found, apart if common else sources, others=common)
                lines, rendering = letter_lines(self.plan, chosen, columns, self.files, self.options.now, dlq)
                write_letters(lines, str(folder / "parts"))
                made = assemble.one_file(assemble.part_files(folder / "parts"), rendering, folder / "final")
            self.attempt.rename(made.path, place)
            self.report.letter_paths.append(str(place))

    def _remove_old_letters(self) -> None:
        """Dead letters belong to one run: those of an earlier one would be taken for this one's."""
        dlq = self.handling.dlq
        if self.handling.strategy != "continue" or self.options.replay is not None:
            return
        for path in (dlq.path, *(own.path for own in dlq.per_source.values())):
            if path is not None and str(self.base / path) not in self.report.letter_paths:
                self.attempt.remove(self.base / path)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.report.stage_seconds[name] = round(time.monotonic() - began, 3)


def _path_of(numbered: Callable[[int], Target], named: Callable[[Target], Path] | None = None) -> Callable[[int], Path]:
    """The path of the place with a number."""
    return lambda number: numbered(number).path if named is None else named(numbered(number))


def _suffix(node: OutputPlan) -> str:
    return {"csv": ".csv", "json": ".json", "xml": ".xml", "fixed_width": ".txt"}.get(node.config.type, "")


def _record_bytes(columns: tuple[Column, ...] | None) -> int | None:
    return max((end for _, end in field_layout(columns)), default=None) if columns else None


def uuid7() -> uuid.UUID:
    """An identifier that sorts by the time it was made."""
    stamp = int(time.time() * 1000)
    random = uuid.uuid4().int
    value = (stamp << 80) | (7 << 76) | ((random >> 66 & 0xFFF) << 64) | (2 << 62) | (random & (2**62 - 1))
    return uuid.UUID(int=value)
