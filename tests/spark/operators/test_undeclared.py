"""Undeclared columns: values keep the types they were read with, and a combine passes on those of its driver only."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import clinker_spark
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare

VALUES = {
    "id": 1,
    "n": 5,
    "f": 2.5,
    "whole": 5.0,
    "big": 12345678901234567890123,
    "yes": True,
    "none": None,
    "s": 'x "y" \\ \n é',
    "digits": "5",
    "empty": "",
    "list": [1, "a", None, {"b": 2}],
    "deep": {"a": {"b": False}, "c": []},
}

SOURCES = """\
pipeline: { name: drift }
nodes:
  - { type: source, name: j, config: { type: json, path: in.json, schema: { id: int } } }
  - { type: source, name: c, config: { type: csv, path: in.csv, schema: { id: int } } }
  - { type: source, name: p, config: { type: parquet, path: in.parquet, schema: { id: int } } }
  - { type: merge, name: all, inputs: [j, c, p] }
  - { type: output, name: o1, input: j, config: { type: json, path: j.json } }
  - { type: output, name: o2, input: j, config: { type: csv, path: j.csv } }
  - { type: output, name: o3, input: j, config: { type: parquet, path: j.parquet } }
  - { type: output, name: o4, input: all, config: { type: json, path: all.json } }
  - { type: output, name: o5, input: p, config: { type: csv, path: p.csv } }
"""


def test_values_keep_their_types(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps([VALUES, {"id": 2, "n": "seven"}]))
    (tmp_path / "in.csv").write_text("id,n,s\n3,5,true\n")
    table = {"id": [4], "n": [6], "f": [0.5], "whole": [7.0], "yes": [False], "s": ["z"], "list": [[1, 2]]}
    pq.write_table(pa.table(table), tmp_path / "in.parquet")
    (tmp_path / "p.yaml").write_text(SOURCES)
    clinker_spark.load(tmp_path / "p.yaml").run(spark)
    first, second = json.loads((tmp_path / "j.json").read_text())
    assert first == {name: value for name, value in VALUES.items() if name != "none"}
    assert second == {"id": 2, "n": "seven"}
    assert str(VALUES["big"]) in (tmp_path / "j.json").read_text()
    every = json.loads((tmp_path / "all.json").read_text())
    assert every[:2] == [first, second]
    assert every[2:] == [{"id": 3, "n": "5", "s": "true"}, {name: value[0] for name, value in table.items()}]
    assert '"whole":7.0' in (tmp_path / "all.json").read_text().replace(": ", ":")
    cells = {
        "id": "1",
        "n": "5",
        "f": "2.5",
        "whole": "5",
        "big": str(VALUES["big"]),
        "yes": "true",
        "none": "",
        "s": VALUES["s"],
        "digits": "5",
        "empty": "",
        "list": '[1,"a",null,{"b":2}]',
        "deep.a.b": "false",
        "deep.c": "[]",
    }
    rows = list(csv.DictReader((tmp_path / "j.csv").open(newline="")))
    assert rows[0] == cells
    assert list(csv.DictReader((tmp_path / "p.csv").open(newline=""))) == [
        {"id": "4", "n": "6", "f": "0.5", "whole": "7", "yes": "false", "s": "z", "list": "[1,2]"}
    ]
    texts = pq.read_table(tmp_path / "j.parquet").to_pylist()[0]
    assert texts == {**cells, "id": 1, "none": None, "empty": ""}


COMBINE = """\
pipeline: {{ name: look }}
nodes:
  - {{ type: source, name: orders, config: {{ type: csv, path: orders.csv, schema: {{ id: int, k: int }} }} }}
  - {{ type: source, name: rates, config: {{ type: json, path: rates.json, schema: {{ k: int, rate: int }} }} }}
  - {{ type: source, name: plain, config: {{ type: csv, path: plain.csv, schema: {{ k: int }} }} }}
{nodes}
"""
LIFT = """\
  - type: combine
    name: m{i}
    input: {{ o: orders, r: {build} }}
    config:
      where: "{where}"
      match: {match}
      strategy: {strategy}
      on_miss: null_fields
      propagate_ck: driver
      cxl: |
        emit id = o.id
        emit lifted = r.region
        emit up = r.zone ?? "none"
  - {{ type: output, name: out{i}, input: m{i}, config: {{ type: json, path: out{i}.json }} }}
"""
COLLECT = """\
  - type: combine
    name: m{i}
    input: {{ o: orders, r: rates }}
    config: {{ where: "o.k == r.k", match: collect, on_miss: skip, propagate_ck: driver, cxl: "" }}
  - {{ type: output, name: out{i}, input: m{i}, config: {{ type: json, path: out{i}.json }} }}
"""
WAYS = [
    ("rates", "o.k == r.k", "first", "auto"),
    ("rates", "o.k == r.k", "all", "grace_hash"),
    ("rates", "o.k <= r.k and o.id < r.rate", "all", "auto"),
    ("plain", "o.k == r.k", "first", "auto"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.csv").write_text("id,k,note\n1,1,mine\n2,9,too\n")
    rates = [{"k": 1, "rate": 100, "region": 5, "zone": {}, "extra": "gone"}, {"k": 1, "rate": 101, "region": [1]}]
    (tmp_path / "rates.json").write_text(json.dumps([{**rates[0], "zone": "z"}, rates[1]]))
    (tmp_path / "plain.csv").write_text("k,region,zone\n1,05,z\n")
    return tmp_path


def test_the_undeclared_columns_of_a_build_end_at_the_combine_unless_lifted(spark: SparkSession, folder: Path) -> None:
    nodes = [
        LIFT.format(i=i, build=build, where=where, match=match, strategy=strategy)
        for i, (build, where, match, strategy) in enumerate(WAYS)
    ]
    (folder / "p.yaml").write_text(COMBINE.format(nodes="".join(nodes) + COLLECT.format(i=len(WAYS))))
    clinker_spark.load(folder / "p.yaml").run(spark)
    found = [json.loads((folder / f"out{i}.json").read_text()) for i in range(len(WAYS) + 1)]
    one = {"id": 1, "lifted": 5, "up": "z", "note": "mine"}
    other = {"id": 1, "lifted": [1], "up": "none", "note": "mine"}
    none = {"id": 2, "up": "none", "note": "too"}
    assert found[0] == [one, none]
    assert found[1] == [one, other, none]
    assert found[2] == [one, other, none]
    assert found[3] == [{**one, "lifted": "05"}, none]
    matches = [{"k": 1, "rate": 100}, {"k": 1, "rate": 101}]
    assert found[4] == [{"id": 1, "k": 1, "r": matches, "note": "mine"}]


def test_names_that_no_file_has(spark: SparkSession, folder: Path) -> None:
    def told(program: str) -> tuple[str, str]:
        node = LIFT.format(i=0, build="rates", where="o.k == r.k", match="first", strategy="auto")
        (folder / "p.yaml").write_text(COMBINE.format(nodes=node.replace("r.region", program)))
        with pytest.raises(ClinkerError) as error:
            prepare(folder / "p.yaml")
            clinker_spark.load(folder / "p.yaml").run(spark)
        return error.value.diagnostics[0].code, error.value.diagnostics[0].message

    assert told("r.ratee")[0] == "E308"  # nearly a declared name
    assert told("r.nowhere") == ("E714", "'r' has no column 'nowhere': no schema declares it, and no file has it")
    assert told("o.nowhere")[0] == "E308"  # the driver's ride along, and are not for programs
