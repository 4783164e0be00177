"""Correlation groups: when records fail, what belongs to them is withheld, and totals are made without it.

1. The failures are found, those before any total first: what stands behind a total that will be made again is not
   judged yet. Each failed record is retracted, as if it had never been read; a total that failed retracts every record
   it was made of, as if each had failed itself. What no record is behind (a query made it, or it is a total of nothing)
   retracts nothing: it is a dead letter if it still fails at the end.
2. Outputs are written again, over the input without these records, and without the groups that have a failure. New
   failures (of totals that are judged only now) go back to 1. Every iteration retracts records, so this ends.
3. What was withheld is found and becomes dead letters beside the failures.

What is found lies in files of the attempt. While it is little, what follows from it is decided here, without Spark;
otherwise nothing of it comes to the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.config.model.documents.pipeline import ErrorHandling
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.passes.all import with_facts
from clinker_spark.plan.passes.correlation import BROADCASTABLE
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.reject.saved_letters import Saved, few, last_clean_row, save, save_table
from clinker_spark.runtime.reject.source_letters import SourceLetters
from clinker_spark.runtime.rollback import few_letters
from clinker_spark.runtime.rollback.failed_rows import can_read_alone, filter_failed, only_for_failures
from clinker_spark.runtime.rollback.retracted import Retracted
from clinker_spark.runtime.rollback.strata import UNTRACED, failed_totals, strata
from clinker_spark.runtime.rollback.suspects import Suspects
from clinker_spark.runtime.run.progress import FINDING
from clinker_spark.spark.build.passes import Find, Numbers, Pass, Retraction
from clinker_spark.spark.operators.output import prepare_output
from clinker_spark.spark.rejects import correlated as ops
from clinker_spark.spark.rejects.dirty_groups import DirtyGroups, KeyTexts, carried_groups, dirty_groups, own_groups
from clinker_spark.spark.rejects.letters import letters
from clinker_spark.spark.scan.row_filter import RowFilter

if TYPE_CHECKING:
    from clinker_spark.runtime.run.outputs import Outputs
    from clinker_spark.runtime.run.state import RunState
    from clinker_spark.spark.build.builder import Builder


LISTED_GROUPS = 2_000
"""Up to so many groups with a failure, a condition names them."""
LISTED_TOTALS = 1_000
"""Up to so many totals that failed, a filter names them."""
_JUDGED = ("stage", "source", "groups")
"""What decides about the stratum of a failure."""


class Groups:
    """The groups of one run."""

    most_totals = LISTED_TOTALS
    """Of so many totals that failed, the names are wanted."""
    most_iterations = 50
    """After so many a run gives up: each reads the inputs twice."""

    def __init__(self, state: RunState, outputs: Outputs, kept_bad: SourceLetters | None, *, oversize: bool) -> None:
        self.state = state
        self.outputs = outputs
        self.kept_bad = kept_bad
        """What the readers of the first pass kept aside."""
        self.oversize = oversize
        """May groups be too large, and has nobody looked yet?"""
        self.triggers: list[Saved] = []
        self.untraced: Saved | None = None
        """Failures of the last iteration that retract nothing: what a query made, and totals of nothing."""
        self.taken: list[Saved] = []
        """Source records that were retracted with a total, or with a group that is too large."""
        self.documents: dict[tuple[int, int], Saved] = {}
        """By source and file: the other records of files with a failure, of sources that divert these as wholes.
        Files that were found together have one."""
        self.overflown: list[Saved] = []
        """Those of them that belong to a group that is too large: dead letters in any case."""
        place = outputs.targets[state.plan.outputs[0].name].path
        self.retracted = Retracted(state, state.attempt.folder(place, "correlation"))
        self.offsets: dict[str, tuple[int, ...]] = {}
        self.counters: Counter[str] = Counter()
        """What happened, in numbers, for the report."""

    @property
    def plan(self) -> Plan:
        return self.state.plan

    @property
    def handling(self) -> ErrorHandling:
        return self.state.handling

    @property
    def broadcastable(self) -> bool:
        """Was little retracted up to now? Else records no longer stay where they were read, and outputs sort them."""
        return not self.plan.moved

    @property
    def folder(self) -> Path:
        return self.retracted.folder

    def roll_back(self) -> Saved:
        """Withhold what must be; gives all dead letters."""
        failing = 0
        for iteration in range(self.most_iterations):
            self.counters["iterations"] = iteration + 1
            with self.state.passing(FINDING):
                traceable = self._find(iteration)
            # What no record of a source is behind fails again each time, and is left out as it is.
            rest = 0 if self.untraced is None else self.untraced.rows()
            last = not traceable and not self.oversize
            if not last or iteration == 0 or not self.outputs.complete:
                failing = self._write_again(whole=last or rest > 0)
            if last:
                if failing != rest and not self.state.unsure:
                    raise self._lost()
                return self._all_letters()
            if failing == 0 and not self.state.unsure and not self.oversize:
                self.untraced = None
                return self._all_letters()
        raise self._endless()

    def cursors(self, stored: Saved) -> dict[str, int]:
        """By source: the last record that is no dead letter."""
        rows = {
            node.name: last_clean_row(
                stored, node.index, self.offsets.get(node.name, ()), self.state.source_records(node.name)
            )
            for node in self.plan.sources
        }
        return {name: row for name, row in rows.items() if row > 0}

    # ------------------------------------------------------------ builders

    def _without(self, *, dirty: bool = True, later: bool = False) -> tuple[Retraction, dict[str, RowFilter]]:
        """What a pass does without: what was retracted, and, if `dirty`, groups with a failure at outputs."""
        retraction, row_filters = self.retracted.left_out(later=later)
        self.state.outcome.again = "removed"
        withheld = left_out = None
        if self.triggers and dirty:
            withheld = self._groups(as_failed=self.triggers, as_read=self.taken)
        if self.triggers and self.handling.retraction_scope == "group":
            left_out = self._groups(as_carried=self.triggers, as_read=self.taken)
        retraction = replace(retraction, withheld=withheld, left_out=left_out, broadcastable=self.broadcastable)
        return retraction, row_filters

    def _write_again(self, *, whole: bool) -> int:
        """The outputs without all that; shown numbers of totals stay what they were at first."""
        retraction, row_filters = self._without()
        return self.outputs.write_again(replace(retraction, numbers=self.retracted.numbers), row_filters, whole=whole)

    def _letters_builder(
        self,
        ends: Sequence[str],
        *,
        dirty: bool = False,
        later: bool = False,
        texts: bool = True,
        row_filters: Mapping[str, RowFilter] | None = None,
    ) -> Builder:
        """A pass that keeps what is diverted on the way to some outputs, or up to some nodes, or, `later`, of
        everything that reaches outputs, when more was retracted. Without `texts` it only shows which records these are.
        """
        retraction, left_out = self._without(dirty=dirty, later=later)
        asked = Pass(
            Find(texts=texts, all_held=later, repeats=later),
            row_filters=left_out if row_filters is None else row_filters,
            retraction=retraction,
        )
        builder = self.state.new_builder(asked, None if texts else only_for_failures(self.plan, ends))
        for name in ends:
            if not self.plan[name].streams:
                prepare_output(builder, self.plan.output(name))
            else:
                for port in self.plan.read_ports(name):
                    builder.stream(StreamRef(name, port))
        self.offsets |= {name: scan.row_offsets for name, scan in builder.scans.items()}
        return builder

    def _groups(
        self, *, as_failed: Sequence[Saved] = (), as_carried: Sequence[Saved] = (), as_read: Sequence[Saved] = ()
    ) -> DirtyGroups:
        """The groups of records, by the keys that they had when they failed: of all sources that a failure concerns, or
        only of each one's own; or by the key that was read."""
        if few((*as_failed, *as_carried, *as_read)):
            listed: dict[int, dict[tuple[tuple[str, str | None], ...], KeyTexts]] = {}
            for source, keys in (
                *few_letters.failed_groups(self.plan, as_failed),
                *few_letters.carried_groups(as_carried),
                *few_letters.own_groups(as_read),
            ):
                listed.setdefault(source, {})[tuple(sorted(keys.items()))] = keys
            if sum(map(len, listed.values())) <= LISTED_GROUPS:
                return DirtyGroups(self.plan, {source: list(groups.values()) for source, groups in listed.items()})
        frames = [dirty_groups(self.plan, found.frame) for found in as_failed]
        frames += [carried_groups(found.frame) for found in as_carried]
        frames += [own_groups(found.frame) for found in as_read]
        return DirtyGroups(self.plan, frame=_union(frames), broadcastable=self.broadcastable)

    def _save(self, frame: Any, name: str) -> Saved:
        return save(frame, self.folder / name)

    # ------------------------------------------------------------ one iteration

    def _find(self, iteration: int) -> bool:
        """The failures that are judged first, and everything that is retracted because of them. Was there any?"""
        builder = self._letters_builder(self._suspects(iteration).ends(outputs_too=self.oversize))
        if iteration == 0:
            self._keep_numbers(builder)
        found = self._failures(builder, iteration)
        first = None if found is None else self._first(found, iteration)
        if first is None and self.untraced is not None and self.untraced.rows():
            # Nothing is made again because of these: what stands behind totals is judged as well.
            found = self._failures(builder, iteration, everywhere=True)
            first = None if found is None else self._first(found, iteration)
        if self.oversize and (first is None or first[0] > 0):
            # Groups are counted over what is left when no record fails by itself any more.
            self.oversize = False
            if self._take_large_groups(builder, iteration):
                return True
        if first is None:
            return False
        failed = first[1]
        taken = self._behind(failed, iteration, lambda totals, name: self._contributions(builder, failed, totals, name))
        self._retract([failed], taken)
        self._take_documents([failed, *taken], iteration)
        return True

    def _take_documents(self, failed: Sequence[Saved], iteration: int) -> None:
        """Retract the other records of files with a failure, where their source is to divert these as wholes."""
        by_document = {node.index: node.name for node in self.plan.sources if node.by_document}
        if not by_document:
            return
        found = {place for saved in failed for place in saved.tally("source", "file") if place[0] in by_document}
        wanted = found - self.documents.keys()
        if not wanted:
            return
        builder = self._letters_builder(sorted({by_document[index] for index, _ in wanted}))
        others = self._save(ops.document_letters(builder, wanted), f"documents-{iteration}-{len(self.documents)}")
        self.documents |= dict.fromkeys(wanted, others)
        self._retract([], [], [others])

    def _suspects(self, iteration: int) -> Suspects:
        return Suspects(self.state, self.kept_bad, first=iteration == 0)

    def _failures(self, builder: Builder, iteration: int, *, everywhere: bool = False) -> Saved | None:
        """The failures at suspected places. None: no record can fail there. Only `everywhere` they
        are looked for behind totals that may have to be made again."""
        suspected = self._suspects(iteration).suspected(builder, everywhere=everywhere)
        looked = f"{iteration}-everywhere" if everywhere else str(iteration)
        places = {place.name: place.node.name for place in builder.rejects.failures if suspected(place)}
        ends = list(dict.fromkeys(places.values()))
        kept = 0 if iteration or self.kept_bad is None else sum(count.count for count in self.kept_bad.kept)
        row_filters = None
        if places and self.broadcastable and can_read_alone(self.state, ends, kept):
            row_filters = filter_failed(
                self._letters_builder(ends, texts=False), places, self.folder / f"failed-{looked}"
            )
        reading = builder if row_filters is None else self._letters_builder(ends, row_filters=row_filters)
        found = letters(reading, lambda place: place.name in places)
        saved = None if found is None else self._save(found, f"failures-{looked}")
        if row_filters is not None:
            reading.memo.let_go()
        return saved

    def _first(self, saved: Saved, iteration: int) -> tuple[int, Saved] | None:
        """The failures of the lowest stratum, with it; None when nothing can be retracted for any of them."""
        there = {int(n) for batch in saved.batches(*_JUDGED) for n in np.unique(strata(self.plan, batch))}

        def only(stratum: int, name: str) -> Saved:
            place = self.folder / f"failures-{iteration}-{name}"
            return saved.only(lambda batch: pa.array(strata(self.plan, batch) == stratum), place)

        if len(there) < 2:  # what is empty has the columns of letters, if nothing else
            traced = bool(there) and UNTRACED not in there
            self.untraced = None if traced else saved
            return (there.pop(), saved) if traced else None
        self.untraced = only(UNTRACED, "untraced") if UNTRACED in there else None
        lowest = min(there - {UNTRACED})
        return lowest, only(lowest, "first")

    def _behind(
        self, failed: Saved, iteration: int, made_of: Callable[[dict[str, set[str]], str], Saved | None]
    ) -> list[Saved]:
        """The records that failed totals were `made_of`, which is given these totals and a name for what it finds."""
        totals, count = failed_totals(failed, self.most_totals)
        behind = made_of(totals, f"taken-{iteration}") if totals else None
        if behind is None:
            return []
        self.counters["synthetic_ck_fanout_lookups_total"] += count
        self.counters["synthetic_ck_fanout_rows_expanded_total"] += behind.rows()
        self.counters["groups_recomputed"] += count
        return [behind]

    def _contributions(self, builder: Builder, failed: Saved, totals: dict[str, set[str]], name: str) -> Saved | None:
        made = failed.frame.where("source IS NULL").select("groups")
        wanted = {n: sorted(ids) if len(ids) <= LISTED_TOTALS else made for n, ids in totals.items()}
        groups = ops.contributions(builder, wanted)
        if groups is None:
            return None
        return self._save(ops.correlated_letters(groups, ops.retracted_message(self.plan)), name)

    def _take_large_groups(self, builder: Builder, iteration: int) -> bool:
        """Groups with more records than `max_group_buffer` are dead letters as a whole. Are there any?"""
        rows = ops.oversize_letters(builder, self.handling.max_group_buffer)
        if rows is None:
            return False
        saved = self._save(rows, f"oversize-{iteration}")
        if not saved.rows():
            return False
        self._retract_overflow(saved, iteration)
        return True

    def _retract_overflow(self, letters: Saved, iteration: int) -> None:
        first = letters.only(lambda batch: batch["trigger"], self.folder / f"oversize-{iteration}-first")
        rest = letters.only(lambda batch: pc.invert(batch["trigger"]), self.folder / f"oversize-{iteration}-rest")
        self._retract([first], [rest])
        self.overflown.append(rest)
        self._take_documents([first], iteration)

    def _keep_numbers(self, builder: Builder) -> None:
        if not self.plan.shows_keys:
            return
        for name in self.plan.facts.correlation.relaxed:
            builder.stream(StreamRef(name))
            saved = self._save(builder.rejects.numbers[name], f"numbers-{name.replace('/', '~')}")
            self.retracted.numbers[name] = Numbers(saved.rows(), saved.frame)

    def _retract(self, triggers: list[Saved], taken: list[Saved], documents: Sequence[Saved] = ()) -> None:
        self.triggers += triggers
        self.taken += taken
        self.retracted.add([*triggers, *taken, *documents])
        counts = self.retracted.counts
        self.counters["output_rows_retracted_total"] = counts.total()
        dirty = sum(found.rows() for found in (*self.triggers, *self.taken))
        if self.broadcastable and (dirty > BROADCASTABLE or max(counts.values(), default=0) > BROADCASTABLE):
            self.state.plan = with_facts(replace(self.plan, moved=True))

    # ------------------------------------------------------------ at the end

    def _all_letters(self) -> Saved:
        """Failures, what was retracted with them, and what is withheld at the outputs: each record once."""
        triggers = [*self.triggers, *([] if self.untraced is None else [self.untraced])]
        others = [*self.taken] if self.handling.dlq.include_retracted else [*self.overflown]
        held = self._held()
        others += [*dict.fromkeys(self.documents.values()), *([] if held is None else [held])]
        if not triggers:
            raise self._lost()
        names = triggers[0].columns
        if few((*triggers, *others)):
            failed = few_letters.together([found.table(*names) for found in triggers])
            rest = (
                [few_letters.once_each(few_letters.together([found.table(*names) for found in others]), failed)]
                if others
                else []
            )
            return save_table(few_letters.together([failed, *rest]), self.folder / "letters", self.state.spark)
        every = _union([found.frame.select(*names) for found in triggers])
        once = [ops.once_each(_union([found.frame for found in others]), every)] if others else []
        return self._save(_union([every, *once]), "letters")

    def _endless(self) -> DataError:
        return DataError(
            [self.plan.outputs[0].diagnostic("E411", f"records keep failing after {self.most_iterations} iterations")]
        )

    def _lost(self) -> DataError:
        """Records fail in a pass that writes, and not in the one that looks for them: nothing is published."""
        return DataError([self.plan.outputs[0].diagnostic("E411", "records failed that are not found again")])

    def _held(self) -> Saved | None:
        scoped = self.handling.retraction_scope == "group" and self.plan.facts.correlation.relaxed
        if not scoped and not any(
            self.plan.facts.correlation.keys[node.inputs[0].node].own for node in self.plan.outputs
        ):
            return None
        ends = [node.name for node in self.plan.outputs if self.plan.facts.correlation.keys[node.inputs[0].node].own]
        ends += self.plan.facts.correlation.relaxed if scoped else []
        builder = self._letters_builder(ends, dirty=True)
        found = ops.held_records(builder)
        if found is None:
            return None
        with self.state.passing("finding what is withheld"):
            return self._save(found, "held")


def _union(frames: list[Any]) -> Any:
    return reduce(lambda a, b: a.unionByName(b), frames)
