"""Correlation groups of small inputs: each iteration is one job, and what follows from it is decided here.

The rules are those of `Groups`. A pass brings everything that they need as one table: failures, the records that
totals are made of, and the records that reach each output. The next iteration runs the same plan without what
was retracted meanwhile. Outputs are written once more when nothing fails any longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clinker_spark.core.fast_paths import taken
from clinker_spark.runtime.reject.saved_letters import Saved, save_table
from clinker_spark.runtime.rollback.evidence import Evidence, GroupName, correlated_letters, group_text
from clinker_spark.runtime.rollback.groups import LISTED_TOTALS, Groups
from clinker_spark.runtime.rollback.strata import UNTRACED, strata
from clinker_spark.runtime.run.progress import FINDING
from clinker_spark.spark.build.passes import Numbers
from clinker_spark.spark.plan_cuts import is_repeatable
from clinker_spark.spark.rejects.correlated import HELD_MESSAGE, TAKEN_MESSAGE
from clinker_spark.spark.rejects.traced import run_again, traced

if TYPE_CHECKING:
    from clinker_spark.runtime.reject.source_letters import SourceLetters
    from clinker_spark.runtime.run.state import RunState
    from clinker_spark.spark.build.builder import Builder

MOST_ROWS = 100_000
"""Tables with more rows are not looked at here."""
MOST_FAILED = 10_000


class TooMuch(Exception):
    """This must be decided by Spark."""


def are_small(state: RunState, kept_bad: SourceLetters | None) -> bool:
    """Can it be tried here?"""
    if not taken("small_groups") or any(node.by_document for node in state.plan.sources):
        return False
    if not state.inputs.small or state.unsure or not all(node.traceable for node in state.plan.nodes):
        return False
    kept = 0 if kept_bad is None else sum(count.count for count in kept_bad.kept)
    return state.failed() + kept <= MOST_FAILED


class SmallGroups(Groups):
    """The groups of one run."""

    most_totals = MOST_ROWS
    most_iterations = 1_000
    """An iteration is one small job. `distinct` brings up the copies of a failed record one by one."""
    table: Any = None
    """The pass, as a DataFrame that runs again and again."""
    looking: Builder | None = None
    """What built it."""
    found: Evidence
    """What it showed the last time."""

    large: set[GroupName]
    """Groups that were too large."""

    def roll_back(self) -> Saved:
        """Withhold what must be; gives all dead letters. Raises `TooMuch` before outputs are written again."""
        self.large = set()
        try:
            return self._roll_back()
        finally:
            self._forget()

    def _roll_back(self) -> Saved:
        for iteration in range(self.most_iterations):
            self.counters["iterations"] = iteration + 1
            with self.state.passing(FINDING):
                self.found = self._look()
            if iteration == 0:
                self._keep_numbers_of(self.found)
            stratum, failed = self._first_failures(iteration)
            # Groups are counted over what is left when no record fails by itself any more.
            if self.oversize and stratum != 0 and self._retract_large_groups(iteration):
                continue
            if failed is None:
                # The last iteration is that in which outputs are written.
                self.counters["iterations"] = max(iteration, 1)
                break
            self._retract([failed], self._behind(failed, iteration, self._made_of))
        else:
            raise self._endless()
        rest = self.found.failures.num_rows  # nothing can be retracted for these: they fail again
        if not (self.triggers or rest) or self._write_again(whole=rest > 0) != rest:
            raise self._lost()
        if rest:
            self.untraced = save_table(self.found.failures, self.folder / "untraced", self.state.spark)
        return self._all_letters()

    def _look(self) -> Evidence:
        """What a pass shows that leaves out what was retracted up to now."""
        scoped = self.handling.retraction_scope == "group" and bool(self.triggers)
        fixed = self.table is not None and not scoped and self.retracted.by_readers() and is_repeatable(self.table)
        if self.looking is not None and fixed:
            self.looking.memo.forget()
        else:
            self._forget()
            self.looking = self._letters_builder([node.name for node in self.plan.outputs], later=True)
            self.table = traced(self.looking, MOST_ROWS, everywhere=self.oversize)
        self.retracted.tell_readers()
        found = run_again(self.table)
        if found.num_rows >= MOST_ROWS:
            raise TooMuch
        return Evidence(self.plan, found)

    def _forget(self) -> None:
        if self.looking is not None:
            self.looking.memo.let_go()

    def _first_failures(self, iteration: int) -> tuple[int | None, Saved | None]:
        """The failures that are judged first, and their stratum."""
        judged = strata(self.plan, self.found.failures)
        traced = judged[judged != UNTRACED]
        if not len(traced):
            return None, None
        rows = self.found.failures.filter(pa.array(judged == traced.min()))
        return int(traced.min()), save_table(rows, self.folder / f"failures-{iteration}", self.state.spark)

    def _retract_large_groups(self, iteration: int) -> bool:
        """Groups with more records than `max_group_buffer` are dead letters as a whole. Are there any?"""
        large, rows = self.found.large_groups(self.handling.max_group_buffer, self.large)
        if large:
            self.large |= set(large)
            saved = save_table(rows, self.folder / f"oversize-{iteration}", self.state.spark)
            self._retract_overflow(saved, iteration)
        return bool(large)

    def _keep_numbers_of(self, found: Evidence) -> None:
        """The numbers that totals have before anything is retracted, where outputs show them."""
        for name, known in found.numbers().items():
            numbers: Any = known
            if len(known) > LISTED_TOTALS:
                table = pa.table({"id": list(known), "number": list(known.values())})
                place = self.folder / f"numbers-{self.plan.places[name]}"
                numbers = save_table(table, place, self.state.spark).frame
            self.retracted.numbers[name] = Numbers(len(known), numbers)

    def _made_of(self, totals: dict[str, set[str]], name: str) -> Saved:
        """The records that totals were made of."""
        rows = self.found.behind(totals)
        names = [self.plan.nodes[stage].name for stage in rows["stage"].to_pylist()]
        letters = correlated_letters(rows, [TAKEN_MESSAGE.format(name) for name in names])
        return save_table(letters, self.folder / name, self.state.spark)

    def _held(self) -> Saved | None:
        dirty = self._groups(as_failed=self.triggers, as_read=self.taken)
        if dirty.listed is None:  # there are too many for a list
            return super()._held()
        rows = self.found.held(dirty)
        letters = correlated_letters(rows, [HELD_MESSAGE.format(group_text(k)) for k in rows["keys"].to_pylist()])
        return save_table(letters, self.folder / "held", self.state.spark)
