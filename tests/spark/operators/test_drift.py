"""Undeclared columns through every node, by the table of the specification: who passes them on, and who ends them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from tests.support.workbench import Workbench

BODY = """
_compose:
  name: body
  inputs: { rows: { schema: { id: int, k: string } } }
  outputs: { out: twice, totals: total }
nodes:
  - { type: transform, name: twice, input: rows, config: { cxl: "emit twice = id * 2" } }
  - { type: aggregate, name: total, input: rows, config: { group_by: [k], cxl: "emit n = count(*)" } }
"""
PIPELINE = """
pipeline: { name: table }
nodes:
  - { type: source, name: s, config: { type: json, path: s.json, schema: { id: int, k: string } } }
  - { type: source, name: s2, config: { type: json, path: s2.json, schema: { id: int, k: string } } }
  - { type: source, name: w, config: { type: fixed_width, path: w.txt, schema: [{ name: k, type: string, width: 1 }] } }
  - { type: transform, name: transform, input: s, config: { cxl: "filter id > 0\\nemit made = id + 1" } }
  - type: transform
    name: window
    input: s
    config: { analytic_window: { group_by: [k] }, cxl: "emit n = $window.count()" }
  - { type: aggregate, name: aggregate, input: s, config: { group_by: [k], cxl: "emit n = count(*)" } }
  - { type: route, name: route, input: s, config: { conditions: { odd: "id %% 2 == 1" }, default: even } }
  - { type: merge, name: merge, inputs: [s, s2] }
  - type: combine
    name: combine
    input: { a: s, b: s2 }
    config: { where: "a.k == b.k", match: first, on_miss: skip, propagate_ck: driver, cxl: "emit id = a.id" }
  - type: combine
    name: fixed
    input: { a: s, b: w }
    config: { where: "a.k == b.k", match: first, on_miss: skip, propagate_ck: driver, cxl: "emit id = a.id" }
  - { type: composition, name: call, use: ./body.comp.yaml, inputs: { rows: s } }
%s
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
OUT = "  - {{ type: output, name: o{i}, input: {node}, config: {{ type: json, path: out/{i}.json }} }}\n"
EXTRA = {"note": "x", "n5": 5}
TABLE: dict[str, list[dict[str, object]]] = {
    "transform": [{"id": 1, "k": "a", "made": 2, **EXTRA}, {"id": 2, "k": "a", "made": 3}],
    "window": [{"id": 1, "k": "a", "n": 2, **EXTRA}, {"id": 2, "k": "a", "n": 2}],
    "aggregate": [{"k": "a", "n": 2}],
    "route.odd": [{"id": 1, "k": "a", **EXTRA}],
    "route.even": [{"id": 2, "k": "a"}],
    "merge": [{"id": 1, "k": "a", **EXTRA}, {"id": 2, "k": "a"}, {"id": 9, "k": "a", "build": True}],
    "combine": [{"id": 1, **EXTRA}, {"id": 2}],
    "fixed": [{"id": 1, **EXTRA}, {"id": 2}],
    "call.out": [{"id": 1, "k": "a", "twice": 2, **EXTRA}, {"id": 2, "k": "a", "twice": 4}],
    "call.totals": [{"k": "a", "n": 2}],
}


def test_the_propagation_table(bench: Workbench) -> None:
    bench.file("body.comp.yaml", BODY)
    bench.file(
        "s.json", json.dumps([{"id": 1, "k": "a", **EXTRA}, {"id": 2, "k": "a"}, {"id": "bad", "k": "a", "z": 1}])
    )
    bench.file("s2.json", json.dumps([{"id": 9, "k": "a", "build": True}]))
    bench.file("w.txt", "a\n")
    told: list[str] = []
    outputs = "".join(OUT.format(i=i, node=node) for i, node in enumerate(TABLE))
    bench.file("p.yaml", PIPELINE % outputs)

    def listen(event: str, details: dict[str, object]) -> None:
        if event == "log":
            told.append(f"{details['name']}: {details['message']}")

    run(prepare(bench.folder / "p.yaml"), bench.spark, Options(), listen)
    found = {node: json.loads(bench.text(f"out/{i}.json")) for i, node in enumerate(TABLE)}
    assert found == TABLE
    assert all("z" not in letter and "note" not in letter for letter in bench.letters())
    assert len(told) == 1 and told[0].startswith("w: ") and "auto_widen" in told[0]


FORMATS = """
pipeline: { name: formats }
nodes:
  - { type: source, name: s, config: { type: json, glob: "in/*.json", schema: { id: int } } }
  - { type: output, name: a, input: s, config: { type: csv, path: out/a.csv } }
  - { type: output, name: b, input: s, config: { type: xml, path: out/b.xml } }
  - { type: output, name: c, input: s, config: { type: parquet, path: out/c.parquet } }
  - type: output
    name: d
    input: s
    config: { type: fixed_width, path: out/d.txt, schema: [{ name: id, type: int, width: 3 }] }
  - { type: output, name: e, input: s, config: { type: csv, path: out/e.csv, include_unmapped: false, mapping: [id] } }
  - { type: output, name: f, input: s, config: { type: csv, path: out/f.csv, exclude: [q] } }
"""


def test_outputs_write_the_union_in_the_order_in_which_columns_are_first_seen(bench: Workbench) -> None:
    bench.file("in/1.json", '{"id": 1, "q": 5}\n{"id": 2, "p": "x"}\n')
    bench.file("in/2.json", '{"r": {"s": 1.5}, "id": 3, "q": null}\n')
    bench.file("p.yaml", FORMATS)
    told: list[str] = []

    def listen(event: str, details: dict[str, object]) -> None:
        if event == "log":
            told.append(f"{details['name']}: {details['message']}")

    run(prepare(bench.folder / "p.yaml"), bench.spark, Options(), listen)
    assert len(told) == 1 and told[0].startswith("d: ") and " q, p, r.s are not written" in told[0]
    assert bench.text("out/a.csv") == "id,q,p,r.s\n1,5,,\n2,,x,\n3,,,1.5\n"
    assert bench.text("out/b.xml").startswith("<Root><Record><id>1</id><q>5</q></Record>")
    assert pq.read_table(bench.folder / "out/c.parquet").column_names == ["id", "q", "p", "r.s"]
    assert bench.text("out/d.txt") == "1  \n2  \n3  \n" or bench.text("out/d.txt") == "  1\n  2\n  3\n"
    assert bench.text("out/e.csv") == "id\n1\n2\n3\n"
    assert bench.text("out/f.csv").splitlines()[0] == "id,p,r.s"


def test_headers_that_are_known_need_no_job(bench: Workbench, spark: SparkSession) -> None:
    """A thousand files with columns of their own: one job, and the names come from a look at the files before it."""
    for i in range(20):
        bench.file(f"in/{i:03}.json", f'{{"id": {i}, "x{i % 7}": {i}}}\n')
    context = bench.spark.sparkContext
    context.setJobGroup("known headers", "a run whose jobs are counted")
    pipeline = FORMATS.split("  - { type: output, name: b")[0]
    bench.run(pipeline)
    jobs = context.statusTracker().getJobIdsForGroup("known headers")
    rows = list(csv.reader(bench.text("out/a.csv").splitlines()))
    assert rows[0] == ["id", *(f"x{i}" for i in range(7))] and len(rows) == 21
    assert len(jobs) == 1


def test_a_map_is_refused_with_both_remedies(bench: Workbench) -> None:
    bench.file("in.json", '{"id": 1, "m": {"a": 1}}\n')
    text = """
pipeline: { name: maps }
nodes:
  - { type: source, name: s, config: { type: json, path: in.json, schema: { id: int, m: map } } }
  - { type: output, name: o, input: s, config: { type: csv, path: o.csv } }
"""
    with pytest.raises(ClinkerError) as error:
        bench.run(text)
    message = str(error.value)
    assert "include_unmapped" in message and "emit" in message
    bench.run(text.replace(", m: map", ""))
    assert bench.text("o.csv") == "id,m.a\n1,1\n"


def test_programs_cannot_name_the_hidden_column(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        "pipeline: { name: p }\nnodes:\n"
        "  - { type: source, name: s, config: { type: csv, path: s.csv, schema: { id: int } } }\n"
        "  - { type: transform, name: t, input: s, config: { cxl: 'emit x = $widened' } }\n"
        "  - { type: output, name: o, input: t, config: { type: csv, path: o.csv } }\n"
    )
    with pytest.raises(ClinkerError) as error:
        prepare(tmp_path / "p.yaml")
    assert error.value.diagnostics[0].code in ("E202", "E203")
