"""Outputs: parts that Spark writes into the attempt, and the files that are made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from clinker_spark.core.fast_paths import taken
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.paths.outputs import (
    Target,
    output_folders,
)
from clinker_spark.runtime.paths.places import targets
from clinker_spark.runtime.paths.reservations import reserve
from clinker_spark.runtime.reject import thresholds
from clinker_spark.runtime.reject.source_letters import kept_by_readers
from clinker_spark.runtime.run.accounting import Accounts
from clinker_spark.runtime.run.files import assemble
from clinker_spark.runtime.run.files.added import adds_to, check_fits
from clinker_spark.runtime.run.files.appended import Appended
from clinker_spark.runtime.run.files.output_files import FINAL, OutputFiles, Unfinished
from clinker_spark.runtime.run.progress import writing
from clinker_spark.runtime.run.report import OutputReport
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.build.passes import Pass, Retraction, Write
from clinker_spark.spark.fragments.frames import was_wrong
from clinker_spark.spark.operators.envelope import check_wired
from clinker_spark.spark.operators.output import Prepared, prepare_output
from clinker_spark.spark.operators.output_jobs import (
    separator,
    write_parts,
    write_parts_in_workers,
    write_parts_together,
)
from clinker_spark.spark.scan.row_filter import RowFilter


class Outputs:
    """The outputs of one run."""

    def __init__(self, state: RunState, accounts: Accounts) -> None:
        self.state = state
        self.accounts = accounts
        self.unfinished: dict[str, Unfinished] = {}
        """Those of which there are only parts."""
        self._prepared: dict[str, Prepared] = {}
        """Those that were looked at, and are written by a job of their own."""
        self._parts: dict[str, tuple[Prepared, Path]] = {}
        """Those that a job has written, and nobody has asked for yet."""
        self._appended: dict[str, Appended] = {}
        """Those whose file is begun while their parts are written."""
        self.files = OutputFiles(state)
        self.again = False
        """Are they written once more, without what was retracted?"""
        self.complete = True
        """Were all of them written the last time that they were written again?"""
        state.folders.parts = lambda name: str(self._parts_folder(state.plan.output(name)))

    @cached_property
    def targets(self) -> dict[str, Target]:
        """Where the files of each output go."""
        return targets(self.state.plan, self.state.options, self.state.base, self.state.files)

    def recover(self) -> None:
        """Finish what an earlier run left in the folders of the outputs, before files are looked for."""
        self.state.attempt.recover(output_folders(self.state.plan, self.state.base))

    def claim(self) -> None:
        """Ask for everything that this run writes, before the first job."""
        reserve(self.state, self.targets)

    def write(self, name: str) -> None:
        """Run the job of an output; its files are made at once, unless groups may have to be taken out of them."""
        node = next(output for output in self.state.plan.outputs if output.name == name)
        if node.name not in self._parts and self._can_wait(node):
            self.state.skips(writing(node.name))
            return
        with self.state.timed(node.name):
            self.state.tell("output_started", {"output": node.name})
            if node.name not in self._parts:
                self._run_job(node)
            prepared, parts = self._parts.pop(node.name)
            self._note(prepared, parts)

    def _prepare(self, node: OutputPlan) -> Prepared:
        if node.name in self._prepared:
            return self._prepared.pop(node.name)
        prepared = prepare_output(self.state.builder, node)
        if adds_to(node, self.state.options):
            check_fits(prepared, self.targets[node.name], self.state.options)
        return prepared

    def _run_job(self, node: OutputPlan) -> None:
        """Write the parts of an output, and those of all others that can be written by the same job. To build the pass
        is part of it: groups that workers make are made then."""
        again = ", without what is withheld" if self.again else ""
        named = self._beside(node)
        sources = dict.fromkeys(name for each in named for name in self.state.sources_of(each))
        with self.state.passing(writing(node.name) + again, list(sources), named):
            together, folders = self._write_parts(node)
        if was_wrong(self.state.builder, folders):  # nothing else is written yet
            self.state.write_again(self.state.builder.asked)
            with self.state.passing(writing(node.name) + again, list(sources), named):
                together, folders = self._write_parts(node)
        for each in together[1:]:
            self.state.skips(writing(each.node.name))
        self._parts |= {each.node.name: (each, Path(place)) for each, place in zip(together, folders, strict=True)}

    def _beside(self, node: OutputPlan) -> list[str]:
        """The outputs that the job of an output may write."""
        facts = self.state.plan.facts
        if node.name in facts.flow.fragments:
            return list(facts.flow.fragments[node.name].outputs)
        return [node.name, *(facts.resources.alike[node.name] if self.state.inputs.small else ())]

    def _write_parts(self, node: OutputPlan) -> tuple[list[Prepared], list[str]]:
        """The outputs that a job has written, and the folders of their parts."""
        first = self._prepare(node)
        together = [first, *self._others(first)]
        for each in together:
            self.accounts.job_starts(each.node.name)
        parts = self._parts_folder(node)
        if first.parts is not None:
            self._appended = {name: each for output in together for name, each in self._appending(output)}
            try:
                return together, write_parts_in_workers(together)
            finally:
                for appended in self._appended.values():
                    appended.stop()
        if len(together) > 1:
            return together, write_parts_together(together, str(parts))
        write_parts(first, str(parts))
        return together, [str(parts)]

    def _others(self, first: Prepared) -> list[Prepared]:
        """The outputs that one job can write beside the first one."""
        name, mark = first.node.name, separator(first)
        if first.beside:
            return [self._prepare(self.state.plan.output(other)) for other in first.beside if other != name]
        if not self.state.inputs.small or mark is None or not taken("outputs_together"):
            return []
        others = []
        for other in self.state.plan.facts.resources.alike[name]:
            if other not in self._parts:
                made = self._prepare(self.state.plan.output(other))
                if separator(made) == mark:
                    others.append(made)
                else:
                    self._prepared[other] = made
        return others

    def _appending(self, prepared: Prepared) -> Iterator[tuple[str, Appended]]:
        """An output that is one new file, of which nothing may have to be taken out, begins while its parts come."""
        node, place, rendering = prepared.node, self.targets[prepared.node.name], prepared.rendering
        several = node.config.split is not None or place.template is not None or place.folder
        if several or self.state.holds_groups or adds_to(node, self.state.options) or not taken("growing_files"):
            return
        if prepared.parts is not None and rendering is not None and rendering.separator:
            folder = self._folder(node, place)
            yield node.name, Appended(Path(prepared.parts), rendering, folder / FINAL)

    def _note(self, prepared: Prepared, parts: Path) -> None:
        """What the job of an output says about it."""
        node, builder = prepared.node, self.state.builder
        place = self.targets[node.name]
        folder = self._folder(node, place)
        report = OutputReport(node.output_name)
        counts = builder.metrics.counted(node.name, patience=120)
        if "rows" not in counts:  # Spark saw while it ran that there are no records, and left the counting out
            builder.metrics.recount((node.name,))
            counts = builder.metrics.counted(node.name)
        if "rows" not in counts:  # without them nobody knows whether records failed
            raise IoError([node.diagnostic("E402", "Spark did not say how many records it wrote")])
        builder.metrics.heard(node)
        report.records = counts["rows"]
        found = assemble.part_files(parts) if prepared.rendering is None or prepared.parts is not None else []
        self.accounts.job_done(node.name, found, lines=prepared.parts is not None)
        if not self._parts:
            builder.job_done()
        plan = self.state.plan
        thresholds.check_output_rows(plan, lambda name: builder.metrics.counted(f"{name}.pairs").get("pairs", 0))
        check_wired(plan, node, builder.metrics, self.state.files, again=self.again)
        if self.state.failed():
            self.state.expects_failures()
        report.dropped = counts.get("dropped", 0)
        self.state.note_output(node.name, report)
        self._release()
        self.unfinished[node.name] = Unfinished(
            prepared, parts, folder, place, report, self._appended.pop(node.name, None)
        )
        if self.again or not self.state.holds_groups:  # else lines may be cut out, or it is written again
            self.finish(node.name)

    def _release(self) -> None:
        """Let go of what was kept for outputs that are all written."""
        plan, memo = self.state.plan, self.state.builder.memo
        for name in list(memo.stored):
            readers = [output.name for output in plan.outputs if plan[name] in plan.upstream(output.name)]
            if self.state.outcome.written.keys() >= set(readers):
                memo.release(name)

    def _can_wait(self, node: OutputPlan) -> bool:
        """Have records failed on the way to an output before this one? Then all outputs are written without their
        groups, and before that this one has nothing to tell but the records of sources that nobody read yet."""
        if self.again or not self.unfinished or not self.state.holds_groups:
            return False
        read = {source for name in self.unfinished for source in self.state.sources_of(name)}
        if not read.issuperset(self.state.sources_of(node.name)):
            return False
        kept_bad = kept_by_readers(self.state)
        return self.state.failed() > 0 or (kept_bad is not None and bool(kept_bad.kept))

    def finish(self, output: str) -> None:
        """Make the files of an output of its parts."""
        made = self.unfinished.pop(output)
        self.files.make(made)
        done = {"output": output, "records": made.report.records, "bytes": made.report.bytes}
        self.state.tell("output_written", done)

    def _parts_folder(self, node: OutputPlan) -> Path:
        return self._folder(node, self.targets[node.name]) / "parts"

    def _folder(self, node: OutputPlan, place: Target) -> Path:
        beside = place.path if place.template is None or place.root is None else place.root / "x"
        try:
            return self.state.attempt.folder(beside, node.name)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            help_text = f"check '{error.filename or beside.parent}'"
            message = f"cannot write '{node.config.path}': {reason}"
            raise IoError([node.diagnostic("E401", message, "config", "path", help=help_text)]) from None

    def cut_lines(self, node: OutputPlan, lines: Any) -> bool:
        """Finish an output without some of its lines, which are counted from 0; False when that cannot be done."""
        made = self.unfinished[node.name]
        assert made.report.records is not None
        if not assemble.cut_lines(assemble.part_files(made.parts), lines, made.report.records):
            return False
        made.report.records -= len(lines)
        self.finish(node.name)
        return True

    def write_again(self, retraction: Retraction, row_filters: Mapping[str, RowFilter], *, whole: bool = False) -> int:
        """All outputs once more, without what was retracted, and of what passes `row_filters`; gives the number of
        records that failed. When some did, those that are not written yet wait for the next time, unless all must be
        written, as the `whole`: what fails will fail again."""
        self.again = True
        self.state.attempt.forget()
        self.state.forget_outputs()
        materialized = Write(materialized=self.state.plan.facts.order.materialized)
        builder = self.state.write_again(Pass(materialized, row_filters=row_filters, retraction=retraction))
        self._parts.clear()
        self._prepared.clear()
        try:
            for node in self.state.plan.outputs:
                self.state.attempt.discard(self._folder(node, self.targets[node.name]))
            for name in self.state.plan.facts.resources.launch_order:
                self.write(name)
                if self.state.failed() and not whole:
                    break
            self.complete = len(self.state.report.outputs) == len(self.state.plan.outputs)
            return self.state.failed()
        finally:
            builder.memo.let_go()
