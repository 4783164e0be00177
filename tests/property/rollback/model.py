"""The rules of rollback and retraction, over one evaluation after the other.

Readings, where the specification leaves a choice:

 1. A row that failed, and every row of a failed total, is not read any more: all nodes are as in a run over the rows
    that are left (windows, `distinct`, build sides of combines and both kinds of totals included). Rows that are only
    withheld still count in windows, `distinct`, build sides and, with `retraction_scope: record`, in relaxed totals.
 2. A failure is judged at the level of its node: the number of relaxed aggregates before it. Only the failures of the
    lowest level are taken in an iteration, all of them together; then everything is evaluated again. A failure in the
    program of an aggregate is one of its totals, and has the level of what comes after it.
 3. The failure of a record that a combine made is its driver's row: that one is retracted, never the matched row. Its
    group is what its carried keys say: with `named: [k]` of a key `[k, h]` that is all of `k`, and where the combine
    let no key of the driver pass, the driver's peers are not withheld.
 4. A failure of one source spares the records of others that come from a single source. A record that a combine or a
    strict aggregate made belongs, by value, to the groups of all sources before it that have a key of that name; a
    failure of any of them withholds it.
 5. The same for the failure of a record that a combine made: the groups of all these sources are dirty, also those of
    the matched row, at outputs of their own, too. Of a failed total the groups of its rows are dirty, each within its
    own source (8), and those of rows that it was combined with.
 6. Keys match in the fields that both have. The policies `all` and `primary` spare some of what `any` withholds: they
    compare all fields that an output's records carry, or the first one; what a record has no key for is null.
 7. A key of nulls only is a group of that record alone; a partly null key is a value like any other, nulls being equal.
    A build key that is null because nothing matched makes no group.
 8. A failed strict total is a trigger, its rows are retracted as those of a relaxed one.
 9. Totals after relaxed aggregates carry no keys; their outputs withhold nothing.
10. A row is a `correlated` letter if it (as the driver's row) was withheld at an output, or with a strict total; if it
    was left out of a relaxed total by the group scope; or if it was retracted with a total. Rows that were written at
    an output of records, and withheld at none of these, are no letters for a total they are missing in. A matched
    row is no letter for what became of the driver's.
11. Group scope: the rows of the failing row's source that its carried keys name. The rows of a failed total count as
    failing rows for that, too, each with the key that was read. A strict total belongs to the group: relaxed totals
    that are made of it leave it out.
12. `max_group_buffer`: counted when no failure of level 0 is left, in rows of the sources (not in joined records); the
    rows of the group that reached something are retracted as if they had failed, the first one is the trigger. A group
    overflows once: rows that reach something only after that (`distinct`) are retracted with the others.
13. `include_retracted: false` leaves out the rows that were retracted with a total, also where they would be withheld.
14. A row with failures on two branches in one iteration has two trigger letters.
15. An `on_miss: error` stops the run if the miss is there when its level is judged.
16. Where any source has a key, a failed row of a source without one is retracted, too. Where none has, it is missing
    where it failed, and nowhere else.
18. Where two rules of a reshape contradict each other, the records of the whole group fail, each as itself; those
    without a contradiction are `correlated`, and no triggers.
17. `group_by: []` over nothing is one total of nothing, as for an empty input.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from tests.property.rollback.graph import Graph, written
from tests.property.rollback.operators import Evaluation, Failure
from tests.property.rollback.records import Key, Origin, Record, canonical, streams_of

Letter = tuple[str, int, bool, str]
MERGED: Origin = ("<merged>", 0)


@dataclass(frozen=True)
class Readings:
    """Choices that can be tried the other way, to explain a difference."""

    partly_null_alone: bool = False
    window_levels: bool = False
    strict_levels: bool = False
    letters_per_row: bool = False
    strata: bool = True
    keyless_retracted: bool = True


@dataclass
class Result:
    outputs: dict[str, list[str]]
    letters: Counter[Letter]
    exit: str
    reasons: list[str]
    failures: int = 0
    levels: set[int] = field(default_factory=set)
    doubtful: list[str] = field(default_factory=list)
    """Why the specification does not say what must come out."""


class Model:
    def __init__(self, graph: Graph, readings: Readings = Readings()) -> None:
        self.graph = graph
        self.readings = readings
        levels = {"window", "distinct"} if readings.window_levels else set()
        levels |= {"strict"} if readings.strict_levels else set()
        self.plan = streams_of(graph, frozenset(levels))
        self.keyed = {source.name for source in graph.sources if source.key}
        if readings.keyless_retracted and self.keyed:
            self.keyed = {source.name for source in graph.sources}
        self.rows = {source.name: source for source in graph.sources}
        self.retracted: set[Origin] = set()
        self.left_out: set[Origin] = set()
        self.with_totals: set[Origin] = set()
        self.collateral: set[Origin] = set()
        self.triggers: Counter[Letter] = Counter()
        self.settled: set[tuple[str, frozenset[Origin]]] = set()
        self.dirty: list[tuple[Key, ...]] = []
        """The keys of each failure."""
        self.overflowed: set[tuple[object, ...]] = set()
        self.result = Result({}, Counter(), "0", [])

    def run(self) -> Result:
        while True:
            without = frozenset(self.retracted), frozenset(self.left_out)
            now = Evaluation(self.graph, self.plan, *without, self._leaves_out).run()
            new = [f for f in now.failures if (f.node, f.record.members) not in self.settled]
            level = min((f.level for f in new), default=None)
            if self._missed(now, level, new):
                return self.result
            if level != 0 and self._overflows(now):
                continue
            if level is None:
                break
            self._say(f"-- iteration, level {level}")
            for failure in new:
                if failure.level == level or not self.readings.strata:
                    self._fail(failure)
        self._commit(now)
        return self.result

    def _say(self, text: str) -> None:
        self.result.reasons.append(text)

    def _missed(self, now: Evaluation, level: int | None, failures: list[Failure]) -> bool:
        missed = [miss for miss in now.misses if level is None or miss.level <= level]
        if not missed:
            return False
        failing = {m for f in failures for m in f.record.members}
        if failures and all(miss.record.members & failing for miss in missed):
            self.result.doubtful.append("a driver without a match also fails elsewhere")
        self._say(f"{missed[0].node}: no match for {missed[0].record.origin}")
        self.result.exit = "E319"
        return True

    # ---------------------------------------------------------------- failures

    def _fail(self, failure: Failure) -> None:
        record = failure.record
        self.result.failures += 1
        self.result.levels.add(failure.level)
        self.settled.add((failure.node, record.members))
        origin = record.origin or MERGED
        letter = (*origin, failure.category != "correlated", failure.category)
        if not (self.readings.letters_per_row and letter in self.triggers):
            self.triggers[letter] += 1
        self._say(f"{failure.node}: {failure.category} of {origin} {record.values} made of {sorted(record.members)}")
        if not self.plan[failure.node].lineage and not (record.origin and record.origin[0] in self.keyed):
            return
        if record.origin is None:
            self.with_totals |= record.members
            if any(member[0] not in self.keyed for member in record.members):
                self.result.doubtful.append("a failed total of records without a key of their own")
            for member in record.members:
                self._retract(member)
            others = (replace(key, sources=key.sources - record.totalled) for key in record.keys)
            self.dirty.append(tuple(key for key in others if key.sources))
            return
        self._retract(record.origin, record.keys)

    def _own(self, origin: Origin) -> Key:
        """The key of a row, as it was read."""
        source = self.rows[origin[0]]
        row = source.rows[origin[1] - 1]
        return Key(source.key, tuple((name, canonical(row[name])) for name in source.key), frozenset({source.name}))

    def _retract(self, origin: Origin, keys: tuple[Key, ...] | None = None) -> None:
        """Not read any more; its group is dirty: that of the keys it carried, or of the row itself."""
        failed = (self._own(origin),) if keys is None else keys
        self.dirty.append(failed)
        if origin[0] not in self.keyed:
            return
        self.retracted.add(origin)
        if self.graph.handling.get("retraction_scope") == "group":
            for number in range(1, len(self.rows[origin[0]].rows) + 1):
                peer = (origin[0], number)
                if any(origin[0] in key.sources and self._same(key, self._own(peer)) for key in failed):
                    self.left_out.add(peer)

    def _leaves_out(self, total: Record) -> bool:
        """Is it the total of a group that is left out, be it of one of its sources?"""
        return any(
            origin[0] in key.sources and self._same(key, self._own(origin))
            for key in total.keys
            for origin in self.left_out
        )

    def _overflows(self, now: Evaluation) -> bool:
        limit = self.graph.handling.get("max_group_buffer")
        if limit is None:
            return False
        groups: dict[tuple[object, ...], list[Origin]] = {}
        order = [source.name for source in self.graph.sources]
        for origin in sorted(now.reached, key=lambda o: (order.index(o[0]), o[1])):
            if origin[0] in self.keyed and not self._alone(self._own(origin).values):
                groups.setdefault((self._component(origin[0]), self._own(origin).values), []).append(origin)
        found = {name: those for name, those in groups.items() if len(those) > limit or name in self.overflowed}
        for name, those in found.items():
            self._say(f"-- group {name} has {len(those)} rows")
            if name not in self.overflowed:
                self.result.failures += 1
                self.triggers[(*those[0], True, "group_size_exceeded")] += 1
                self.overflowed.add(name)
            self.collateral |= set(those)
            for origin in those:
                self._retract(origin)
        return bool(found)

    def _component(self, source: str) -> str:
        """The sources that are merged with this one, as one name."""
        found = {source}
        merges = [self.plan[node.name].sources for node in self.graph.nodes if node.kind == "merge"]
        for _ in merges:
            for sources in merges:
                if sources & found:
                    found |= sources
        return min(found & self.keyed)

    # ---------------------------------------------------------------- groups

    def _alone(self, values: tuple[tuple[str, object], ...]) -> bool:
        nulls = [value is None for _, value in values]
        return any(nulls) if self.readings.partly_null_alone else all(nulls)

    def _same(self, one: Key, other: Key) -> bool:
        mine, others = dict(one.values), dict(other.values)
        common = tuple((name, value) for name, value in one.values if name in others)
        if not common or self._alone(common):
            return False
        if len(common) < len(one.of) and self._alone(tuple(mine.items())) != self._alone(tuple(others.items())):
            self.result.doubtful.append("a partly null key that a combine cut")
        return all(others[name] == value for name, value in common)

    def _withheld(self, record: Record, policy: str) -> bool:
        for failed in self.dirty:
            shared = any(
                theirs.sources & mine.sources and self._same(theirs, mine) for theirs in failed for mine in record.keys
            )
            if shared and _policy(policy, failed, record):
                return True
        return False

    # ---------------------------------------------------------------- the end

    def _commit(self, now: Evaluation) -> None:
        written_rows: set[Origin] = set()
        withheld_rows: set[Origin] = set()
        withheld_totals: set[Origin] = set(now.absent)
        for node in self.graph.outputs:
            policy = node.options.get("policy") or self.graph.handling.get("correlation_fanout_policy", "any")
            lines = [",".join(node.options["columns"])]
            for record in now.streams[node.name]:
                held = self._withheld(record, policy)
                if held:
                    self._say(f"{node.name}: withheld {record.values} of {sorted(record.members)}")
                else:
                    line = ",".join(written(record.values[name]) for name in node.options["columns"])
                    lines.append(line or '""')
                if record.origin is None:
                    withheld_totals |= record.members if held else frozenset()
                else:
                    (withheld_rows if held else written_rows).add(record.origin)
            self.result.outputs[node.name] = lines
        held_back = withheld_rows | (withheld_totals - written_rows) | self.collateral
        if self.graph.handling.get("include_retracted", True):
            held_back |= self.with_totals
        else:
            held_back -= self.with_totals
        failed = {letter[:2] for letter in self.triggers}
        self.result.letters = self.triggers + Counter(
            (*origin, False, "correlated") for origin in held_back if origin not in failed
        )
        self.result.exit = "2" if self.result.letters else "0"


def _policy(policy: str, failed: tuple[Key, ...], record: Record) -> bool:
    """Of what belongs to a dirty group, what is withheld."""
    theirs = {field: value for key in failed for field, value in key.values}
    mine = [pair for key in record.keys for pair in key.values]
    if policy == "all":
        return all(theirs.get(field) == value for field, value in mine)
    if policy == "primary":
        field, value = mine[0]
        return bool(theirs.get(field) == value)
    return True
