"""What each node does with records: one evaluation of the whole graph over the rows that were not retracted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.property.rollback.graph import CATEGORY, Graph, Node
from tests.property.rollback.records import Key, Origin, Record, Stream, canonical, is_strict

_LEAVES = "leaves"
"""What a program makes several records of."""


class Failed(Exception):
    def __init__(self, category: str = CATEGORY) -> None:
        self.category = category


@dataclass
class Failure:
    level: int
    node: str
    record: Record
    category: str


@dataclass
class Evaluation:
    graph: Graph
    plan: dict[str, Stream]
    retracted: frozenset[Origin]
    """Rows that are not read."""
    left_out: frozenset[Origin]
    """Rows that relaxed totals leave out, and nobody else."""
    leaves_out: Callable[[Record], bool]
    """Does a relaxed total leave out one of those totals, because it belongs to a group with a failure?"""
    streams: dict[str, list[Record]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    misses: list[Failure] = field(default_factory=list)
    into_totals: dict[str, set[Origin]] = field(default_factory=dict)
    """For each aggregate the rows that came to it, also those it left out."""
    absent: set[Origin] = field(default_factory=set)
    """Rows that came to a relaxed total and were left out."""

    def run(self) -> Evaluation:
        self._read()
        for node in self.graph.nodes:
            reads = [self.streams[ref] for ref in node.reads]
            match node.kind:
                case "transform":
                    self.streams[node.name] = self._transform(node, reads[0])
                case "merge":
                    self.streams[node.name] = _merge(node, reads)
                case "combine":
                    combine = self._combine if len(reads) == 2 else self._combine_three
                    self.streams[node.name] = combine(node, *reads)
                case "aggregate":
                    self.streams[node.name] = self._aggregate(node, reads[0])
                case "route":
                    self._route(node, reads[0])
                case "reshape":
                    self.streams[node.name] = self._reshape(node, reads[0])
                case "cull":
                    self._cull(node, reads[0])
                case "output":
                    self.streams[node.name] = reads[0]
        return self

    @property
    def reached(self) -> set[Origin]:
        """The rows that came to an output or a total."""
        found = {m for node in self.graph.outputs for record in self.streams[node.name] for m in record.members}
        return found.union(*self.into_totals.values()) - self.retracted

    def _fails(self, node: Node, record: Record, category: str) -> None:
        self.failures.append(Failure(self.plan[node.name].level, node.name, record, category))

    def _read(self) -> None:
        for source in self.graph.sources:
            good = self.streams[source.name] = []
            alone = frozenset({source.name})
            for number, row in enumerate(source.rows, 1):
                origin = (source.name, number)
                if origin in self.retracted:
                    continue
                values = tuple((name, canonical(row[name])) for name in source.key)
                keys = (Key(source.key, values, alone),) if source.key else ()
                cells = {name: row[name] for name in ("k", "h", "g", "v")}
                record = Record(cells, origin, source.name, frozenset({origin}), keys)
                category = source.broken(row)
                if category is None:
                    good.append(record)
                else:
                    self.failures.append(Failure(0, source.name, record, category))

    # -- transforms

    def _transform(self, node: Node, records: list[Record]) -> list[Record]:
        for step in node.options["steps"]:
            if step[0] == "window":
                records = _window(records, *step[1:])
        seen: set[Any] = set()
        found = []
        for record in records:
            values: dict[str, Any] | None = dict(record.values)
            try:
                for step in node.options["steps"]:
                    if values is not None:
                        values = _step(step, values, seen)
            except Failed as error:
                self._fails(node, record, error.category)
                continue
            if values is not None:
                leaves = values.pop(_LEAVES, [{}])
                found += [replace(record, values={**values, **leaf}) for leaf in leaves]
        return found

    # -- routes

    def _route(self, node: Node, records: list[Record]) -> None:
        ports: dict[str, list[Record]] = {port: [] for port in (*node.options["conditions"], "rest")}
        inclusive = node.options["mode"] == "inclusive"
        for record in records:
            try:
                taken: list[str] = []
                for port, test in node.options["conditions"].items():
                    if (inclusive or not taken) and _holds(test, record.values):
                        taken.append(port)
            except Failed as error:
                self._fails(node, record, error.category)
                continue
            for port in taken or ["rest"]:
                ports[port].append(record)
        for port, those in ports.items():
            self.streams[f"{node.name}.{port}"] = those

    # -- groups of records

    def _reshape(self, node: Node, records: list[Record]) -> list[Record]:
        options = node.options
        found = []
        for those in _groups(records, options["by"], options["sort_by"]):
            low = [r.values["v"] is not None and r.values["v"] < options["low"] for r in those]
            high = [r.values["v"] is not None and r.values["v"] > options["high"] for r in those]
            both = [one and other for one, other in zip(low, high, strict=True)]
            if any(both):
                for record, conflict in zip(those, both, strict=True):
                    self._fails(node, record, "mutation_conflict" if conflict else "correlated")
                continue
            for i, record in enumerate(those):
                g = "r" if low[i] else "s" if high[i] else record.values["g"]
                found.append(replace(record, values={**record.values, "g": g}))
            for i, record in enumerate(those):
                if high[i]:
                    found.append(replace(record, values={**record.values, "v": record.values["v"] + 20}))
        return found

    def _cull(self, node: Node, records: list[Record]) -> None:
        options = node.options
        kept: list[Record] = []
        removed: list[Record] = []
        for those in _groups(records, options["by"], []):
            numbers = [r.values["v"] for r in those if r.values["v"] is not None]
            value = len(those) if options["test"] == "count" else sum(numbers) if numbers else None
            try:
                if options["test"] == "divides":
                    value = _divide(len(those) - options["limit"])
            except Failed:
                for record in those:
                    self._fails(node, record, "aggregate_type_error")
                continue
            limit = 20 if options["test"] == "divides" else options["limit"]
            (removed if value is not None and value > limit else kept).extend(those)
        self.streams[node.name] = kept
        self.streams[f"{node.name}.removed"] = removed

    # -- combines

    def _combine(self, node: Node, drivers: list[Record], builds: list[Record]) -> list[Record]:
        options = node.options
        found = []
        for driver in drivers:
            matches = [b for b in builds if all(_equal(driver.values[x], b.values[y]) for x, y in options["on"])]
            if not matches:
                if options["on_miss"] == "error":
                    self.misses.append(Failure(self.plan[node.name].level, node.name, driver, "E319"))
                if options["on_miss"] != "null_fields":
                    continue
            if options["match"] == "collect":
                values = {**driver.values, "b": [b.values["v"] for b in matches]}
                found.append(self._pair(node, driver, matches[0] if matches else None, values))
                continue
            none: list[Record | None] = [None]
            for build in matches[:1] if options["match"] == "first" else matches or none:
                found += self._made(node, driver, build)
            if not matches and options["match"] == "first":
                found += self._made(node, driver, None)
        return found

    def _combine_three(
        self, node: Node, drivers: list[Record], builds: list[Record], more: list[Record]
    ) -> list[Record]:
        """The first match of each of two inputs; a miss of either is one."""
        options = node.options
        found = []
        for driver in drivers:
            matched: list[Record | None] = []
            for on, side in ((options["on"], builds), (options["then"], more)):
                matched.append(
                    next((b for b in side if all(_equal(driver.values[x], b.values[y]) for x, y in on)), None)
                )
            if None in matched and options["on_miss"] == "skip":
                continue
            if None in matched and options["on_miss"] == "error":
                self.misses.append(Failure(self.plan[node.name].level, node.name, driver, "E319"))
                continue
            found += self._made(node, driver, *matched)
        return found

    def _made(self, node: Node, driver: Record, build: Record | None, *more: Record | None) -> list[Record]:
        options = node.options
        values = {name: driver.values[name] for name in options["keeps"]}
        other = build.values["v"] if build else None
        record = self._pair(node, driver, build, values, *more)
        values[options["out"]] = other
        for third in more:
            values[f"{options['out']}c"] = third.values["v"] if third else None
        if "divide" in options:
            try:
                values[options["divide"]] = _divide(_minus(driver.values["v"], other))
            except Failed:
                self._fails(node, record, "combine_output_row")
                return []
        return [record]

    def _pair(
        self, node: Node, driver: Record, build: Record | None, values: dict[str, Any], *more: Record | None
    ) -> Record:
        carried = self.plan[node.name].keys
        propagate = node.options["propagate"]
        keys = []
        drivers = self.plan[node.reads[0]].keys
        builds: tuple[Key, ...] = ()
        for ref, matched in zip(node.reads[1:], (build, *more), strict=True) if propagate != "driver" else ():
            fields = self.plan[ref].keys
            none = Key(tuple(fields), tuple((name, None) for name in fields), frozenset())
            builds += (none,) if matched is None else matched.keys
        for passed, theirs in ((driver.keys, False), (builds, True)):
            for key in passed:
                mine = tuple(pair for pair in key.values if pair[0] in carried and not (theirs and pair[0] in drivers))
                if mine:
                    keys.append(Key(key.of, mine, carried[mine[0][0]]))
        return Record(values, driver.origin, None, driver.members, tuple(keys), driver.totalled)

    # -- aggregates

    def _aggregate(self, node: Node, records: list[Record]) -> list[Record]:
        options, reads = node.options, self.plan[node.reads[0]]
        strict = is_strict(node, reads)
        came = self.into_totals.setdefault(node.name, set())
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for record in records:
            came |= record.members
            if not strict and reads.lineage and record.origin in self.left_out:
                self.absent.add(record.origin)
                continue
            if not strict and record.origin is None and self.leaves_out(record):
                self.absent |= record.members
                continue
            group = tuple(canonical(record.values[name]) for name in options["group_by"])
            if options.get("documents") == "separate":
                assert record.origin is not None
                group += (next(s for s in self.graph.sources if s.name == record.origin[0]).file_of(record.origin[1]),)
            groups.setdefault(group, []).append(record)
        if not options["group_by"] and not groups:
            groups[()] = []
        found = []
        for those in groups.values():
            record = self._total(node, those, strict)
            if "finalize" in options:
                try:
                    record.values["z"] = _divide(len(those) - options["finalize"])
                except Failed:
                    self._fails(node, record, "aggregate_finalize")
                    continue
            found.append(record)
        return found

    def _total(self, node: Node, those: list[Record], strict: bool) -> Record:
        values = {name: canonical(those[0].values[name]) for name in node.options["group_by"] if those}
        numbers = [r.values["v"] for r in those if r.values["v"] is not None]
        values["v"] = sum(numbers) if numbers else None
        for name in node.options["also"]:
            values[name] = _ALSO[name](those, numbers)
        keys: tuple[Key, ...] = ()
        if strict:
            fields = self.plan[node.name].keys
            keys = tuple(replace(key, sources=fields[key.values[0][0]]) for key in those[0].keys)
        members = frozenset().union(*(r.members for r in those))
        return Record(values, None, None, members, keys, self.plan[node.name].sources)


_ALSO: dict[str, Callable[[list[Record], list[int]], Any]] = {
    "n": lambda those, _: len(those),
    "lo": lambda _, numbers: min(numbers, default=None),
    "hi": lambda _, numbers: max(numbers, default=None),
    "all": lambda _, numbers: ";".join(map(str, numbers)),
}


def _groups(records: list[Record], by: list[str], sort_by: list[str]) -> list[list[Record]]:
    """In the order of their first records, each in its own order."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        found.setdefault(tuple(canonical(record.values[name]) for name in by), []).append(record)
    for those in found.values():
        those.sort(key=lambda r: [(r.values[name] is None, r.values[name]) for name in sort_by])
    return list(found.values())


def _merge(node: Node, reads: list[list[Record]]) -> list[Record]:
    if node.options["mode"] == "concat":
        return [record for records in reads for record in records]
    longest = max(map(len, reads))
    return [records[i] for i in range(longest) for records in reads if i < len(records)]


def _window(records: list[Record], out: str, group_by: list[str], sort_by: list[str], function: str) -> list[Record]:
    partitions: dict[tuple[Any, ...], list[int]] = {}
    for i, record in enumerate(records):
        partitions.setdefault(tuple(canonical(record.values[name]) for name in group_by), []).append(i)
    made: dict[int, Any] = {}
    for places in partitions.values():
        places.sort(key=lambda i: [(records[i].values[name] is None, records[i].values[name]) for name in sort_by])
        numbers = [records[i].values["v"] for i in places]
        for at, i in enumerate(places):
            made[i] = {
                "row_number": at + 1,
                "lag": numbers[at - 1] if at else None,
                "sum": sum(numbers),
                "cumulative_sum": sum(numbers[: at + 1]),
                "count": len(numbers),
                "first": numbers[0],
            }[function]
    return [replace(record, values={**record.values, out: made[i]}) for i, record in enumerate(records)]


def _step(step: list[Any], values: dict[str, Any], seen: set[Any]) -> dict[str, Any] | None:
    match step:
        case ["divide", out, column, number]:
            values[out] = _divide(_minus(values[column], number))
        case ["above", out, column, number]:
            if values[column] is not None and values[column] > number:
                raise Failed
            values[out] = 1
        case ["below", out, column, number]:
            if values[column] is not None and values[column] < number:
                raise Failed
            values[out] = 1
        case ["filter", column, modulus, rest]:
            if values[column] is not None and _remainder(values[column], modulus) == rest:
                return None  # null is not equal to anything else, so it stays
        case ["distinct", column]:
            value = canonical(values[column])
            if value in seen:
                return None
            seen.add(value)
        case ["rewrite", column, value]:
            values[column] = value
        case ["length", out, column]:
            values[out] = len(values[column])
        case ["valid", column, number]:
            values["ok"] = values[column]
            if values[column] is None or values[column] > number:
                raise Failed("validation_failure")  # what is null has not passed
        case ["each", out, number]:
            values[_LEAVES] = [{out: _divide(value)} for value in (values["v"], _minus(values["v"], number))]
        case ["same"]:
            values["same"] = 1
    return values


def _holds(test: list[Any], values: dict[str, Any]) -> bool:
    kind, column, number = test
    value = values[column]
    if value is None:
        return False
    if kind == "divides":
        quotient = _divide(value - number)
        return quotient is not None and quotient > 0
    return bool(value < number if kind == "<" else value > number)


def _minus(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


def _divide(number: int | None) -> int | None:
    """60 by it, towards zero."""
    if number is None:
        return None
    if number == 0:
        raise Failed
    return 60 // abs(number) * (1 if number > 0 else -1)


def _remainder(value: int, modulus: int) -> int:
    """With the sign of the value."""
    return abs(value) % modulus * (1 if value >= 0 else -1)


def _equal(one: Any, other: Any) -> bool:
    """Null matches nothing."""
    return one is not None and other is not None and bool(one == other)
