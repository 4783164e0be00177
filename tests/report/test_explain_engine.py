"""`--explain` says for every node whether Python touches its records, and what the lowered program does agrees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinker_spark.cxl.lower.lowering import WindowSpec
from clinker_spark.cxl.lower.statements import lower_program
from clinker_spark.cxl.system import default_context
from clinker_spark.plan.nodes.transform import TransformPlan
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain

WAYS = {
    "a builtin": 'emit d = (text + "1").to_date(text)',
    "inside an expression": 'emit d = if id > 1 then text.to_date(text).to_string() else "x"',
    "a pattern": 'emit m = text.matches("(a+)+b")',
    "an exact quotient": "emit q = money / money",
    "a dynamic call": 'emit v = thing.set("a.b", 1)',
    "a closure": "emit l = tags.map(it => it.to_date(text))",
    "a comprehension": "emit l = [t.to_date(text) for t in tags]",
    "a filter": "filter text.to_date(text) != #2024-01-01#",
    "an emit each block": "emit each t in tags {\n  emit d = t.to_date(text)\n}",
    "a record variable": "emit $record.d = text.to_date(text)",
}
SCHEMA = "{ id: int, text: string, money: decimal, thing: map(any), tags: array(string) }"
PIPELINE = """\
pipeline: {{ name: ways }}
nodes:
  - {{ type: source, name: s, config: {{ type: {kind}, path: s.{kind}, schema: {schema} }} }}
  - type: transform
    name: t
    input: s
    config:
      cxl: |
        {program}
      declares: [ {{ name: d, scope: record, type: date }} ]
  - {{ type: output, name: o, input: t, config: {{ type: json, path: o.json }} }}
"""


@pytest.mark.parametrize("way", [*WAYS, "none"])
def test_every_way_into_python_is_told(tmp_path: Path, way: str) -> None:
    program = WAYS.get(way, "emit a = id + 1")
    (tmp_path / "p.yaml").write_text(
        PIPELINE.format(kind="parquet", schema=SCHEMA, program=program.replace("\n", "\n        "))
    )
    plan = prepare(tmp_path / "p.yaml")
    engine = "spark" if way == "none" else "python"
    found = json.loads(explain(plan, "json"))
    assert {name: p["engine"] for name, p in found["node_properties"].items()} == {
        "s": "spark",
        "t": engine,
        "o": "spark",
    }
    write = next(stage for stage in found["stages"] if stage["stage"] == "write")
    assert write["python"] == ([] if way == "none" else ["t"])
    text = explain(plan, "text").split("=== Physical Properties ===")[1].split("=== ")[0]
    told = [line.strip() for line in text.splitlines() if "engine:" in line]
    assert [line.split(" (")[0] for line in told] == ["engine: spark", f"engine: {engine}", "engine: spark"]
    assert ("(python)" in explain(plan, "dot")) is (way != "none")
    node = plan["t"]
    assert isinstance(node, TransformPlan)
    lowered = lower_program(node.program.typed, default_context("t"), window=WindowSpec())
    assert bool(lowered.python_reasons) is (way != "none")  # what really runs
    if way not in ("none", "an emit each block"):  # for a whole block, the call in it is the reason
        assert set(lowered.python_reasons) <= set(node.python_reasons)


NODES = """\
pipeline: { name: kinds }
nodes:
  - { type: source, name: c, config: { type: csv, path: c.csv, schema: { id: int, text: string, n: int } } }
  - { type: source, name: j, config: { type: json, path: j.json, schema: { id: int, text: string } } }
  - { type: source, name: p, config: { type: parquet, path: p.parquet, schema: { id: int, text: string } } }
  - { type: route, name: r, input: p, config: { conditions: { a: "text.to_date(text) == #2024-01-01#" }, default: b } }
  - { type: aggregate, name: g, input: r.a, config: { group_by: [id], cxl: "emit m = max(text.to_date(text))" } }
  - type: combine
    name: k
    input: { x: p, y: j }
    config: { where: "x.text.to_date(x.text) == y.text.to_date(y.text)", cxl: "emit id = x.id", propagate_ck: driver }
  - type: combine
    name: plain
    input: { x: p, y: j }
    config: { where: "x.id == y.id", cxl: "emit id = x.id", propagate_ck: driver }
  - { type: merge, name: m, inputs: [p, j] }
  - type: query
    name: q
    inputs: [p]
    config: { query: "from x in p select {id: x.id}" }
  - type: query
    name: f
    inputs: [p]
    config: { query: 'from x in p join y in load "FOLDER/d.csv" on x.id == y.id select {id: x.id}' }
  - { type: output, name: o1, input: g, config: { type: csv, path: o1.csv } }
  - { type: output, name: o2, input: k, config: { type: xml, path: o2.xml } }
  - { type: output, name: o3, input: m, config: { type: json, path: o3.json } }
  - { type: output, name: o4, input: q, config: { type: parquet, path: o4.parquet } }
  - { type: output, name: o5, input: f, config: { type: csv, path: o5.csv } }
  - { type: output, name: o6, input: plain, config: { type: csv, path: o6.csv } }
  - { type: output, name: o7, input: r.b, config: { type: csv, path: o7.csv } }
  - { type: output, name: o8, input: c, config: { type: csv, path: o8.csv } }
"""


def test_every_kind_of_node(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("id\n1\n")
    (tmp_path / "p.yaml").write_text(NODES.replace("FOLDER", str(tmp_path)))
    found = json.loads(explain(prepare(tmp_path / "p.yaml"), "json"))["node_properties"]
    python = {name for name, properties in found.items() if properties["engine"] == "python"}
    assert python == {"j", "r", "g", "k", "f"}
    assert {name for name, properties in found.items() if properties["engine"] == "vector"} == {"c", "o8"}
    assert found["f"]["python"] == ["CSV files are parsed by Python"]
    assert found["c"]["python"] == ["csv files are parsed by Python"]
