"""Correlation groups: when records fail, what belongs to them is held back, and totals are made without it.

1. The failures are found, with their groups. Each one is taken back from its source; a group of an aggregate that
   failed takes back every record it was made of.
2. Outputs are written again, over the input without these records, and without the groups that have a failure. New
   failures (a total that was fine before) go back to 1. Every turn takes records away, so this ends.
3. What was held back is found and becomes dead letters beside the failures.

All of it stays in Spark: what is found lies in files of the attempt, and nothing grows in the driver.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from clinker_spark.plan.correlation import AGGREGATE, FEW, relaxed_aggregates
from clinker_spark.plan.needs import needs
from clinker_spark.plan.nodes import SourcePlan, StreamRef
from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.progress import FINDING
from clinker_spark.runtime.saved_letters import Saved, last_clean_row, save
from clinker_spark.spark.operators import correlated as ops
from clinker_spark.spark.operators.letters import letters
from clinker_spark.spark.operators.output import prepare_output
from clinker_spark.spark.operators.source import watched_size
from clinker_spark.spark.session import is_local
from clinker_spark.spark.sources.chosen import Chosen, save_chosen

if TYPE_CHECKING:
    from clinker_spark.runtime.outputs import Outputs
    from clinker_spark.runtime.state import RunState
    from clinker_spark.spark.operators.build import Builder

MOST_TURNS = 50


class Groups:
    """The groups of one run."""

    def __init__(self, state: RunState, outputs: Outputs) -> None:
        self.state = state
        self.outputs = outputs
        self.plan = state.plan
        self.spark = state.spark
        self.handling = state.handling
        first = self.plan.outputs[0]
        self.folder = state.attempt.folder(outputs.targets[first.name].path, "correlation")
        self.triggers: list[Any] = []
        self.untraced: Any = None
        """Failures of the last turn that nothing can be taken back for."""
        self.taken: list[Any] = []
        """Source records that were taken back with a group of an aggregate, or with their own group."""
        self.removed: dict[str, Any] = {}
        self.all_removed: Saved | None = None
        self.chosen: dict[str, Chosen] = {}
        """What readers leave out themselves, instead of `removed`."""
        self.left_out: dict[str, int] = {}
        """How many records of each source that is."""
        self.indexes: dict[str, Any] = {}
        self.few = True
        self.most_dirty = 0
        """There are not more dirty groups than this."""
        self.offsets: dict[str, tuple[int, ...]] = {}
        self.counters: Counter[str] = Counter()
        """What happened, in numbers, for the report."""

    def settle(self, oversize: list[str]) -> Saved:
        """Hold back what must be; gives all dead letters."""
        for turn in range(MOST_TURNS):
            self.counters["turns"] = turn + 1
            with self.state.passing(FINDING):
                traceable = self._find(turn, oversize if turn == 0 else [])
            # What a query made cannot be traced to its records: it fails again, and is left out as it is.
            if (turn and not traceable) or (self.outputs.write_again(self._prepared) == 0 and not self.state.unsure):
                return self._all_letters()
        raise DataError([self.plan.outputs[0].diagnostic("E411", f"records keep failing after {MOST_TURNS} turns")])

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

    def _prepared(self, builder: Builder) -> None:
        """A builder that leaves out what was taken back."""
        builder.removed = self.removed
        builder.chosen = self.chosen
        if self.chosen:
            builder.progress = None  # the readers' counts are those of all records, and stay so
        builder.few = self.few
        builder.indexes = self.indexes
        self.state.again = "removed"
        for name, count in self.left_out.items():
            builder.facts[f"{name}: left out"] = count
        if self.triggers:
            builder.dirty = self._dirty()

    def _letters_builder(self, *, dirty: bool) -> Builder:
        builder = self.state.new_builder(letters=True)
        self._prepared(builder)
        if not dirty:
            builder.dirty = None
        for node in self.plan.outputs:
            prepare_output(builder, node)
        return builder

    def _dirty(self) -> Any:
        return ops.dirty_groups(self.plan, _union(self.triggers))

    def _save(self, frame: Any, name: str) -> Saved:
        return save(frame, Path(self.folder) / name)

    # ------------------------------------------------------------ one turn

    def _find(self, turn: int, oversize: list[str]) -> bool:
        """The failures of a turn, and everything that is taken back because of them. Was there anything to take?"""
        builder = self._letters_builder(dirty=False)
        taken: list[Any] = []
        frames = []
        if turn == 0:
            self._keep_numbers(builder)
        self.offsets = {name: scan.row_offsets for name, scan in builder.scans.items()}
        found = letters(builder)
        traceable = bool(oversize)
        if found is not None:
            saved = self._save(found, f"failures-{turn}")
            self.most_dirty += saved.rows()
            failed = _failed_groups(saved)
            traceable = traceable or failed.total() > 0
            self.untraced = saved.frame.where("source IS NULL AND cardinality(groups) = 0")
            frames.append(saved.frame.where("source IS NOT NULL OR cardinality(groups) > 0"))
            made = frames[0].where("source IS NULL").select("groups")
            totals = {name: count for name, count in failed.items() if name is not None}
            groups = ops.contributions(builder, made, totals) if totals else None
            if groups is not None:
                message = ops.retracted_message(self.plan)
                behind = self._save(ops.correlated_letters(groups, message), f"taken-{turn}")
                taken.append(behind.frame)
                self.counters["synthetic_ck_fanout_lookups_total"] += sum(totals.values())
                self.counters["synthetic_ck_fanout_rows_expanded_total"] += behind.rows()
                self.counters["groups_recomputed"] += sum(totals.values())
        for source in oversize:
            rows = ops.oversize_letters(builder, source, self.handling.max_group_buffer)
            saved = self._save(rows, f"oversize-{source}-{turn}")
            self.most_dirty += saved.tally("trigger")[(True,)]
            frames.append(saved.frame.where("trigger"))
            taken.append(saved.frame.where("NOT trigger"))
        self.triggers += frames
        if self.handling.retraction_scope == "group":
            dirty = ops.dirty_groups(self.plan, _union([*frames, *taken]))
            members = ops.group_members(builder, dirty)
            if members is not None:
                taken.append(self._save(members, f"members-{turn}").frame)
        self.taken += taken
        self._remove([*frames, *taken], turn)
        return traceable

    def _keep_numbers(self, builder: Builder) -> None:
        if not self.plan.shows_keys:
            return
        for node in relaxed_aggregates(self.plan):
            frame = builder.stream(StreamRef(node.name)).frame
            numbers = frame.select(f"`$group.{node.name}`", f"`{AGGREGATE}{node.name}`").toDF("id", "number")
            self.indexes[node.name] = self._save(numbers, f"numbers-{node.name.replace('/', '~')}").frame

    def _remove(self, frames: Iterable[Any], turn: int) -> None:
        rows = _union([frame.select("source", "file", "row") for frame in frames]).where("source IS NOT NULL")
        known = [] if self.all_removed is None else [self.all_removed.frame]
        self.all_removed = everything = self._save(_union([rows, *known]).distinct(), f"removed-{turn}")
        counts = {source: count for (source,), count in everything.tally("source").items()}
        self.removed, self.chosen = {}, {}
        self.left_out = {node.name: counts[node.index] for node in self.plan.sources if node.index in counts}
        for node in self.plan.sources:
            count = counts.get(node.index, 0)
            if count and node.config.type == "csv" and count <= FEW and is_local(self.spark):
                place = Path(self.folder) / f"left-out-{node.index}-{turn}"
                save_chosen(place, everything.places_of(node.index))
                self.chosen[node.name] = Chosen(str(place), (), keep=False)
            elif count:
                self.removed[node.name] = everything.frame.where(f"source = {node.index}")
        self.counters["output_rows_retracted_total"] = sum(counts.values())
        if self.few and (self.most_dirty > FEW or max(counts.values(), default=0) > FEW):
            # Records no longer stay where they were read: outputs sort them.
            self.few = False
            self.state.plan = self.plan = replace(self.plan, needs=needs(self.plan, moved=True))

    # ------------------------------------------------------------ at the end

    def _all_letters(self) -> Saved:
        """Failures, what was taken back with them, and what is held back at the outputs: each record once."""
        triggers = _union([*self.triggers, *([] if self.untraced is None else [self.untraced])])
        others = [*self.taken] if self.handling.dlq.include_retracted else []
        held = self._held()
        if held is not None:
            others.append(held)
        once = [ops.once_each(_union(others), triggers)] if others else []
        return self._save(_union([triggers, *once]), "letters")

    def _held(self) -> Any:
        if not any(self.plan.keys[node.inputs[0].node].own for node in self.plan.outputs):
            return None
        builder = self._letters_builder(dirty=True)
        found = ops.held_records(builder)
        if found is None:
            return None
        with self.state.passing("finding what is withheld"):
            return self._save(found, "held").frame


def oversize_sources(state: RunState) -> list[str]:
    """The sources that have a group with more records than `max_group_buffer`."""
    plan, most = state.plan, state.handling.max_group_buffer
    found = []
    for node in plan.sources:
        if node.config.correlation_key and _may_exceed(state, node, most):
            builder = state.new_builder(letters=False)
            builder.stamp = True
            if ops.has_oversize_group(builder, node, most):
                found.append(node.name)
    return found


def _may_exceed(state: RunState, node: SourcePlan, most: int) -> bool:
    """Could a group be too large? Says no only where that is certain, without a pass of its own for large limits."""
    if sum(file.size for file in state.files[node.name]) // 2 <= most or state.source_records(node.name) <= most:
        return False
    largest = watched_size(state.builder, node)
    return largest is None or largest > most / 2


def _failed_groups(failures: Saved) -> Counter[str | None]:
    """How many failures can be traced: by the aggregate whose groups they belong to, or None for read records."""
    found: Counter[str | None] = Counter()
    for batch in failures.batches("source", "groups"):
        found[None] += batch.num_rows - batch["source"].null_count
        made = batch["groups"].filter(pc.is_null(batch["source"]))
        found.update(made.keys.to_pylist())
    return found


def _union(frames: list[Any]) -> Any:
    return reduce(lambda a, b: a.unionByName(b), frames)
