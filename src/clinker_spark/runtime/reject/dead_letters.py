"""Dead letters: what readers kept, or a second pass for the failures; with correlation keys, whole groups."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

from clinker_spark.runtime.commit.manifest import Round
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.paths.reservations import letter_key, letter_place, letter_places, located
from clinker_spark.runtime.reject import thresholds
from clinker_spark.runtime.reject.saved_letters import FEW_LETTERS, Saved, count_saved, save
from clinker_spark.runtime.reject.source_letters import SourceLetters, kept_by_readers, settled_at
from clinker_spark.runtime.reject.unreadable_keys import check_keys
from clinker_spark.runtime.rollback.groups import Groups
from clinker_spark.runtime.rollback.large_groups import has_large_groups
from clinker_spark.runtime.rollback.row_groups import RowGroups, can_settle_rows
from clinker_spark.runtime.rollback.small_groups import SmallGroups, TooMuch, are_small
from clinker_spark.runtime.run import assemble
from clinker_spark.runtime.run.outputs import Outputs
from clinker_spark.runtime.run.progress import FINDING
from clinker_spark.runtime.run.report import LetterReport
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.operators.combine import MISS
from clinker_spark.spark.operators.output import prepare_output
from clinker_spark.spark.rejects.letters import (
    LetterCount,
    first_letters,
    layout,
    letter_lines,
    letters,
    of_sources,
    write_letters,
)


class DeadLetters:
    """The dead letters of one run."""

    def __init__(self, state: RunState, outputs: Outputs) -> None:
        self.state = state
        self.outputs = outputs
        self.delivered: SourceLetters | Saved | None = None

    def settle(self) -> None:
        """Find and write them, after the outputs were written."""
        if self.state.holds_groups:
            self._hold_back()
        else:
            self._collect()

    def _collect(self) -> None:
        found = kept_by_readers(self.state)
        failed = self.state.failed()
        if found is not None and not found.counts and not failed and not self.state.unsure:
            return
        with self.state.timed("dead letters"):
            self.state.tell("dead_letters_started", {})
            if found is not None and not failed and not self.state.unsure:
                self.delivered = found
                self._note(list(found.counts))
                self._check_letters(list(found.counts), found.first)
                self._write_letters(found, list(found.counts))
                return
            frame = self._found(self._suspects(found))
            if frame is None:  # nothing can fail, and only for want of counts it was looked for
                return
            place = self.outputs.targets[self.state.plan.outputs[0].name].path
            with self.state.passing(FINDING):
                found_letters = save(frame, self.state.attempt.folder(place, "dead-letters") / "found")
            self._deliver(found_letters)

    def _found(self, suspects: frozenset[str] | None) -> Any:
        """The failures that a second pass finds; None when nothing can fail."""
        builder = self.state.new_builder(letters=True, suspects=suspects)
        for node in self.state.plan.outputs:
            prepare_output(builder, node)
        return letters(builder)

    def _deliver(self, stored: Saved) -> None:
        """Dead letters: compared with the limits, and written."""
        self.delivered = stored
        counts = count_saved(stored)
        self._note(counts)
        misses = [c.stage for c in counts if c.category == MISS]
        thresholds.check_combines(self.state.plan, stored.frame, self.state.files, misses)
        self._check_letters(counts, lambda: first_letters(stored.frame, 1)[0])
        if counts:
            self._write_letters(stored, counts)

    def _hold_back(self) -> None:
        """Groups with a failure are held back, and totals are made without what failed."""
        kept_bad = kept_by_readers(self.state)
        for report in self.state.report.sources:
            report.records = self.state.source_records(report.name)
        oversize = has_large_groups(self.state)
        clean = kept_bad is not None and not kept_bad.counts and not self.state.failed() and not oversize
        if clean and (not self.state.unsure or self._found(None) is None):
            counts = {node.name: self.state.source_records(node.name) for node in self.state.plan.sources}
            self.state.report.rollback_cursors = {name: count for name, count in counts.items() if count}
            for name in list(self.outputs.unfinished):
                self.outputs.finish(name)
            return
        with self.state.timed("dead letters"):
            self.state.tell("dead_letters_started", {})
            groups, stored = self._settled(kept_bad, oversize=oversize)
            check_keys(self.state, stored)
            self._deliver(stored)
            self.state.report.rollback_cursors = groups.cursors(stored)
            self.state.report.retraction = dict(groups.counters)

    def _settled(self, kept_bad: SourceLetters | None, *, oversize: bool) -> tuple[RowGroups | Groups, Saved]:
        """In the way that suits what there is: all of them withhold the same."""
        if are_small(self.state, kept_bad, oversize=oversize):
            small = SmallGroups(self.state, self.outputs, kept_bad, oversize=False)
            with contextlib.suppress(TooMuch):
                return small, small.settle()
        if not oversize and can_settle_rows(self.state, kept_bad):
            rows = RowGroups(self.state, self.outputs)
            return rows, rows.settle()
        groups = Groups(self.state, self.outputs, kept_bad, oversize=oversize)
        return groups, groups.settle()

    def _suspects(self, found: SourceLetters | None) -> frozenset[str] | None:
        """The nodes at which a second pass finds failures; None when nobody knows."""
        if found is None or self.state.unsure:
            return None
        settled = settled_at(self.state, found)
        if settled is None:
            return None
        names = {name for name in self.state.builder.counts if self.state.builder.counted(name).get("failed")} | settled
        return frozenset(names)

    def _check_letters(self, counts: list[LetterCount], first: Callable[[], Any]) -> None:
        if self.state.handling.strategy == "fail_fast" and counts:
            raise DataError([thresholds.first_failure(self.state.plan, first(), self.state.files, counts)])
        thresholds.check(self.state.plan, counts, self.state.records)

    def _note(self, counts: list[LetterCount]) -> None:
        for count in counts:
            source = "<merged>" if count.source is None else self.state.plan.sources[count.source].name
            node = self.state.plan.nodes[count.stage]
            stage = node.stage
            self.state.failed_at[node.name] += count.count
            self.state.report.letters.append(LetterReport(source, stage, count.category, count.count))
            if count.source is not None:
                self.state.report.sources[count.source].dead_letters += count.count

    def _write_letters(self, found: SourceLetters | Saved, counts: list[LetterCount]) -> None:
        dlq = self.state.handling.dlq
        own = {name: setting.path for name, setting in dlq.per_source.items() if setting.path is not None}
        places: list[tuple[str, list[int], list[LetterCount]]] = []
        positions = {node.name: node.index for node in self.state.plan.sources}
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
            place = letter_place(self.state, path)
            folder = self.state.attempt.folder(place, f"dead-letters-{i}")
            columns, now = layout(self.state.plan, mine), self.state.options.now
            feed = self.state.options.feed
            headers = {name: scan.headers for name, scan in self.state.builder.scans.items()}
            # Letters of no source, those of groups, are in the common file.
            common = path == dlq.path and mine is rest
            chosen = apart if common else sources
            if isinstance(found, SourceLetters):
                made = found.write(folder / "final", sources, columns, self.state.files, headers, now, dlq, feed)
            elif feed is not None or found.rows() <= FEW_LETTERS:
                made = found.write(
                    folder / "final",
                    self.state.plan,
                    chosen,
                    columns,
                    self.state.files,
                    headers,
                    now,
                    dlq,
                    feed,
                    others=common,
                )
            else:
                frame = of_sources(found.frame, chosen, others=common)
                lines, rendering = letter_lines(self.state.plan, frame, columns, self.state.files, headers, now, dlq)
                write_letters(lines, str(folder / "parts"))
                made = assemble.one_file(assemble.part_files(folder / "parts"), rendering, folder / "final")
            with located(self.state):
                self.state.attempt.put(made.path, place, letter_key(path))
            self.state.report.letter_paths.append(str(place))

    def remove_old(self) -> None:
        """Dead letters belong to one run: those of an earlier one would be taken for this one's."""
        if self.state.handling.strategy != "continue":
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
        self.state.attempt.replayed = []
        letters = "" if feed.path is None else os.path.realpath(feed.path)
        added = self.state.options.replay == "append"
        has_files = not added or bool(self.state.report.letter_paths)
        made_of = Round(letters, sorted(feed.ids) if has_files else [])
        self.state.attempt.round = (self.state.options.round, made_of)
        if not added:
            return
        again: set[str] = set()
        for node in self.state.plan.sources if self.delivered is not None else ():
            assert self.delivered is not None
            places = self.delivered.places_of(node.index)
            for file, row in zip(places["file"].to_pylist(), places["row"].to_pylist(), strict=True):
                fed = feed.of(node.name, file, row)
                again |= set() if fed is None else fed.ids
        self.state.attempt.replayed = sorted(feed.ids - again)
