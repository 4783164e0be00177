"""What becomes of each record of a worked example of a rollback rule, as its model tells it.

Nothing here is written by hand: rows, failures, totals and outputs come from the example and from the model, and both
must say the same. The tests compare them with real runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import yaml

from tests.property.rollback.examples import Example
from tests.property.rollback.graph import Graph, Node, Row, Source, cell, written
from tests.property.rollback.model import Model
from tests.property.rollback.operators import Evaluation, Failure
from tests.property.rollback.records import Origin

STATES = ("written", "failed", "withheld", "retracted", "filtered", "looked up")

_IN_A_REPLAY = {"written": "replay: not fed", "looked up": "replay: read from its file"}


@dataclass
class Fate:
    """One row of an input."""

    number: int
    cells: list[str]
    state: str
    reason: str


@dataclass
class Table:
    source: Source
    header: list[str]
    fates: list[Fate]


@dataclass
class Total:
    """One group of an aggregate: its first value, in which nodes it failed, and what is left of it."""

    group: str
    first: str
    failed_in: list[str]
    last: str | None


@dataclass
class Written:
    """An output: its header, and lines marked ` ` (always written), `-` (only without keys) or `+` (only with them)."""

    name: str
    header: str
    lines: list[tuple[str, str]]


@dataclass
class Story:
    graph: list[str]
    options: str
    tables: list[Table]
    totals: dict[str, list[Total]]
    outputs: list[Written]


class Watched(Model):
    """The model, and what it saw on its way."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.seen: list[Failure] = []

    def _fail(self, failure: Failure) -> None:
        self.seen.append(failure)
        super()._fail(failure)

    def evaluation(self, *, last: bool) -> Evaluation:
        """Every node over the whole input, or over what is left at the end."""
        if not last:
            return Evaluation(self.graph, self.plan, frozenset(), frozenset(), lambda _: False).run()
        gone = frozenset(self.retracted), frozenset(self.left_out)
        return Evaluation(self.graph, self.plan, *gone, self._leaves_out).run()

    def withholds(self, output: Node, record: Any) -> bool:
        usual = self.graph.handling.get("correlation_fanout_policy", "any")
        return self._withheld(record, output.options.get("policy") or usual)


def story(example: Example, *, replayed: bool = False) -> Story:
    """What becomes of the records of an example; `replayed`: and in a replay of its letters."""
    model = Watched(example.graph)
    result = model.run()
    if (result.outputs, result.letters) != (example.outputs, Counter(example.letters)):
        raise ValueError(f"the model does not follow the example: {example.rule}")
    first, last = model.evaluation(last=False), model.evaluation(last=True)
    handling = ", ".join(f"{name}: {str(value).lower()}" for name, value in example.graph.handling.items())
    tables = [_table(model, last, example, source) for source in example.graph.sources]
    for fate in (fate for table in tables if replayed for fate in table.fates):
        fate.reason += f"; {_IN_A_REPLAY.get(fate.state, 'replay: fed once')}"
    totals = {n.name: list(_totals(model, n, first, last)) for n in example.graph.nodes if n.kind == "aggregate"}
    return Story(list(_chains(example.graph)), handling, tables, totals, _outputs(example))


# ---------------------------------------------------------------- rows


def _table(model: Watched, last: Evaluation, example: Example, source: Source) -> Table:
    header = ["k", *(["h"] if "h" in source.key else []), "g", "v"]
    fates = []
    for number, row in enumerate(source.rows, 1):
        state, reason = _fate(model, last, example, (source.name, number))
        fates.append(Fate(number, _cells(row, header), state, reason))
    return Table(source, header, fates)


def _cells(row: Row, header: list[str]) -> list[str]:
    cells = [cell(row[name]) or "null" for name in header]
    return [*cells[:-1], cells[-1] + ",more,and more" * bool(row.get("more"))]


def _fate(model: Watched, last: Evaluation, example: Example, origin: Origin) -> tuple[str, str]:
    letters = {(trigger, category) for name, number, trigger, category in example.letters if (name, number) == origin}
    triggers = sorted(category for trigger, category in letters if trigger)
    if triggers:
        nodes = sorted({failure.node for failure in model.seen if failure.record.origin == origin})
        if not nodes:
            return "failed", triggers[0]
        return "failed", "cannot be read" if nodes == [origin[0]] else f"in {', '.join(nodes)}"
    if origin in model.with_totals:
        with_total = next(f for f in model.seen if f.record.origin is None and origin in f.record.members)
        name = _aggregate_before(model.graph, with_total.node)
        group = _group(name, with_total.record.values)
        return "retracted", f"with the total {group} of {name.name}" + ("" if letters else ", no letter")
    if letters:
        return "withheld", _withheld_where(model, last, origin)
    there = _outputs_of(model, last, origin, withheld=False)
    if there:
        return "written", f"in {', '.join(there)}"
    for node in model.graph.nodes:
        if node.kind == "combine" and _has(last, node.reads[1], origin):
            return "looked up", f"by {node.name}"
        if node.kind == "transform" and _has(last, node.reads[0], origin) and not _has(last, node.name, origin):
            return "filtered", f"in {node.name}, no letter"
    raise ValueError(f"nobody knows what became of {origin} in: {example.rule}")


def _withheld_where(model: Watched, last: Evaluation, origin: Origin) -> str:
    if origin in model.collateral:
        return "with its group"
    at, still = (_outputs_of(model, last, origin, withheld=held) for held in (True, False))
    reasons = [f"from {', '.join(at)}"] if at else []
    if origin in last.absent:
        totals = [node.name for node in model.graph.nodes if origin in last.into_totals.get(node.name, ())]
        reasons.append(f"left out of {', '.join(totals)}")
    return "; ".join([*reasons, *([f"still in {', '.join(still)}"] if still else [])])


def _outputs_of(model: Watched, last: Evaluation, origin: Origin, *, withheld: bool) -> list[str]:
    """The outputs that write, or withhold, something that was made of a row."""
    return [
        output.name
        for output in model.graph.outputs
        if any(
            origin in record.members and model.withholds(output, record) == withheld
            for record in last.streams[output.name]
        )
    ]


def _has(last: Evaluation, stream: str, origin: Origin) -> bool:
    return any(origin in record.members for record in last.streams[stream])


# ---------------------------------------------------------------- totals and outputs


def _totals(model: Watched, node: Node, first: Evaluation, last: Evaluation) -> Iterator[Total]:
    left = {_group(node, record.values): written(record.values["v"]) for record in last.streams[node.name]}
    failed: dict[str, list[str]] = {}
    for failure in model.seen:
        if failure.record.origin is None and _aggregate_before(model.graph, failure.node) is node:
            failed.setdefault(_group(node, failure.record.values), []).append(failure.node)
    for record in first.streams[node.name]:
        group = _group(node, record.values)
        yield Total(group, written(record.values["v"]), failed.get(group, []), left.get(group))


def _group(aggregate: Node, values: dict[str, Any]) -> str:
    return " ".join(written(values[name]) for name in aggregate.options["group_by"]) or "all"


def _aggregate_before(graph: Graph, name: str) -> Node:
    node = next(node for node in graph.nodes if node.name == name)
    return node if node.kind == "aggregate" else _aggregate_before(graph, node.reads[0])


def _outputs(example: Example) -> list[Written]:
    sources = [replace(source, key=()) for source in example.graph.sources]
    plain = Model(Graph(sources, example.graph.nodes)).run().outputs
    found = []
    for name, after in example.outputs.items():
        before = plain[name]
        lines: list[tuple[str, str]] = []
        for kind, i, j, k, m in SequenceMatcher(None, before[1:], after[1:], autojunk=False).get_opcodes():
            lines += [("-", line) for line in before[1 + i : 1 + j] if kind != "equal"]
            lines += [(" " if kind == "equal" else "+", line) for line in after[1 + k : 1 + m]]
        found.append(Written(name, after[0], lines))
    return found


# ---------------------------------------------------------------- the graph


def _chains(graph: Graph) -> Iterator[str]:
    """`a → t: 60 / (v - 9) → lines`: one for each output, and for each stream that several nodes read."""
    nodes = {node["name"]: node for node in yaml.safe_load(graph.yaml())["nodes"]}
    readers = Counter(ref for node in graph.nodes for ref in node.reads)
    joined = {ref for node in graph.nodes if len(node.reads) > 1 for ref in node.reads}
    named = {source.name for source in graph.sources}
    named |= {node.name for node in graph.nodes if readers[node.name] != 1 or node.name in joined}
    for node in graph.nodes:
        if node.name not in named:
            continue
        steps = [_step(nodes[node.name])]
        while len(node.reads) == 1 and node.reads[0] not in named:
            node = next(other for other in graph.nodes if other.name == node.reads[0])
            steps.append(_step(nodes[node.name]))
        yield " → ".join([{"merge": " + ", "combine": " × "}.get(node.kind, "").join(node.reads), *reversed(steps)])


_FAILS = re.compile(r'^\w+ = if (.*) then "bad"\.to_int\(\) else 1$')


def _step(node: dict[str, Any]) -> str:
    name, config = node["name"], node["config"]
    lines = [line.removeprefix("emit ") for line in config.get("cxl", "").splitlines()]
    match node["type"]:
        case "output":
            policy = config.get("correlation_fanout_policy")
            return f"{name} (policy {policy})" if policy else str(name)
        case "merge":
            return f"{name}: merge"
        case "combine":
            carried = config["propagate_ck"]
            carried = carried if isinstance(carried, str) else f"named [{', '.join(carried['named'])}]"
            made = [line for line in lines if not re.fullmatch(r"(\w+) = d\.\1", line)]
            said = f"where {config['where']}, {'; '.join(made)}"
            said = re.sub(r"\b([db])\.", lambda found: f"{node['input'][found[1]]}.", said)
            return f"{name}: {said}, propagate_ck: {carried}"
        case "aggregate":
            return f"{name}: sum(v)" + (f" by {', '.join(config['group_by'])}" if config["group_by"] else "")
    said = "; ".join(_FAILS.sub(r"fails if \1", line) for line in lines)
    window = config.get("analytic_window")
    return f"{name}: {said}" + (f" by {', '.join(window['group_by'])}" if window else "")
