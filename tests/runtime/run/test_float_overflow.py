"""Finite floats with an infinite result: an error of the record, of its group, or of the query; and times as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clinker_spark.query.failures import QueryError
from clinker_spark.runtime.query.api import query

HEAD = """
pipeline: { name: test }
nodes:
  - type: source
    name: rows
    config: { type: csv, path: rows.csv, schema: { k: string, x: float, at: date_time } }
"""
NODES = """
  - { type: transform, name: made, input: rows, config: { cxl: "emit y = x * 10.0\\nemit text = at.to_string()" } }
  - { type: output, name: lines, input: made, config: { type: csv, path: lines.csv } }
  - { type: transform, name: small, input: rows, config: { cxl: "filter x < 10.0\nemit text = at.to_string()" } }
  - { type: output, name: json, input: small, config: { type: json, path: lines.json } }
  - { type: aggregate, name: sums, input: rows, config: { group_by: [k], cxl: "emit s = sum(x)\\nemit m = avg(x)" } }
  - { type: output, name: sums_out, input: sums, config: { type: csv, path: sums.csv } }
  - type: transform
    name: windowed
    input: rows
    config: { analytic_window: { group_by: [k] }, cxl: "emit w = $window.sum(x)" }
  - { type: output, name: windows, input: windowed, config: { type: csv, path: windows.csv } }
  - type: transform
    name: looked_up
    input: rows
    config: { analytic_window: { source: rows, group_by: [k] }, cxl: "emit w = $window.sum(x)" }
  - { type: output, name: lookups, input: looked_up, config: { type: csv, path: lookups.csv } }
  - type: query
    name: asked
    inputs: [rows]
    config: { query: "from r in rows select { k: r.k, y: r.x * 10.0 - 1.0 }" }
  - { type: output, name: asked_out, input: asked, config: { type: csv, path: asked.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_every_kind_of_node(bench: Any) -> None:
    bench.file(
        "rows.csv",
        "k,x,at\na,1e308,2024-01-02T03:04:05.5\na,1e308,2024-01-02T03:04:05\n"
        "b,1,2024-01-02T03:04:05.000001\nb,2,0999-01-02T03:04:05.120\n",
    )
    report = bench.run(HEAD + NODES)
    assert bench.text("lines.csv").splitlines()[1:] == [
        "b,1,2024-01-02T03:04:05.000001,10,2024-01-02 03:04:05.000001",
        "b,2,0999-01-02T03:04:05.120,20,0999-01-02 03:04:05.120",
    ]
    for record in json.loads(bench.text("lines.json")):
        assert record["text"] == record["at"].replace("T", " ")
    assert bench.text("sums.csv") == "k,s,m\nb,3,1.5\n"
    assert [line.split(",")[0] for line in bench.text("windows.csv").split("\n")[1:-1]] == ["b", "b"]
    assert [line.split(",")[0] for line in bench.text("lookups.csv").split("\n")[1:-1]] == ["b", "b"]
    assert bench.text("asked.csv") == "k,y\nb,9\nb,19\n"
    details = {(r["_cxl_dlq_stage"], r["_cxl_dlq_error_detail"]) for r in bench.letters()}
    assert {
        ("transform:made", "float overflow in multiplication"),
        ("transform:windowed", "float overflow in $window.sum"),
        ("transform:looked_up", "float overflow in $window.sum"),
        ("aggregate:sums", "float overflow in sum"),
    } <= details
    assert any(stage == "query:asked" and "float overflow" in detail for stage, detail in details)
    assert report.exit_code == 2


def test_queries_stop(spark: Any) -> None:
    frame = spark.createDataFrame([(1e308, 2.0), (1.0, 3.0)], "x double, y double")
    for text in (
        "from r in rows select { v: r.x * 10.0 }",
        "from r in rows select { v: 1.0 / (r.x * 10.0) }",
        "from r in rows select { v: r.x + r.x + r.y - r.x * r.y }",
        "from r in rows group by r.y > 0.0 into g select { s: sum(from a in g select a.x) * 2.0 }",
    ):
        with pytest.raises(Exception, match="float overflow"):
            query(text, {"rows": frame}).collect()
    good = query("from r in rows where r.x < 2.0 select { v: r.x * 10.0 - r.y / 0.5 }", {"rows": frame}).collect()
    assert [row.v for row in good] == [4.0]
    with pytest.raises(QueryError, match="float overflow"):
        query("let big = 1" + "0" * 308 + ".0\nbig * 10.0", {})
