"""Names that differ only in case are two names: in every format, and through every kind of node, also where the session
of the user takes them for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clinker_spark
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.api import Pipeline
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

ROWS = [{"id": 1, "ID": 10, "v": "x"}, {"id": 2, "ID": 20, "v": "y"}, {"id": 1, "ID": 10, "v": "x"}]
SOURCES = {
    "csv": ("in.csv", "id,ID,v\n1,10,x\n2,20,y\n1,10,x\n"),
    "json": ("in.ndjson", "".join(json.dumps(row) + "\n" for row in ROWS)),
    "xml": (
        "in.xml",
        "<r>" + "".join(f"<i><id>{r['id']}</id><ID>{r['ID']}</ID><v>{r['v']}</v></i>" for r in ROWS) + "</r>",
    ),
    "parquet": ("in.parquet", ""),
}
OPTIONS = {"json": "options: { format: ndjson }", "xml": "options: { record_path: r/i }", "csv": "", "parquet": ""}
HEAD = """
pipeline: { name: test }
nodes:
  - type: source
    name: rows
    config: { type: %s, path: %s, schema: { id: int, ID: int, v: string }, %s }
"""
THROUGH = """
  - type: transform
    name: more
    input: rows
    config:
      cxl: |
        emit V = v + ID.to_string()
        emit Id = id + ID
        distinct
"""
OUTPUTS = "".join(
    f"  - {{ type: output, name: {kind}_out, input: more, config: {{ type: {kind}, path: out.{kind} }} }}\n"
    for kind in ("csv", "json", "xml", "parquet")
)


@pytest.fixture
def insensitive(spark: Any) -> Any:
    """A session as users have it: for Spark `id` and `ID` are one name unless it is told otherwise."""
    session = spark.newSession()
    for key, value in {"spark.sql.caseSensitive": "false", "spark.sql.codegen.wholeStage": "false"}.items():
        session.conf.set(key, value)
    return session


def _source(folder: Path, kind: str) -> str:
    name, text = SOURCES[kind]
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), folder / name)
    else:
        (folder / name).write_text(text)
    return HEAD % (kind, name, OPTIONS[kind])


@pytest.mark.parametrize("kind", SOURCES)
def test_from_every_format_to_every_format(tmp_path: Path, insensitive: Any, kind: str) -> None:
    (tmp_path / "p.yaml").write_text(_source(tmp_path, kind) + THROUGH + OUTPUTS)
    report = run(prepare(tmp_path / "p.yaml"), insensitive, Options())
    assert report.exit_code == 0
    expected = [
        {"id": 1, "ID": 10, "v": "x", "V": "x10", "Id": 11},
        {"id": 2, "ID": 20, "v": "y", "V": "y20", "Id": 22},
    ]
    assert (tmp_path / "out.csv").read_text() == "id,ID,v,V,Id\n1,10,x,x10,11\n2,20,y,y20,22\n"
    assert json.loads((tmp_path / "out.json").read_text()) == expected
    assert (tmp_path / "out.xml").read_text().count("<ID>10</ID>") == 1
    assert "<v>y</v>" in (tmp_path / "out.xml").read_text() and "<V>y20</V>" in (tmp_path / "out.xml").read_text()
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == expected
    assert insensitive.conf.get("spark.sql.caseSensitive") == "false"


NODES = """
  - type: transform
    name: windowed
    input: rows
    config:
      analytic_window: { group_by: [ID], sort_by: [{ field: id }] }
      cxl: |
        emit total = $window.sum(id)
        emit Total = $window.count()
  - type: aggregate
    name: grouped
    input: windowed
    config:
      group_by: [ID, v]
      cxl: |
        emit V = count(*)
        emit n = sum(id)
        emit N = sum(Total)
  - type: combine
    name: both
    input: { a: grouped, A: names }
    config:
      where: "a.ID == A.id"
      match: first
      on_miss: null_fields
      propagate_ck: driver
      cxl: |
        emit v = a.v
        emit V = a.V
        emit x = A.name
        emit X = a.N
  - type: source
    name: names
    config: { type: csv, path: names.csv, schema: { id: int, Id: int, name: string } }
  - type: query
    name: asked
    inputs: [both]
    config:
      query: |
        from r in both
        where r.V > 0
        select { x: r.x, X: r.X, v: r.v, V: r.V }
  - type: route
    name: split
    input: asked
    config: { mode: exclusive, conditions: { two: "V == 2" }, default: rest }
  - type: output
    name: twos
    input: split.two
    config: { type: csv, path: twos.csv, mapping: [X, x, { w: V }, { W: v }] }
  - { type: output, name: rest, input: split.rest, config: { type: json, path: rest.json } }
"""
FAILING = """
  - type: transform
    name: failing
    input: rows
    config: { cxl: "emit V = 10 / (ID - 20)" }
  - { type: output, name: kept, input: failing, config: { type: csv, path: kept.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_through_every_kind_of_node(tmp_path: Path, insensitive: Any) -> None:
    (tmp_path / "names.csv").write_text("id,Id,name\n10,1,ten\n30,3,thirty\n")
    (tmp_path / "p.yaml").write_text(_source(tmp_path, "csv") + NODES + FAILING)
    report = run(prepare(tmp_path / "p.yaml"), insensitive, Options())
    assert (tmp_path / "twos.csv").read_text() == "X,x,w,W\n4,ten,2,x\n"
    assert json.loads((tmp_path / "rest.json").read_text()) == [{"X": 1, "v": "y", "V": 1}]
    assert report.dead_letters == 1 and (tmp_path / "kept.csv").read_text().splitlines()[1] == "1,10,x,-1"
    header, letter = (tmp_path / "dead.csv").read_text().splitlines()
    assert header.endswith(",id,ID,v") and letter.endswith(",2,20,y")


def test_correlation_keys(tmp_path: Path, insensitive: Any) -> None:
    text = _source(tmp_path, "csv").replace("schema:", "correlation_key: ID, schema:") + FAILING
    (tmp_path / "in.csv").write_text("id,ID,v\n1,10,x\n1,20,y\n2,20,z\n")
    (tmp_path / "p.yaml").write_text(text)
    report = run(prepare(tmp_path / "p.yaml"), insensitive, Options())
    assert (tmp_path / "kept.csv").read_text() == "id,ID,v,V\n1,10,x,-1\n"
    assert report.dead_letters == 2


def test_a_frame_goes_on_in_the_users_hands(tmp_path: Path, insensitive: Any) -> None:
    (tmp_path / "p.yaml").write_text(_source(tmp_path, "csv") + THROUGH + OUTPUTS)
    frame = Pipeline.load(tmp_path / "p.yaml").dataframe("more", insensitive)
    assert [row.asDict() for row in frame.where("ID = 20").select("ID", "id", "V").collect()] == [
        {"ID": 20, "id": 2, "V": "y20"}
    ]
    mine = insensitive.createDataFrame([(1, 2)], "a int, A int")
    found = clinker_spark.query("from r in rows select { b: r.a, B: r.A + 1 }", rows=mine)
    assert [row.asDict() for row in found.collect()] == [{"b": 1, "B": 3}]
    assert insensitive.conf.get("spark.sql.caseSensitive") == "false"
