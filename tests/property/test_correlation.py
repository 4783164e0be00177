"""Generated pipelines with correlation keys and failures at every operator, against a model in plain Python.

The model is the definition: take back what failed, run again over what is left, until nothing fails; hold back the
groups that have a failure. It knows nothing of Spark, and computes everything from the records again each time.
"""

from __future__ import annotations

import csv
import os
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
Origin = tuple[str, int]


@dataclass
class Record:
    values: dict[str, Any]
    source: str | None
    key: str | None
    """The correlation key; None for what belongs to no group."""
    members: frozenset[Origin]
    groups: frozenset[tuple[str, str]] = frozenset()
    """What was joined belongs to the groups of all sources that its keys come from."""
    built: Origin | None = None


@dataclass
class Case:
    """What a generated pipeline has."""

    sources: list[str]
    divides: bool
    filters: bool
    windows: bool
    lines: bool
    strict: bool
    routes: bool
    joined: str | None
    """Is there a combine with a second source, and which keys does it propagate?"""
    on_miss: str
    relaxed: int | None
    """Totals below this fail, after a relaxed aggregate; None: there is none."""
    scope: str
    rows: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)


def generate(rng: random.Random) -> Case:
    case = Case(
        sources=["a", "b"] if rng.random() < 0.5 else ["a"],
        divides=rng.random() < 0.5,
        filters=rng.random() < 0.5,
        windows=rng.random() < 0.5,
        lines=rng.random() < 0.6,
        strict=rng.random() < 0.5,
        relaxed=rng.choice([None, 0, 40, 90]),
        scope=rng.choice(["record", "record", "group"]),
        routes=rng.random() < 0.4,
        joined=rng.choice([None, "driver", "all"]),
        on_miss=rng.choice(["skip", "null_fields"]),
    )
    if case.joined == "all":
        case.strict = False  # its group_by would have to cover the keys of both sides
    if not case.lines and not case.strict and case.relaxed is None:
        case.lines = True
    for name in case.sources:
        rows = []
        for _ in range(rng.randint(15, 40)):
            value = "bad" if rng.random() < 0.06 else str(rng.randint(1, 30))
            rows.append((f"k{rng.randint(0, 12)}", rng.choice("xyz"), value))
        case.rows[name] = rows
    if case.joined:
        case.rows["p"] = [
            (g, "bad" if rng.random() < 0.2 else str(rng.randint(1, 30)), "") for g in rng.choices("xyz", k=4)
        ]
    return case


# ---------------------------------------------------------------- the model


class Model:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.removed: set[Origin] = set()
        self.triggers: list[Origin | None] = []
        self.taken: set[Origin] = set()
        self.dirty: set[tuple[str, str]] = set()
        self.matched: set[Origin] = set()
        """Records that were matched with one that failed."""

    def run(self) -> tuple[dict[str, list[tuple[Any, ...]]], set[Origin]]:
        while True:
            outputs, failures = self.evaluate()
            if not failures:
                break
            for record in failures:
                self.fail(record)
        held: set[Origin] = set()
        kept: dict[str, list[tuple[Any, ...]]] = {}
        for name, records in outputs.items():
            kept[name] = []
            for record in records:
                if self.is_held(record):
                    held |= record.members
                else:
                    kept[name].append(tuple(record.values.values()))
        return kept, (held | self.taken) - {t for t in self.triggers if t is not None}

    def fail(self, record: Record) -> None:
        if record.source is not None:
            [origin] = record.members
            self.triggers.append(origin)
            groups = record.groups or {(record.source, record.key)}
            self.dirty |= {group for group in groups if group[1] is not None}
        else:
            self.triggers.append(None)
            self.taken |= record.members
            groups = record.groups or {(s, self.key_of((s, row))) for s, row in record.members}
            if record.key is not None:
                self.dirty |= {(s, record.key) for s in self.case.sources}
        if record.built is not None:
            self.matched.add(record.built)
        self.removed |= record.members
        if self.case.scope == "group":
            for source, key in groups:
                whole = {(source, i) for i, row in enumerate(self.case.rows[source], 1) if row[0] == key}
                self.taken |= whole
                self.removed |= whole

    def key_of(self, origin: Origin) -> str:
        return self.case.rows[origin[0]][origin[1] - 1][0]

    def is_held(self, record: Record) -> bool:
        if record.key is None:
            return False
        if record.groups:
            return bool(record.groups & self.dirty)
        if record.source is not None:
            return (record.source, record.key) in self.dirty
        return any((s, record.key) in self.dirty for s in self.case.sources)

    def evaluate(self) -> tuple[dict[str, list[Record]], list[Record]]:
        failures: list[Record] = []
        stream: list[Record] = []
        for name in self.case.sources:
            for i, (key, group, value) in enumerate(self.case.rows[name], 1):
                if (name, i) not in self.removed:
                    values = {"id": key, "g": group, "v": value}
                    stream.append(Record(values, name, key, frozenset({(name, i)})))
        good = []
        for record in stream:
            if record.values["v"] == "bad":
                failures.append(record)
                continue
            record.values["v"] = int(record.values["v"])
            if self.case.divides:
                if record.values["v"] == 13:
                    failures.append(record)
                    continue
                record.values["d"] = 100 // abs(record.values["v"] - 13)
            if self.case.filters and record.values["v"] % 5 == 0:
                continue
            good.append(record)
        if self.case.windows:
            totals: dict[str, int] = {}
            for record in good:
                totals[record.values["g"]] = totals.get(record.values["g"], 0) + record.values["v"]
            for record in good:
                record.values["w"] = totals[record.values["g"]]
        if self.case.joined:
            good = self.join(good, failures)
        outputs: dict[str, list[Record]] = {}
        if self.case.lines:
            outputs["lines"] = [r for r in good if not self.case.routes or r.values["v"] <= 15]
            if self.case.routes:
                outputs["big"] = [r for r in good if r.values["v"] > 15]
        if self.case.strict:
            outputs["strict"] = self.groups(good, "id", keep=True)
        if self.case.relaxed is not None:
            outputs["relaxed"] = []
            for record in self.groups(good, "g", keep=False):
                if record.values["total"] < self.case.relaxed:
                    failures.append(record)
                else:
                    record.values["ok"] = 1
                    outputs["relaxed"].append(record)
        return outputs, failures

    def join(self, records: list[Record], failures: list[Record]) -> list[Record]:
        prices: dict[str, tuple[int, int]] = {}
        for i, (group, price, _) in enumerate(self.case.rows["p"], 1):
            if ("p", i) in self.removed:
                continue
            if price == "bad":
                failures.append(Record({}, "p", group, frozenset({("p", i)})))
            else:
                prices.setdefault(group, (int(price), i))
        result = []
        for record in records:
            groups = {(s, record.key) for s in self.case.sources}
            group = record.values["g"]
            found = prices.get(group)
            values = {name: record.values[name] for name in ("id", "g", "v")}
            if found is None:
                if self.case.on_miss == "null_fields":
                    result.append(replace(record, values={**values, "cost": ""}, groups=frozenset(groups)))
                continue
            if self.case.joined == "all":
                groups.add(("p", group))
            made = replace(record, values=values, groups=frozenset(groups), built=("p", found[1]))
            if values["v"] == found[0]:
                failures.append(made)
                continue
            values["cost"] = 100 // abs(values["v"] - found[0])
            result.append(made)
        return result

    def groups(self, records: list[Record], by: str, *, keep: bool) -> list[Record]:
        found: dict[str, list[Record]] = {}
        for record in records:
            found.setdefault(record.values[by], []).append(record)
        result = []
        for name, members in found.items():
            values = {by: name, "total": sum(r.values["v"] for r in members)}
            everyone = frozenset(o for r in members for o in r.members)
            behind = frozenset(g for r in members for g in r.groups)
            result.append(Record(values, None, name if keep else None, everyone, behind))
        return result


# ---------------------------------------------------------------- the pipeline


def pipeline(case: Case) -> str:
    lines = ["pipeline: { name: p }", "nodes:"]
    for name in case.sources:
        schema = "{ id: string, g: string, v: string }"
        config = f"{{ type: csv, path: {name}.csv, correlation_key: id, schema: {schema} }}"
        lines.append(f"  - {{ type: source, name: {name}, config: {config} }}")
    reads = "a"
    if len(case.sources) > 1:
        lines.append("  - { type: merge, name: m, inputs: [a, b] }")
        reads = "m"
    program = ["emit v = v.to_int()"]
    if case.divides:
        program.append("emit d = (100 / (v - 13).abs()).to_int()")
    if case.filters:
        program.append("filter v % 5 != 0")
    lines += ["  - type: transform", "    name: parsed", f"    input: {reads}", "    config:", "      cxl: |"]
    lines += [f"        {line}" for line in program]
    reads = "parsed"
    if case.windows:
        config = "{ analytic_window: { group_by: [g] }, cxl: emit w = $window.sum(v) }"
        lines.append(f"  - {{ type: transform, name: summed, input: parsed, config: {config} }}")
        reads = "summed"
    if case.joined:
        schema = "{ g: string, price: int, note: string }"
        config = f"{{ type: csv, path: p.csv, correlation_key: g, schema: {schema} }}"
        lines.append(f"  - {{ type: source, name: p, config: {config} }}")
        lines += ["  - type: combine", "    name: priced", f"    input: {{ s: {reads}, p: p }}", "    config:"]
        lines += [f"      on_miss: {case.on_miss}", f"      propagate_ck: {case.joined}", "      where: s.g == p.g"]
        lines += ["      cxl: |", *(f"        emit {name} = s.{name}" for name in ("id", "g", "v"))]
        lines.append("        emit cost = (100 / (s.v - p.price).abs()).to_int()")
        reads = "priced"
    if case.lines and case.routes:
        config = "{ conditions: { large: v > 15 }, default: small }"
        lines.append(f"  - {{ type: route, name: r, input: {reads}, config: {config} }}")
        for name, port in (("lines", "small"), ("big", "large")):
            config = f"{{ type: csv, path: {name}.csv }}"
            lines.append(f"  - {{ type: output, name: {name}, input: r.{port}, config: {config} }}")
    elif case.lines:
        lines.append(f"  - {{ type: output, name: lines, input: {reads}, config: {{ type: csv, path: lines.csv }} }}")
    if case.strict:
        config = r'{ group_by: [id], cxl: "emit id = id\nemit total = sum(v)" }'
        lines.append(f"  - {{ type: aggregate, name: by_id, input: {reads}, config: {config} }}")
        lines.append("  - { type: output, name: strict, input: by_id, config: { type: csv, path: strict.csv } }")
    if case.relaxed is not None:
        config = r'{ group_by: [g], cxl: "emit g = g\nemit total = sum(v)" }'
        lines.append(f"  - {{ type: aggregate, name: by_g, input: {reads}, config: {config} }}")
        check = f'if total < {case.relaxed} then \\"low\\".to_int() else 1'
        lines.append(f'  - {{ type: transform, name: checked, input: by_g, config: {{ cxl: "emit ok = {check}" }} }}')
        lines.append("  - { type: output, name: relaxed, input: checked, config: { type: csv, path: relaxed.csv } }")
    handling = f"strategy: continue, retraction_scope: {case.scope}, dlq: {{ path: dead.csv }}"
    return "\n".join([*lines, f"error_handling: {{ {handling} }}", ""])


@pytest.mark.parametrize("seed", range(40) if EVERYTHING else (4,))
def test_output_is_a_run_without_what_was_taken_back(spark: Any, tmp_path: Path, seed: int) -> None:
    case = generate(random.Random(seed))
    for name, rows in case.rows.items():
        with open(tmp_path / f"{name}.csv", "w", newline="") as file:
            header = ("g", "price", "note") if name == "p" else ("id", "g", "v")
            csv.writer(file, lineterminator="\n").writerows([header, *rows])
    (tmp_path / "p.yaml").write_text(pipeline(case))
    report = run(prepare(tmp_path / "p.yaml"), spark, Options())
    model = Model(case)
    outputs, others = model.run()
    for name, records in outputs.items():
        with open(tmp_path / f"{name}.csv", newline="") as file:
            found = list(csv.reader(file))[1:]
        assert found == [[str(value) for value in record] for record in records], (name, case)
    letters = []
    if report.exit_code == 2:
        with open(tmp_path / "dead.csv", newline="") as file:
            letters = list(csv.DictReader(file))
    triggers = sorted(_origin(row) for row in letters if row["_cxl_dlq_trigger"] == "true")
    assert triggers == sorted(("<merged>", 0) if t is None else t for t in model.triggers)
    assert sorted(_origin(row) for row in letters if row["_cxl_dlq_trigger"] == "false") == sorted(others)
    bad = model.matched | {_origin(row) for row in letters}
    cursors = {
        name: max((i for i in range(1, len(rows) + 1) if (name, i) not in bad), default=0)
        for name, rows in case.rows.items()
    }
    assert report.rollback.rollback_cursors == {name: row for name, row in cursors.items() if row}


def _origin(row: dict[str, str]) -> Origin:
    return row["_cxl_dlq_source_name"], int(row["_cxl_dlq_source_row"] or 0)
