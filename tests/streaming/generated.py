"""Pipelines with stream joins, made up: the finite run, and the stream that is drained in several calls and flushed,
must give the same records to every output, and as many dead letters.

A case is a seed. `python -m tests.streaming.generated --seeds 0:60` runs them one after the other in one session and
says which differ; `--keep` leaves their folders.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import io
import json
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.streaming.run import StreamOptions, run_stream
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
                if call is None or i % self.calls == call:
                    _write(folder / source / f"{i:04}.{SUFFIXES[self.kinds[source]]}", records)


def made(seed: int) -> Case:
    """The case of a seed."""
    return _Maker(seed).make()


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
        rng, count = self.rng, self.rng.choice((0, 8, 20, 30))
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
        return [found[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]

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
        low, high = sorted(rng.choices(BOUNDS, k=2))
        window = f"{high}ms" if self.chance(0.4) and high > 0 else f"{{ min: {low}ms, max: {high}ms }}"
        more = ""
        if self.chance(0.3):
            terms = [f"{side}.{rng.choice(_of(flow, 'number'))}" for side, flow in (("left", left), ("right", right))]
            more += f', where: "({terms[0]} ?? 0) {rng.choice((">", "!=", "<="))} ({terms[1]} ?? 0)"'
        if self.chance(0.3):
            more += ", late_rule: window"
        if self.chance(0.2):
            more += ", late_data: reopen, allowed_lateness: 2s"
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
            f" time_window: {window}, kind: {kind}{more} }}\n"
        )
        time_column = None if side is None else prefixes[side] + str((left, right)[side].time)
        return Flow(name, columns, time_column, held=True)

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


# ------------------------------------------------------------ both ways


@dataclass(frozen=True)
class Outcome:
    """What came out of a case."""

    records: dict[str, Counter[str]]
    letters: int
    late: int = 0


Between = Callable[[int], None]


def finite(case: Case, folder: Path, spark: SparkSession) -> Outcome:
    """The run over all files."""
    (folder / "finite.yaml").write_text(case.text("finite"))
    case.write(folder)
    run(prepare(folder / "finite.yaml"), spark)
    return _outcome(case, folder / "finite", "", 0)


def streamed(case: Case, folder: Path, spark: SparkSession, between: Between = lambda call: None) -> Outcome:
    """The stream, in as many calls as the case says, and flushed in the last one."""
    for source in case.files:
        shutil.rmtree(folder / source, ignore_errors=True)
    (folder / "stream.yaml").write_text(case.text("stream"))
    late = 0
    for call in range(case.calls):
        case.write(folder, call)
        between(call)
        options = StreamOptions(once=True, flush=call == case.calls - 1)
        late += run_stream(prepare(folder / "stream.yaml"), spark, options, lambda event, details: None).late
    return _outcome(case, folder / "stream", "-[0-9]*", late)


def _outcome(case: Case, place: Path, more: str, late: int) -> Outcome:
    records = {}
    for output in case.outputs:
        stem, _, kind = output.partition(".")
        records[output] = Counter(
            line for path in sorted(place.glob(f"{stem}{more}.{kind}")) for line in _records(path, kind)
        )
    letters = sum(1 for path in place.glob("dead*.csv") for _ in _records(path, "csv"))
    return Outcome(records, letters, late)


def _records(path: Path, kind: str) -> Iterator[str]:
    if kind == "json":
        yield from (json.dumps(json.loads(line), sort_keys=True) for line in path.read_text().splitlines())
        return
    with open(path, newline="") as file:
        yield from (json.dumps(row, sort_keys=True) for row in csv.DictReader(file))


def difference(one: Outcome, other: Outcome) -> str:
    """What the finite run and the stream do not have in common; empty for nothing."""
    found = []
    for output, records in one.records.items():
        missing, extra = records - other.records[output], other.records[output] - records
        if missing or extra:
            shown = [*(f"  - {line}" for line in missing), *(f"  + {line}" for line in extra)]
            found.append(f"{output}: {missing.total()} missing, {extra.total()} too many of {records.total()}")
            found += shown[:6]
    if one.letters != other.letters:
        found.append(f"{one.letters} dead letters, and {other.letters} of the stream")
    if other.late:
        found.append(f"{other.late} late")
    return "\n".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:20")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    from clinker_spark.spark.session.sessions import session
    from tests.conftest import QUICK_JVM

    spark = session("local[2]", app_name="generated", conf={"spark.driver.memory": "2g"}, java_options=QUICK_JVM)
    first, _, last = given.seeds.partition(":")
    different = pairs = 0
    for seed in range(int(first), int(last or int(first) + 1)):
        folder = Path(tempfile.mkdtemp(prefix=f"stream-case-{seed}-"))
        begin, said, case = dt.datetime.now(), "", made(seed)
        clock = time.perf_counter()
        try:
            one = finite(case, folder, spark)
            said = difference(one, streamed(case, folder, spark))
            rows = sum(records.total() for records in one.records.values())
            pairs += rows
        except Exception as error:
            rows, said = -1, f"{type(error).__name__}: {error}"[:3000]
        different += bool(said)
        print(
            f"{begin:%H:%M:%S} seed {seed}: {rows} records, {case.calls} call(s), {time.perf_counter() - clock:.1f} s"
            + (f"  DIFFERENT in {folder}\n{said}" if said else ""),
            flush=True,
        )
        if not said and not given.keep:
            shutil.rmtree(folder)
    print(f"{different} different, {pairs} records in all")


if __name__ == "__main__":
    main()
