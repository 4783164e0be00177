"""The rules of rollback and retraction, over one evaluation after the other.

Readings, where the specification leaves a choice:

 1. A row that failed, and every row of a failed total, is not read any more: all nodes are as in a run over the rows
    that are left (windows, `distinct`, build sides of combines and both kinds of totals included). Rows that are only
    withheld still count in windows, `distinct`, build sides and, with `retraction_scope: record`, in relaxed totals.
 2. A failure is judged at the level of its node: the number of relaxed aggregates before it. Only the failures of the
    lowest level are taken in an iteration, all of them together; then everything is evaluated again. A failure in the
    program of an aggregate is one of its totals, and has the level of what comes after it.
 3. The failure of a record that a combine made is its driver's row: that one is retracted, never the matched row. Its
    group is dirty as it was read, also if the combine did not let that key pass; the keys it carries are dirty, too.
 4. A failure of one source spares the records of others that come from a single source. Records that a combine or a
    strict aggregate made are not spared if their key comes from the failing source, merged with others or not; a key
    that comes from another source (the driver's, of the same name) is not concerned.
 5. A build side's key that a failed record carries (`propagate_ck: all`) makes records that a combine made dirty, but
    not the rows of the build's source at outputs of their own: the failure was the driver's.
 6. Keys match in the fields that both have. The policies `all` and `primary` spare some of what `any` withholds.
 7. A key of nulls only is a group of that record alone; a partly null key is a value like any other, nulls being equal.
    A build key that is null because nothing matched is no key.
 8. A failed strict total is a trigger, its rows are retracted as those of a relaxed one.
 9. Totals after relaxed aggregates carry no keys; their outputs withhold nothing.
10. A row is a `correlated` letter if it (as the driver's row) was withheld at an output, or with a strict total; if it
    was left out of a relaxed total by the group scope; or if it was retracted with a total. Rows that were written at
    an output of records, and withheld at none of these, are no letters for a total they are missing in. A matched
    row is no letter for what became of the driver's.
11. Group scope: the group of the failing row, as it was read, in its source. The rows of a failed total count as
    failing rows for that, too.
12. `max_group_buffer`: counted when no failure of level 0 is left, in rows of the sources (not in joined records); the
    rows of the group that reached something are retracted as if they had failed, the first one is the trigger.
13. `include_retracted: false` leaves out the rows that were retracted with a total, also where they would be withheld.
14. A row with failures on two branches in one iteration has two trigger letters.
15. An `on_miss: error` stops the run if the miss is there when its level is judged.
16. `group_by: []` over nothing is one total of nothing, as for an empty input.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.property.rollback.graph import Graph, written
from tests.property.rollback.operators import Evaluation, Failure
from tests.property.rollback.records import Key, Origin, Record, streams_of

Letter = tuple[str, int, bool, str]
MERGED: Origin = ("<merged>", 0)


@dataclass(frozen=True)
class Readings:
    """Choices that can be tried the other way, to explain a difference."""

    partly_null_alone: bool = False
    window_levels: bool = False
    strict_levels: bool = False
    own_group: bool = True
    build_rows_spared: bool = True
    letters_per_row: bool = False
    strata: bool = True


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


@dataclass(frozen=True)
class Dirt:
    """The keys of a failure, and its source."""

    source: str
    keys: tuple[Key, ...]


class Model:
    def __init__(self, graph: Graph, readings: Readings = Readings()) -> None:  # noqa: B008
        self.graph = graph
        self.readings = readings
        levels = {"window", "distinct"} if readings.window_levels else set()
        levels |= {"strict"} if readings.strict_levels else set()
        self.plan = streams_of(graph, frozenset(levels))
        self.keyed = {source.name for source in graph.sources if source.key}
        self.rows = {source.name: source for source in graph.sources}
        self.retracted: set[Origin] = set()
        self.left_out: set[Origin] = set()
        self.with_totals: set[Origin] = set()
        self.collateral: set[Origin] = set()
        self.triggers: Counter[Letter] = Counter()
        self.settled: set[tuple[str, frozenset[Origin]]] = set()
        self.dirt: list[Dirt] = []
        self.result = Result({}, Counter(), "0", [])

    def run(self) -> Result:
        while True:
            now = Evaluation(self.graph, self.plan, frozenset(self.retracted), frozenset(self.left_out)).run()
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
        letter = (*origin, True, failure.category)
        if not (self.readings.letters_per_row and letter in self.triggers):
            self.triggers[letter] += 1
        self._say(f"{failure.node}: {failure.category} of {origin} {record.values} made of {sorted(record.members)}")
        if not self.plan[failure.node].lineage:
            return
        if record.origin is None:
            self.with_totals |= record.members
            for member in record.members:
                self._retract(member)
            return
        if self._retract(record.origin) and record.keys:
            own = record.lone is None
            self.dirt.append(Dirt(record.origin[0], tuple(self._narrowed(key, record) for key in record.keys)))
            if own and not self.readings.own_group:
                self.dirt.remove(self._own(record.origin))

    def _narrowed(self, key: Key, record: Record) -> Key:
        """A driver's key is dirty in the driver's source, whatever it was merged with."""
        assert record.origin is not None
        source = record.origin[0]
        return Key(key.of, key.values, frozenset({source}) if source in key.sources else key.sources)

    def _own(self, origin: Origin) -> Dirt:
        source = self.rows[origin[0]]
        row = source.rows[origin[1] - 1]
        values = tuple((name, row[name] + 0.0 if isinstance(row[name], float) else row[name]) for name in source.key)
        return Dirt(source.name, (Key(source.key, values, frozenset({source.name})),))

    def _retract(self, origin: Origin) -> bool:
        """Not read any more; its group is dirty."""
        if origin[0] not in self.keyed:
            return False
        self.retracted.add(origin)
        dirt = self._own(origin)
        self.dirt.append(dirt)
        if self.graph.handling.get("retraction_scope") == "group":
            for number in range(1, len(self.rows[origin[0]].rows) + 1):
                peer = (origin[0], number)
                if self._same(dirt.keys[0], self._own(peer).keys[0]):
                    self.left_out.add(peer)
        return True

    def _overflows(self, now: Evaluation) -> bool:
        limit = self.graph.handling.get("max_group_buffer")
        if limit is None:
            return False
        groups: dict[tuple[object, ...], list[Origin]] = {}
        order = [source.name for source in self.graph.sources]
        for origin in sorted(now.reached, key=lambda o: (order.index(o[0]), o[1])):
            if origin[0] in self.keyed and not self._alone(self._own(origin).keys[0].values):
                name = (self._component(origin[0]), self._own(origin).keys[0].values)
                groups.setdefault(name, []).append(origin)
        found = {name: those for name, those in groups.items() if len(those) > limit}
        for name, those in found.items():
            self._say(f"-- group {name} has {len(those)} rows")
            self.result.failures += 1
            self.triggers[(*those[0], True, "group_size_exceeded")] += 1
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
        if one.of != other.of:
            return False
        mine, others = dict(one.values), dict(other.values)
        common = tuple((name, value) for name, value in one.values if name in others)
        if not common or self._alone(common):
            return False
        if len(common) < len(one.of) and self._alone(tuple(mine.items())) != self._alone(tuple(others.items())):
            self.result.doubtful.append("a partly null key that a combine cut")
        return all(others[name] == value for name, value in common)

    def _withheld(self, record: Record, policy: str) -> bool:
        for dirt in self.dirt:
            if (
                record.lone is not None
                and dirt.source != record.lone
                and (self.readings.build_rows_spared or not any(record.lone in key.sources for key in dirt.keys))
            ):
                continue
            pairs = [
                (kd, kr) for kd in dirt.keys for kr in record.keys if kd.sources & kr.sources and self._same(kd, kr)
            ]
            if pairs and _policy(policy, dirt, record):
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
                    lines.append(",".join(written(record.values[name]) for name in node.options["columns"]))
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


def _policy(policy: str, dirt: Dirt, record: Record) -> bool:
    """Of what belongs to a dirty group, what is withheld."""
    failed = {field: value for key in dirt.keys for field, value in key.values}
    mine = [pair for key in record.keys for pair in key.values if any(value is not None for _, value in key.values)]
    if policy == "all":
        return all(field in failed and failed[field] == value for field, value in mine)
    if policy == "primary":
        field, value = mine[0]
        return field in failed and failed[field] == value
    return True
