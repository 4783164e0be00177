"""Generated pipelines over dirty data: every input record ends in exactly one place, whatever the partitioning and the
engine.

Each step is a CXL text and, beside it, what it does to a record in plain Python: an independent model.
"""

from __future__ import annotations

import csv
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.scan.csv import source as csv_source

Record = dict[str, Any]
BAD_INTS = ("", "x7", "1.5", "99999999999999999999")


class Failed(Exception):
    """The record must be a dead letter."""


class Dropped(Exception):
    """The record is filtered, which is allowed to lose it."""


@dataclass(frozen=True)
class Step:
    cxl: str
    model: Callable[[Record], None]


def _divide(r: Record) -> None:
    if r["a"] == 0:
        raise Failed
    r["q"] = int(100 / r["a"])


def _filter(r: Record) -> None:
    if not r["a"] % 5 != 0:
        raise Dropped


def _number(r: Record) -> None:
    if not r["c"].isdigit():
        raise Failed
    r["m"] = int(r["c"])


def _label(r: Record) -> None:
    r["label"] = "odd" if r["a"] % 2 else "even"


def _overwrite(r: Record) -> None:
    r["a"] += 1


STEPS = (
    Step("emit q = 100 / a", _divide),
    Step("filter a % 5 != 0", _filter),
    Step("emit m = c.to_int()", _number),
    Step('emit label = if a % 2 == 0 then "even" else "odd"', _label),
    Step("emit a = a + 1", _overwrite),
)


@dataclass
class Case:
    """A pipeline and its files."""

    text: str
    files: dict[str, list[list[str]]]
    chains: dict[str, list[Step]]
    shared: list[Step]
    limit: int

    def expected(self) -> tuple[dict[str, list[str]], dict[str, str], set[str]]:
        """(ids of each output in order, id -> file of the dead letters, ids that are filtered)."""
        outputs: dict[str, list[str]] = {"low": [], "high": []}
        letters: dict[str, str] = {}
        dropped: set[str] = set()
        for file, rows in self.files.items():
            for row in rows:
                try:
                    record = self._read(row)
                    for step in (*self.chains[file], *self.shared):
                        step.model(record)
                    outputs["low" if record["a"] < self.limit else "high"].append(record["id"])
                except Failed:
                    letters[row[0]] = file
                except Dropped:
                    dropped.add(row[0])
        return outputs, letters, dropped

    def _read(self, row: list[str]) -> Record:
        if len(row) != 3:
            raise Failed
        try:
            a = int(row[1])
        except ValueError:
            raise Failed from None
        if not -(2**63) <= a < 2**63:
            raise Failed
        return {"id": row[0], "a": a, "c": row[2]}


def generated(rng: random.Random) -> Case:
    """One or two sources, each with steps of its own, merged, with more steps, routed to two outputs."""
    files, chains, nodes, ends = {}, {}, [], []
    for s in range(rng.randint(1, 2)):
        name = f"s{s}"
        rows = []
        for i in range(rng.randint(0, 60)):
            row = [f"{name}-{i}", str(rng.randint(-3, 30)), rng.choice(["7", "12", "n/a", "", 'q "x", y'])]
            if rng.random() < 0.08:
                row[1] = rng.choice(BAD_INTS)
            if rng.random() < 0.04:
                row = row[: rng.choice([1, 2])] if rng.random() < 0.5 else [*row, "more"]
            rows.append(row)
        files[f"{name}.csv"] = rows
        schema = "schema: { id: string, a: int, c: string }"
        nodes.append(f"  - {{ type: source, name: {name}, config: {{ type: csv, path: {name}.csv, {schema} }} }}")
        chains[f"{name}.csv"] = [
            s
            for s in rng.sample(STEPS, rng.randint(0, 2))
            if "label" not in s.cxl and " q " not in s.cxl and " m " not in s.cxl
        ]
        end = name
        for k, step in enumerate(chains[f"{name}.csv"]):
            nodes.append(f"  - {{ type: transform, name: {name}_{k}, input: {end}, config: {{ cxl: '{step.cxl}' }} }}")
            end = f"{name}_{k}"
        ends.append(end)
    end = ends[0]
    if len(ends) > 1:
        nodes.append(f"  - {{ type: merge, name: both, inputs: [{', '.join(ends)}] }}")
        end = "both"
    shared = rng.sample(STEPS, rng.randint(0, 3))
    for k, step in enumerate(shared):
        nodes.append(f"  - {{ type: transform, name: t{k}, input: {end}, config: {{ cxl: '{step.cxl}' }} }}")
        end = f"t{k}"
    limit = rng.randint(0, 20)
    nodes.append(
        f"  - {{ type: route, name: r, input: {end}, config: {{ conditions: {{ low: a < {limit} }}, default: high }} }}"
    )
    for port in ("low", "high"):
        nodes.append(
            f"  - {{ type: output, name: {port}, input: r.{port}, config: {{ type: csv, path: {port}.csv }} }}"
        )
    text = "pipeline: { name: generated, engine: ENGINE }\nnodes:\n" + "\n".join(nodes)
    text += "\nerror_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    return Case(text, files, chains, shared, limit)


@contextmanager
def partitioned(spark: Any, partitions: int, adaptive: bool, split: int) -> Iterator[None]:
    """Other partitions: tiny splits of the files, another number after a shuffle, adaptive execution on or off."""
    before = {key: spark.conf.get(key) for key in ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")}
    defaults = dict(csv_source.read_csv.__kwdefaults__)
    csv_source.read_csv.__kwdefaults__.update(target=split, smallest=1)
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
    try:
        yield
    finally:
        csv_source.read_csv.__kwdefaults__.update(defaults)
        for key, value in before.items():
            spark.conf.set(key, value)


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
ONE, MANY = (1, True, 1 << 20), (7, False, 150)
WAYS = [(engine, *cut) for cut in (ONE, MANY) for engine in ("spark", "vector")]


@pytest.mark.parametrize("seed", range(12 if EVERYTHING else 3))
def test_every_record_ends_in_exactly_one_place(seed: int, tmp_path: Path, spark: Any) -> None:
    case = generated(random.Random(20261115 + seed))
    for name, rows in case.files.items():
        with open(tmp_path / name, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([["id", "a", "c"], *rows])
    outputs, letters, dropped = case.expected()
    seen: list[dict[str, Any]] = []
    for engine, partitions, adaptive, split in WAYS if EVERYTHING else WAYS[::3]:
        (tmp_path / "pipeline.yaml").write_text(case.text.replace("ENGINE", engine))
        with partitioned(spark, partitions, adaptive, split):
            plan = prepare(tmp_path / "pipeline.yaml")
            assert bool(plan.facts.flow.fragments) == (engine == "vector")
            report = run(plan, spark, Options())
        found = {port: [row["id"] for row in read(tmp_path / f"{port}.csv")] for port in ("low", "high")}
        dead = read(tmp_path / "dead.csv") if (tmp_path / "dead.csv").exists() else []
        assert found == outputs
        assert {row["id"]: row["_cxl_dlq_source_file"] for row in dead} == letters and len(dead) == len(letters)
        everywhere = [*found["low"], *found["high"], *letters, *dropped]
        assert sorted(everywhere) == sorted(row[0] for rows in case.files.values() for row in rows)
        ours = [[v for k, v in row.items() if k not in ("_cxl_dlq_id", "_cxl_dlq_timestamp")] for row in dead]
        numbers = [(n.name, n.took, n.passed, n.dropped, n.failed) for n in report.nodes]
        balances = [balance.as_dict() for balance in report.balances]
        files = {p: (tmp_path / f"{p}.csv").read_bytes() for p in ("low", "high")}
        seen.append({**files, "dead": ours, "numbers": numbers, "balances": balances})
    assert all(each == seen[0] for each in seen)
