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
from tests.support.workbench import Workbench

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


def test_mappings_name_undeclared_columns(bench: Workbench) -> None:
    """One that no file has is written empty, and the run says so; those that are mapped are written once."""
    bench.file("s.csv", "id,city,zip\n1,Rome,7\n2,,08\n")
    bench.file("j.json", '{"id": 1, "city": ["Rome", 1], "n": 2.50}\n{"id": 2, "extra": "x"}\n')
    text = """
pipeline: { name: mapped }
nodes:
  - { type: source, name: s, config: { type: csv, path: s.csv, schema: { id: int } } }
  - { type: source, name: j, config: { type: json, path: j.json, schema: { id: int } } }
  - { type: transform, name: t, input: s, config: { cxl: emit twice = id * 2 } }
  - { type: output, name: all, input: t, config: { type: csv, path: all.csv, mapping: [town: city, lost, id] } }
  - type: output
    name: few
    input: t
    config:
      type: xml
      path: few.xml
      include_unmapped: false
      mapping: [zip]
      sort_order: [{ field: id, order: desc }]
  - type: output
    name: p
    input: t
    config: { type: parquet, path: p.parquet, include_unmapped: false, mapping: [zip] }
  - { type: output, name: values, input: j, config: { type: json, path: values.json, mapping: [n, where: city] } }
"""
    report = bench.run(text)
    assert bench.text("all.csv") == "town,lost,id,twice,zip\nRome,,1,2,7\n,,2,4,08\n"
    few = bench.text("few.xml")
    assert few.count("<zip>") == 2 and few.index("08") < few.index("7")
    assert pq.read_table(bench.folder / "p.parquet").to_pylist() == [{"zip": "7"}, {"zip": "08"}]
    assert json.loads(bench.text("values.json")) == [
        {"n": 2.5, "where": ["Rome", 1], "id": 1},
        {"id": 2, "extra": "x"},
    ]
    assert [(found.code, "'lost'" in found.message) for found in report.warnings] == [("W365", True)]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("mapping: [cty]", "mapping: [idd]"),
        ("input: s", "input: n"),
        ("schema: { id: int }", "schema: { id: int }, on_unmapped: drop"),
    ],
)
def test_mappings_of_what_cannot_be_there(tmp_path: Path, change: str, to: str) -> None:
    """A name that is nearly a declared one is misspelt; behind a total, and where they are dropped, there are none."""
    text = """
pipeline: { name: mapped }
nodes:
  - { type: source, name: s, config: { type: csv, path: s.csv, schema: { id: int } } }
  - { type: aggregate, name: n, input: s, config: { group_by: [id], cxl: emit n = count(*) } }
  - { type: output, name: all, input: s, config: { type: csv, path: all.csv, mapping: [cty] } }
"""
    (tmp_path / "p.yaml").write_text(text)
    prepare(tmp_path / "p.yaml")
    before, found, after = text.rpartition(change)
    (tmp_path / "p.yaml").write_text(before + to + after)
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    assert found and [finding.code for finding in caught.value.diagnostics] == ["E365"]


def test_outputs_may_be_sorted_by_undeclared_columns(bench: Workbench) -> None:
    """Values of JSON files have types: numbers come before texts, by their size. Those of CSV files are texts."""
    values = [10, 9, "b", None, "a", 9.5, True]
    rows = [{"id": i, "n": value} for i, value in enumerate(values)] + [{"id": 7}]
    bench.file("in.json", json.dumps(rows))
    bench.file("in.csv", "id,n\n1,10\n2,9\n3,\n4,9\n")
    report = bench.run("""
pipeline: { name: sorted }
nodes:
  - { type: source, name: j, config: { type: json, path: in.json, schema: { id: int } } }
  - { type: source, name: c, config: { type: csv, path: in.csv, schema: { id: int } } }
  - { type: output, name: o1, input: j, config: { type: csv, path: j.csv, sort_order: [n] } }
  - type: output
    name: o2
    input: j
    config:
      type: json
      path: j.json
      include_unmapped: false
      sort_order: [{ field: n, order: desc, null_order: drop }]
  - type: output
    name: o3
    input: c
    config: { type: csv, path: c.csv, sort_order: [{ field: n, null_order: first }] }
  - type: output
    name: o4
    input: c
    config: { type: csv, path: d.csv, sort_order: [nobody, { field: id, order: desc }] }
""")
    assert [row.partition(",")[0] for row in bench.text("j.csv").splitlines()[1:]] == list("15042637")
    assert [row["id"] for row in json.loads(bench.text("j.json"))] == [6, 2, 4, 0, 5, 1]
    assert bench.text("c.csv") == "id,n\n3,\n1,10\n2,9\n4,9\n"
    assert bench.text("d.csv") == "id,n\n4,9\n3,\n2,9\n1,10\n"
    assert [found.code for found in report.warnings] == ["W365"] and "nobody" in report.warnings[0].message
