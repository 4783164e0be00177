"""Dead letters: what readers kept, or a second pass for the failures; with correlation keys, whole groups."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from clinker_spark.runtime.commit.manifest import Round
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.paths.reservations import letter_key, letter_places
from clinker_spark.runtime.reject import thresholds
from clinker_spark.runtime.reject.file_letters import deliver_files, note_files
from clinker_spark.runtime.reject.letter_writer import write_letters
from clinker_spark.runtime.reject.saved_letters import Letters, Saved, save
from clinker_spark.runtime.reject.source_letters import SourceLetters, diverting_nodes, kept_by_readers
from clinker_spark.runtime.reject.unreadable_keys import check_keys
from clinker_spark.runtime.rollback.groups import Groups
from clinker_spark.runtime.rollback.large_groups import has_large_groups
from clinker_spark.runtime.rollback.row_groups import RowGroups, can_roll_back_rows
from clinker_spark.runtime.rollback.small_groups import SmallGroups, TooMuch, are_small
from clinker_spark.runtime.run.outputs import Outputs
from clinker_spark.runtime.run.progress import FINDING
from clinker_spark.runtime.run.report import LetterReport
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.build.passes import Find, Pass
from clinker_spark.spark.operators.combine import MISS
from clinker_spark.spark.operators.output import prepare_output
from clinker_spark.spark.rejects.letters import LetterCount, letters


class DeadLetters:
    """The dead letters of one run."""

    def __init__(self, state: RunState, outputs: Outputs) -> None:
        self.state = state
        self.outputs = outputs
        self.delivered: Letters | None = None

    def find_and_write(self) -> None:
        """Find and write them, after the outputs were written."""
        if self.state.holds_groups:
            self._withhold()
        else:
            self._collect()

    def _collect(self) -> None:
        found = kept_by_readers(self.state)
        failed = self.state.failed()
        if found is not None and not found.kept and not failed and not self.state.unsure:
            deliver_files(self.state)
            return
        with self.state.timed("dead letters"):
            self.state.tell("dead_letters_started", {})
            if found is not None and not failed and not self.state.unsure:
                self._deliver(found)
                return
            frame = self._found(self._suspects(found))
            if frame is None:  # nothing can fail, and only for want of counts it was looked for
                deliver_files(self.state)
                return
            with self.state.passing(FINDING):
                place = self.outputs.targets[self.state.plan.outputs[0].name].path
                saved = save(frame, self.state.attempt.folder(place, "dead-letters") / "found")
            self._deliver(saved)

    def _found(self, suspects: frozenset[str] | None) -> Any:
        """The failures that a second pass finds; None when nothing can fail."""
        builder = self.state.new_builder(Pass(Find(suspects)))
        for node in self.state.plan.outputs:
            prepare_output(builder, node)
        return letters(builder)

    def _deliver(self, stored: Letters) -> None:
        """Dead letters: compared with the limits, and written."""
        self.delivered = stored
        counts = stored.counts()
        self._note(counts)
        if any(count.category == MISS for count in counts):
            raise DataError([thresholds.first_miss(self.state.plan, stored.first(MISS), self.state.files)])
        if self.state.handling.strategy == "fail_fast" and counts:
            raise DataError([thresholds.first_failure(self.state.plan, stored.first(), self.state.files, counts)])
        thresholds.check(self.state.plan, counts, self.state.records)
        note_files(self.state)
        write_letters(self.state, stored, counts)

    def _withhold(self) -> None:
        """Groups with a failure are withheld, and totals are made without what failed."""
        kept_bad = kept_by_readers(self.state)
        for report in self.state.report.sources:
            report.records = self.state.source_records(report.name)
        fine = kept_bad is not None and not kept_bad.kept and not self.state.failed()
        oversize = has_large_groups(self.state, failures=not fine)
        clean = fine and not oversize
        if clean and (not self.state.unsure or self._found(None) is None):
            counts = {node.name: self.state.source_records(node.name) for node in self.state.plan.sources}
            self.state.report.rollback.rollback_cursors = {name: count for name, count in counts.items() if count}
            for name in list(self.outputs.unfinished):
                self.outputs.finish(name)
            deliver_files(self.state)
            return
        with self.state.timed("dead letters"):
            self.state.tell("dead_letters_started", {})
            groups, stored = self._rolled_back(kept_bad, oversize=oversize)
            check_keys(self.state, stored)
            self._deliver(stored)
            self.state.report.rollback.rollback_cursors = groups.cursors(stored)
            self.state.report.rollback.retraction = dict(groups.counters)

    def _rolled_back(self, kept_bad: SourceLetters | None, *, oversize: bool) -> tuple[RowGroups | Groups, Saved]:
        """In the way that suits what there is: all of them withhold the same."""
        if are_small(self.state, kept_bad):
            small = SmallGroups(self.state, self.outputs, kept_bad, oversize=oversize)
            with contextlib.suppress(TooMuch):
                return small, small.roll_back()
        if not oversize and can_roll_back_rows(self.state, kept_bad):
            rows = RowGroups(self.state, self.outputs)
            return rows, rows.roll_back()
        groups = Groups(self.state, self.outputs, kept_bad, oversize=oversize)
        return groups, groups.roll_back()

    def _suspects(self, found: SourceLetters | None) -> frozenset[str] | None:
        """The nodes at which a second pass finds failures; None when nobody knows."""
        if found is None or self.state.unsure:
            return None
        diverting = diverting_nodes(self.state, found)
        if diverting is None:
            return None
        return frozenset(diverting.union(self.state.builder.metrics.failed()))

    def _note(self, counts: list[LetterCount]) -> None:
        for count in counts:
            source = "<merged>" if count.source is None else self.state.plan.sources[count.source].name
            node = self.state.plan.nodes[count.stage]
            stage = node.stage_of(count.category)
            self.state.outcome.failed_at[node.name] += count.count
            self.state.report.letters.append(LetterReport(source, stage, count.category, count.count))
            if count.source is not None:
                self.state.report.sources[count.source].dead_letters += count.count

    def remove_old(self) -> None:
        """Dead letters belong to one run: those of an earlier one would be taken for this one's. Where a run adds to
        what earlier ones made of other files, theirs stay."""
        if self.state.handling.strategy != "continue" or self.state.inputs.earlier.any:
            return
        for path, place in letter_places(self.state).items():
            if str(place) not in self.state.report.letter_paths:
                self.state.attempt.remove(place, letter_key(path))

    def note_replayed(self) -> None:
        """Keep the letters whose records are added to outputs: they are not added again. They are published with the
        outputs; a run that writes the outputs anew takes out what replays had added, and forgets them. Kept is also
        which letters the files of this round are made of."""
        feed = self.state.options.feed
        if feed is None:
            return
        self.state.attempt.provenance.replayed = []
        letters = "" if feed.path is None else os.path.realpath(feed.path)
        added = self.state.options.replay == "append"
        has_files = not added or bool(self.state.report.letter_paths)
        made_of = Round(letters, sorted(feed.ids) if has_files else [])
        self.state.attempt.provenance.round = (self.state.options.round, made_of)
        if not added:
            return
        again: set[str] = set()
        for node in self.state.plan.sources if self.delivered is not None else ():
            assert self.delivered is not None
            places = self.delivered.places_of(node.index)
            for file, row in zip(places["file"].to_pylist(), places["row"].to_pylist(), strict=True):
                fed = feed.of(node.name, file, row)
                again |= set() if fed is None else fed.ids
        self.state.attempt.provenance.replayed = sorted(feed.ids - again)
