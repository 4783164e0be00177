"""What a pass over small inputs showed: the table of `spark.rejects.traced`, and what follows from it.

Nothing here needs Spark: these are the rules of `spark.rejects.correlated`, for tables that fit the driver."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.rejects.correlated import CORRELATED, HELD_MESSAGE, OVERSIZE, OVERSIZE_MESSAGE
from clinker_spark.spark.rejects.dirty_groups import DirtyGroups, KeyTexts, concerned, joined_text, writes_records_of
from clinker_spark.spark.rejects.traced import FAILED, LEFT_OUT, MADE_OF, NUMBERED, REACHED, WHAT
from clinker_spark.spark.rejects.withheld import also_compared

Origin = tuple[int | None, int | None, int | None]
"""Where a record was read: source, file and row. What was made of several records has none."""
GroupName = tuple[str, tuple[tuple[str, str | None], ...]]
"""The first of the sources whose records with one key are one group, and that key."""
_PLACE = ("source", "file", "row")


@dataclass(frozen=True)
class Evidence:
    """What a pass showed."""

    plan: Plan
    table: pa.Table

    def rows(self, what: int) -> pa.Table:
        return self.table.filter(pc.equal(self.table[WHAT], what)).drop_columns([WHAT])

    @cached_property
    def failures(self) -> pa.Table:
        return self.rows(FAILED)

    def behind(self, totals: Mapping[str, Iterable[str]]) -> pa.Table:
        """The records of sources that totals (by aggregate) were made of, be it by way of other totals."""
        rows, made_of = self._made_of
        wanted = {name: set(ids) for name, ids in totals.items()}
        found: list[int] = []
        for stage, node in reversed(list(enumerate(self.plan.nodes))):
            ids = wanted.get(node.name, set())
            for i, source, groups in made_of.get(stage, ()) if ids else ():
                if groups.get(node.name) not in ids:
                    continue
                if source is not None:
                    found.append(i)
                for name, group in groups.items():
                    if name != node.name:
                        wanted.setdefault(name, set()).add(group)
        return _take(rows, found)

    @cached_property
    def _made_of(self) -> tuple[pa.Table, dict[int, list[tuple[int, int | None, dict[str, str]]]]]:
        """The records that totals were made of; by aggregate: their numbers, sources and groups."""
        rows = self.rows(MADE_OF)
        found: dict[int, list[tuple[int, int | None, dict[str, str]]]] = {}
        columns = (rows[name].to_pylist() for name in ("stage", "source", "groups"))
        for i, (stage, source, groups) in enumerate(zip(*columns, strict=True)):
            found.setdefault(stage, []).append((i, source, dict(groups)))
        return rows, found

    def numbers(self) -> dict[str, dict[str, int]]:
        """By aggregate whose numbers are shown: those of its totals."""
        rows = self.rows(NUMBERED)
        found: dict[str, dict[str, int]] = {}
        for number, groups in zip(rows["row"].to_pylist(), rows["groups"].to_pylist(), strict=True):
            for name, group in groups:
                found.setdefault(name, {})[group] = number
        return found

    def large_groups(self, most: int, known: Container[GroupName]) -> tuple[list[GroupName], pa.Table]:
        """The groups of which more than `most` records reach an output or a total, and those that are `known` to be so:
        their records as letters, see `correlated.oversize_letters`."""
        rows = pa.concat_tables([self.rows(what) for what in (REACHED, MADE_OF, LEFT_OUT)])
        groups = self._members(rows)
        large = [name for name, those in groups.items() if len(those) > most or name in known]
        taken: list[int] = []
        messages: list[str] = []
        triggers: list[bool] = []
        for name in large:
            text, size = group_text(name[1]), len(groups[name])
            first = min(groups[name]) if name not in known else None
            for origin, i in groups[name].items():
                taken.append(i)
                triggers.append(origin == first)
                told = OVERSIZE_MESSAGE.format(text, size, most) if origin == first else HELD_MESSAGE.format(text)
                messages.append(told)
        found = _take(rows, taken)
        stages = [self.plan.places[self.plan.sources[source].name] for source in found["source"].to_pylist()]
        read_keys = [
            [pair for pair in letter if pair[0].startswith(CK_PREFIX)] for letter in found["letter"].to_pylist()
        ]
        found = _with(found, stage=stages, keys=read_keys)
        return large, correlated_letters(found, messages, triggers)

    def _members(self, rows: pa.Table) -> dict[GroupName, dict[Origin, int]]:
        """By group: its records, each with its first place in a table."""
        families = self.plan.facts.correlation.families
        groups: dict[GroupName, dict[Origin, int]] = {}
        for i, (origin, letter) in enumerate(zip(origins(rows), rows["letter"].to_pylist(), strict=True)):
            source = None if origin[0] is None else self.plan.sources[origin[0]]
            if source is not None and source.name in families:
                read = dict(letter)
                keys = tuple((name, read.get(name)) for name in source.key_columns)
                if any(text is not None for _, text in keys):
                    groups.setdefault((families[source.name][0], keys), {}).setdefault(origin, i)
        return groups

    def held(self, dirty: DirtyGroups) -> pa.Table:
        """The records that are withheld at outputs, or that totals were made without: see `correlated.held_records`."""
        reached = Reached(self.plan, self.rows(REACHED), dirty)
        left_out = self.rows(LEFT_OUT)
        places, written = origins(left_out), reached.written()
        # One that was written itself, because a policy spares it, is no dead letter: a replay would write it again.
        gone = [i for i, place in enumerate(places) if place[0] is not None and place not in written]
        totals = reached.totals()
        for name, group in (
            pair
            for place, groups in zip(places, left_out["groups"].to_pylist(), strict=True)
            for pair in (groups if place[0] is None else ())
        ):
            totals.setdefault(name, set()).add(group)
        behind = self.behind(totals)
        found = (
            _take(left_out, gone),
            _take(
                reached.rows, [i for i, held in enumerate(reached.held) if held and reached.origins[i][0] is not None]
            ),
            _take(behind, [i for i, spared in enumerate(reached.spared(behind)) if not spared]),
        )
        return pa.concat_tables(found)


@dataclass
class Reached:
    """The records that reach outputs, and which of them are withheld there: those of groups with a failure."""

    plan: Plan
    rows: pa.Table
    dirty: DirtyGroups
    origins: list[Origin] = field(init=False)
    stages: list[int] = field(init=False)
    held: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.origins, self.stages = origins(self.rows), self.rows["stage"].to_pylist()
        tests: dict[int, Withheld] = {}
        self.held = []
        for stage, origin, keys in zip(self.stages, self.origins, self.rows["keys"].to_pylist(), strict=True):
            test = tests.get(stage) or tests.setdefault(
                stage, Withheld.at(self.plan, self.plan.output(self.plan.nodes[stage].name), self.dirty)
            )
            self.held.append(test.holds(origin[0], dict(keys)))

    def written(self) -> set[Origin]:
        return {origin for origin, held in zip(self.origins, self.held, strict=True) if not held}

    def totals(self) -> dict[str, set[str]]:
        """The totals that are withheld, by aggregate."""
        found: dict[str, set[str]] = {}
        for i, groups in enumerate(self.rows["groups"].to_pylist()):
            for name, group in groups if self.held[i] and self.origins[i][0] is None else ():
                found.setdefault(name, set()).add(group)
        return found

    def spared(self, behind: pa.Table) -> list[bool]:
        """Of the records behind totals that are withheld: which were written all the same? A record of a source that
        did not fail is no dead letter when it reached an output that writes records themselves: to others it was not on
        its way (a route or a cull sent it elsewhere), or it is withheld there and has its letter for that."""
        found = [False] * behind.num_rows
        places, keys = origins(behind), [dict(pairs) for pairs in behind["keys"].to_pylist()]
        for source in self.plan.sources if len(self.plan.sources) > 1 else ():
            ends = [end for end in self.plan.outputs if writes_records_of(self.plan, end, source)]
            reached = set().union(*(self._origins_at(end) for end in ends))
            test = Withheld([(source, self.dirty.texts(source, source.key_columns, ()))], by_source=False)
            for i, place in enumerate(places):
                if place[0] == source.index and place in reached:
                    found[i] = found[i] or not test.holds(place[0], keys[i])
        return found

    def _origins_at(self, end: OutputPlan) -> set[Origin]:
        place = self.plan.places[end.name]
        return {origin for origin, stage in zip(self.origins, self.stages, strict=True) if stage == place}


@dataclass(frozen=True)
class Withheld:
    """Which records belong to groups with a failure."""

    tests: Sequence[tuple[SourcePlan, Sequence[tuple[Sequence[str], set[str]]]]]
    """By source: keys, and their texts that are those of a failure."""
    by_source: bool
    """Was each record read from one of several sources? It is spared then when only others failed."""

    @staticmethod
    def at(plan: Plan, node: OutputPlan, dirty: DirtyGroups) -> Withheld:
        """Those of an output; see `withheld.with_held`."""
        keys, also = plan.facts.correlation.keys[node.inputs[0].node], also_compared(plan, node)
        tests = [(source, dirty.texts(source, own, also)) for source, own in concerned(plan, keys)]
        return Withheld(tests, keys.single and len(keys.sources) > 1)

    def holds(self, source: int | None, keys: KeyTexts) -> bool:
        for mine, tests in self.tests:
            if self.by_source and source != mine.index:
                continue
            if any(joined_text(keys.get(name) for name in columns) in texts for columns, texts in tests):
                return True
        return False


def origins(rows: pa.Table) -> list[Origin]:
    return list(zip(*(rows[name].to_pylist() for name in _PLACE), strict=True))


def _take(rows: pa.Table, numbers: Sequence[int]) -> pa.Table:
    return rows.take(pa.array(numbers, pa.int64()))


def correlated_letters(rows: pa.Table, messages: Sequence[str], triggers: Sequence[bool] = ()) -> pa.Table:
    """Source records that did not fail themselves, as dead letters: `correlated.correlated_letters`. The triggers among
    them stand for a group that is too large."""
    first = list(triggers) or [False] * rows.num_rows
    empty: dict[str, list[Any]] = {name: [[]] * rows.num_rows for name in ("tie", "built", "groups")}
    categories = [OVERSIZE if trigger else CORRELATED for trigger in first]
    return _with(rows, category=categories, message=list(messages), trigger=first, **empty)


def _with(rows: pa.Table, **made: list[Any]) -> pa.Table:
    """With other values in some columns."""
    columns = [
        pa.array(made[name], rows.schema.field(name).type) if name in made else rows[name] for name in rows.column_names
    ]
    return pa.table(columns, rows.schema.names)


def group_text(keys: Iterable[tuple[str, str | None]]) -> str:
    """`correlated.group_text`.

    >>> group_text([("$ck.order_id", "O1"), ("$ck.line", "2"), ("$ck.note", None)])
    'line=2, order_id=O1'
    """
    return ", ".join(sorted(f"{name.removeprefix(CK_PREFIX)}={text}" for name, text in keys if text is not None))
