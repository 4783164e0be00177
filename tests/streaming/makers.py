"""Made-up pipelines with stream joins, and the files that they read (`generated`)."""

from __future__ import annotations

import csv
import io
import json
import random
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.streaming.model import MS, START

Columns = dict[str, str]
"""Names and what they hold: text, number or time."""
SPAN = 30_000
"""So many milliseconds the records of a source are spread over."""
KINDS = ("inner", "left", "right", "full")
BOUNDS = (-9000, -4000, -1000, 0, 1000, 4000, 9000)
SUFFIXES = {"json": "jsonl", "csv": "csv", "parquet": "parquet"}


@dataclass(frozen=True)
class Flow:
    """The records between two nodes."""

    node: str
    columns: Columns
    time: str | None
    """The column with the time of the records, if they have one."""
    held: bool = False
    """Do they come from a join?"""


@dataclass
class Case:
    """A pipeline and its files."""

    seed: int
    nodes: list[str] = field(default_factory=list)
    files: dict[str, list[list[dict[str, Any]]]] = field(default_factory=dict)
    """By source: its records, file by file."""
    kinds: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    calls: int = 1
    """In so many calls the stream gets its files."""
    partitions: int = 1

    def text(self, place: str) -> str:
        head = f"pipeline: {{ name: case-{self.seed} }}\n"
        head += f"stream: {{ max_files: {1 + self.seed % 2}, partitions: {self.partitions} }}\n"
        head += f"error_handling: {{ strategy: continue, dlq: {{ path: {place}/dead.csv }} }}\nnodes:\n"
        return head + "".join(self.nodes).replace("PLACE", place)

    def write(self, folder: Path, call: int | None = None) -> None:
        """The files of all sources, or those that are there at a call."""
        for source, files in self.files.items():
            (folder / source).mkdir(parents=True, exist_ok=True)
            for i, records in enumerate(files):
                if call is None or i * self.calls // len(files) == call:
                    _write(folder / source / f"{i:04}.{SUFFIXES[self.kinds[source]]}", records)


def made(seed: int, *, wide: bool = False, joins: int = 10) -> Case:
    """The case of a seed."""
    return _WideMaker(seed, joins).make() if wide else _Maker(seed).make()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.case = Case(seed, calls=self.rng.choice((1, 1, 2, 3)), partitions=self.rng.choice((1, 1, 2)))
        self.number = 0
        self.same_delay = self.rng.random() < 0.7
        self.delay = self.rng.choice((0, 500, 3000))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def name(self, what: str) -> str:
        self.number += 1
        return f"{what}{self.number}"

    def make(self) -> Case:
        width = self.rng.choice((2, 2, 2, 3, 3, 4))
        flows = [self.before(self.source()) for _ in range(width)]
        if width == 4:
            one, other = self.join(flows[0], flows[1], last=False), self.join(flows[2], flows[3], last=False)
            flow = self.join(one, other, last=True)
        else:
            flow = flows[0]
            for i, other in enumerate(flows[1:], 2):
                pair = (flow, other) if self.chance(0.7) else (other, flow)
                flow = self.join(*pair, last=i == width)
                if i < width and self.chance(0.3):
                    flow = self.transform(flow, safe=True)
        self.after(flow)
        if self.chance(0.25):  # records that are not joined as well: a query of its own
            self.output(flows[0])
        return self.case

    # ------------------------------------------------------------ sources

    def source(self) -> Flow:
        name, kind = self.name("s"), self.rng.choice(("json", "json", "csv", "parquet"))
        delay = self.delay if self.same_delay else self.rng.choice((0, 500, 3000))
        options = "options: { format: ndjson }, " if kind == "json" else ""
        schema = "{ id: int, k: nullable(string), g: nullable(int), at: date_time, n: int }"
        self.case.nodes.append(
            f"  - type: source\n    name: {name}\n"
            f'    config: {{ type: {kind}, glob: "{name}/*", {options}watermark: {{ column: at, delay: {delay}ms }},'
            f" schema: {schema} }}\n"
        )
        self.case.kinds[name] = kind
        self.case.files[name] = self.records(delay)
        columns = {"id": "number", "k": "text", "g": "number?", "at": "time", "n": "number"}
        return Flow(name, columns, "at")

    def records(self, delay: int) -> list[list[dict[str, Any]]]:
        """In an order in which none is late, cut into files."""
        rng = self.rng
        count = 0 if self.chance(0.06) else rng.choice((15, 25, 40))  # nothing joins with nothing
        grid = rng.choice((1, 500, 1000))  # coarse grids make ties, and times exactly a window apart
        found = []
        for i in range(count):
            at = START + rng.randrange(0, SPAN, grid) * MS
            found.append({"id": i, "k": rng.choice(["a", "b", "c", None]), "at": at, "n": rng.randrange(6)})
            found[-1]["g"] = rng.choice((1, 2, None))
            if self.chance(0.1):
                found.append(dict(found[-1]))  # the same record once more
        found.sort(key=lambda record: record["at"] + rng.randrange(0, delay + 1) * MS)
        cuts = sorted(rng.randrange(len(found) + 1) for _ in range(rng.choice((0, 1, 3))))
        bounds = [0, *cuts, len(found)]
        return [found[a:b] for a, b in pairwise(bounds)]

    # ------------------------------------------------------------ nodes

    def before(self, flow: Flow) -> Flow:
        if self.chance(0.2):
            other = self.source()
            if self.case.kinds[flow.node] == self.case.kinds[other.node] or self.chance(0.5):
                name = self.name("both")
                self.case.nodes.append(f"  - {{ type: merge, name: {name}, inputs: [{flow.node}, {other.node}] }}\n")
                flow = Flow(name, flow.columns, flow.time)
            else:
                self.output(other)
        if self.chance(0.5):
            flow = self.transform(flow, safe=self.chance(0.6))
        if self.chance(0.2):
            flow = self.route(flow)[0]
        return flow

    def transform(self, flow: Flow, *, safe: bool) -> Flow:
        """Further columns and a filter; one that is not safe fails for some records."""
        name, new = self.name("t"), self.name("x")
        numbers = _of(flow, "number")
        texts = _of(flow, "text")
        lines = []
        columns = dict(flow.columns)
        if numbers and not safe:
            lines.append(f"emit {new} = 60 / {self.rng.choice(numbers)}")
            columns[new] = "number?"
        elif texts:
            lines.append(f'emit {new} = {self.rng.choice(texts)} ?? "-"')
            columns[new] = "text"
        if numbers and self.chance(0.4):
            lines.append(f"filter ({self.rng.choice(numbers)} ?? 3) != {self.rng.randrange(6)}")
        if not lines:
            return flow
        body = "".join(f"        {line}\n" for line in lines)
        self.case.nodes.append(
            f"  - type: transform\n    name: {name}\n    input: {flow.node}\n    config:\n      cxl: |\n{body}"
        )
        return replace(flow, node=name, columns=columns)

    def route(self, flow: Flow) -> list[Flow]:
        name, number = self.name("r"), self.rng.choice(_of(flow, "number") or ["1"])
        self.case.nodes.append(
            f"  - type: route\n    name: {name}\n    input: {flow.node}\n    config:\n      mode: exclusive\n"
            f"      conditions: {{ some: ({number} ?? 0) > 2 }}\n      default: rest\n"
        )
        return [replace(flow, node=f"{name}.{branch}") for branch in ("some", "rest")]

    def join(self, left: Flow, right: Flow, *, last: bool) -> Flow:
        rng, name = self.rng, self.name("j")
        kind = rng.choice(KINDS if last else KINDS[:3])
        what = [self.key(left, "text"), self.key(right, "text")]
        keys = [[what[0]], [what[1]]]
        if self.chance(0.25):
            keys[0].append(self.key(left, "number"))
            keys[1].append(self.key(right, "number"))
        more = self.terms(left, right)
        side = {"inner": 0, "left": 0, "right": 1, "full": None}[kind]
        if kind == "inner" and self.chance(0.4):
            side = rng.randrange(2)
            more += f", event_time: {('left', 'right')[side]}"
        prefixes = (self.name("l") + "_", self.name("r") + "_")
        columns: Columns = {}
        for i, flow in enumerate((left, right)):
            more += f", {('left', 'right')[i]}_prefix: {prefixes[i]}"
            kept = dict(flow.columns)
            if self.chance(0.3):
                kept = {name: kind for name, kind in kept.items() if self.chance(0.7) or name == flow.time}
                more += f", {('left', 'right')[i]}_columns: [{', '.join(kept)}]"
            columns |= {prefixes[i] + name: kind for name, kind in kept.items()}
        self.case.nodes.append(
            f"  - type: stream_join\n    name: {name}\n    input: {{ left: {left.node}, right: {right.node} }}\n"
            f"    config: {{ left_keys: [{', '.join(keys[0])}], right_keys: [{', '.join(keys[1])}],"
            f" time_window: {self.window()}, kind: {kind}{more} }}\n"
        )
        time_column = None if side is None else prefixes[side] + str((left, right)[side].time)
        return Flow(name, columns, time_column, held=True)

    def window(self) -> str:
        low, high = sorted(self.rng.choices(BOUNDS, k=2))
        return f"{high}ms" if self.chance(0.4) and high > 0 else f"{{ min: {low}ms, max: {high}ms }}"

    def terms(self, left: Flow, right: Flow) -> str:
        """A condition of pairs, and what is late."""
        rng, more = self.rng, ""
        if self.chance(0.3):
            terms = [f"{side}.{rng.choice(_of(flow, 'number'))}" for side, flow in (("left", left), ("right", right))]
            more += f', where: "({terms[0]} ?? 0) {rng.choice((">", "!=", "<="))} ({terms[1]} ?? 0)"'
        if self.chance(0.3):
            more += ", late_rule: window"
        if self.chance(0.2):
            more += ", late_data: reopen, allowed_lateness: 2s"
        return more

    def key(self, flow: Flow, kind: str) -> str:
        found = _of(flow, kind)
        return self.rng.choice([name for name in found if name.endswith(("k", "g", "n"))] or found)

    def after(self, flow: Flow) -> None:
        flows = [flow]
        if self.chance(0.4):
            flows = [self.transform(flow, safe=self.chance(0.5))]
        if self.chance(0.3):
            flows = self.route(flows[0])
        total = flow.time is not None and self.same_delay and self.chance(0.5)
        for found in flows:
            if total and found is flow:
                self.output(self.total(found))
            else:
                self.output(found)

    def total(self, flow: Flow) -> Flow:
        name = self.name("w")
        window = self.rng.choice(
            ("tumbling: { size: 7s }", "hopping: { size: 10s, slide: 4s }", "session: { gap: 900ms }")
        )
        number = self.rng.choice(_of(flow, "number") or ["1"])
        by = self.rng.choice(_of(flow, "text") or _of(flow, "number"))
        self.case.nodes.append(
            f"  - type: aggregate\n    name: {name}\n    input: {flow.node}\n    config:\n      group_by: [{by}]\n"
            f"      documents: together\n      time_window: {{ {window} }}\n"
            f"      cxl: |\n        emit rows = count(*)\n        emit total = sum({number})\n"
            f"        emit share = 12 / (max({number}) - 4)\n"
        )
        return Flow(name, {by: "text", "rows": "number", "total": "number", "share": "number"}, None, held=True)

    def output(self, flow: Flow) -> None:
        name, kind = self.name("out"), self.rng.choice(("json", "csv"))
        options = ", options: { format: ndjson }" if kind == "json" else ""
        self.case.nodes.append(
            f"  - type: output\n    name: {name}\n    input: {flow.node}\n"
            f"    config: {{ type: {kind}, path: PLACE/{name}.{kind}{options} }}\n"
        )
        self.case.outputs.append(f"{name}.{kind}")


class _WideMaker(_Maker):
    """Three sources, and many ways to join two or three of them: `x_id`, `y_id`, `z_id` and the number of the way."""

    def __init__(self, seed: int, joins: int) -> None:
        super().__init__(seed)
        self.joins = joins
        self.case.calls = self.rng.choice((1, 2))

    def make(self) -> Case:
        sources = [self.source() for _ in range(3)]
        sources = [self.transform(flow, safe=self.chance(0.6)) if self.chance(0.5) else flow for flow in sources]
        ways = [self.way(i, sources) for i in range(self.joins)]
        self.case.nodes.append(f"  - {{ type: merge, name: all, inputs: [{', '.join(ways)}] }}\n")
        self.output(Flow("all", {}, None, held=True))
        return self.case

    def way(self, number: int, sources: list[Flow]) -> str:
        flows = self.rng.sample(sources, self.rng.choice((2, 2, 3)))
        flow = self.joined(flows[0], flows[1], (["id"], ["id"]), ("x_", "y_"), last=len(flows) == 2)
        if len(flows) == 3:
            own, other = ([name for name in flow.columns if name.endswith("_id")], ["id"])
            pair, columns, prefixes = (flow, flows[2]), (own, other), ("", "z_")
            if self.chance(0.4):
                pair, columns, prefixes = pair[::-1], columns[::-1], prefixes[::-1]
            flow = self.joined(*pair, columns, prefixes, last=True)
        lines = [f"emit way = {number}", *(["emit z_id = x_id"] if len(flows) == 2 else [])]
        if self.chance(0.3):
            lines.append(f"filter (y_id ?? 1) != {self.rng.randrange(20)}")
        name, body = self.name("way"), "".join(f"        {line}\n" for line in lines)
        self.case.nodes.append(
            f"  - type: transform\n    name: {name}\n    input: {flow.node}\n    config:\n      cxl: |\n{body}"
        )
        return name

    def joined(
        self, left: Flow, right: Flow, wanted: tuple[list[str], list[str]], prefixes: tuple[str, str], *, last: bool
    ) -> Flow:
        """A join with these columns; with keys and time as well, when another one follows."""
        rng, name = self.rng, self.name("j")
        kind = rng.choice(KINDS if last else KINDS[:3])
        keys = [[self.key(left, "text")], [self.key(right, "text")]]
        if self.chance(0.25):
            keys[0].append(self.key(left, "number"))
            keys[1].append(self.key(right, "number"))
        side = {"inner": 0, "left": 0, "right": 1, "full": None}[kind]
        if kind == "inner" and self.chance(0.4):
            side = 1
        more = self.terms(left, right) + ("" if kind != "inner" else f", event_time: {('left', 'right')[side or 0]}")
        columns: Columns = {}
        for i, (flow, what) in enumerate(((left, wanted[0]), (right, wanted[1]))):
            kept = what if last else [*what, "k", "n", *(["at"] if i == side else [])]
            more += (
                f", {('left', 'right')[i]}_prefix: '{prefixes[i]}', {('left', 'right')[i]}_columns: [{', '.join(kept)}]"
            )
            columns |= {prefixes[i] + column: flow.columns[column] for column in kept}
        self.case.nodes.append(
            f"  - type: stream_join\n    name: {name}\n    input: {{ left: {left.node}, right: {right.node} }}\n"
            f"    config: {{ left_keys: [{', '.join(keys[0])}], right_keys: [{', '.join(keys[1])}],"
            f" time_window: {self.window()}, kind: {kind}{more} }}\n"
        )
        return Flow(name, columns, None if side is None else f"{prefixes[side]}at", held=True)


def _of(flow: Flow, kind: str) -> list[str]:
    return [name for name, held in flow.columns.items() if held.rstrip("?") == kind]


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        kinds = {"id": pa.int64(), "k": pa.string(), "g": pa.int64(), "at": pa.timestamp("us"), "n": pa.int64()}
        table = {name: pa.array([record[name] for record in records], kind) for name, kind in kinds.items()}
        pq.write_table(pa.table(table), path)
        return
    shown = [{**record, "at": record["at"].isoformat(timespec="milliseconds")} for record in records]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in shown))
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, ["id", "k", "g", "at", "n"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(shown)
    path.write_text(text.getvalue())
