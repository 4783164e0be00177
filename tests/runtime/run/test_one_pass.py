"""What one pass does instead of two: finished cells and kept letters give the same bytes as the long way round."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run import state

SOURCE = """
pipeline: { name: test }
nodes:
  - type: source
    name: orders
    config:
      type: csv
      paths: [one.csv, two.csv]
      schema:
        - { name: id, type: int }
        - { name: name, type: string }
        - { name: price, type: "nullable(float)" }
        - { name: day, type: date }
        - { name: open, type: bool }
  - type: transform
    name: priced
    input: orders
    config:
      cxl: |
        filter id > 0
        emit double = price * 2
"""
OUT = "  - { type: output, name: out, input: priced, config: { type: csv, path: out.csv } }\n"
OTHER = "  - { type: output, name: other, input: priced, config: { type: json, path: other.json } }\n"
LETTERS = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
HEADER = "id,name,price,day,open\n"
ONE = HEADER + (
    '007,"a, b",1.50,2024-01-31,true\n+8,"say ""x""",,2024-02-29,FALSE\n9,plain,1e3,0999-01-01,False\n'
    "-5,gone,1,2024-01-01,true\n10, blanks ,-0.0,2024-01-01,true\n"
)
DIRTY = HEADER + "x,n,1,2024-01-01,true\n11,ragged\n12,n,1.25,2024-13-01,true\n13,ok,0.0000001,2024-01-01,true\n"
WRITTEN = (
    "id,name,price,day,open,double\n"
    '7,"a, b",1.5,2024-01-31,true,3\n8,"say ""x""",,2024-02-29,false,\n9,plain,1000,0999-01-01,false,2000\n'
    "10, blanks ,-0,2024-01-01,true,-0\n13,ok,0.0000001,2024-01-01,true,0.0000002\n"
)


def engine_free(text: str) -> list[str]:
    """Letters without the id and the time."""
    return [line.split(",", 2)[2] for line in text.splitlines()]


def test_columns_that_only_pass_through_are_not_sent_as_values(bench: Any) -> None:
    bench.file("pipeline.yaml", SOURCE + OUT + LETTERS)
    plan = prepare(bench.folder / "pipeline.yaml")
    passed = plan.facts.columns.pass_through[plan.sources[0].name]
    [run] = passed.runs
    assert run.columns == ("id", "name", "price", "day", "open")
    assert passed.columns == {"id", "price"}
    bench.file("pipeline.yaml", SOURCE + OUT + OTHER + LETTERS)
    plan = prepare(bench.folder / "pipeline.yaml")
    assert plan.sources[0].name not in plan.facts.columns.pass_through


def test_cells_and_letters_are_the_same_as_in_two_passes(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.file("one.csv", ONE)
    bench.file("two.csv", DIRTY)
    report = bench.run(SOURCE + OUT + LETTERS)
    quick, letters = bench.text("out.csv"), bench.text("dead.csv")
    assert quick == WRITTEN
    assert [letter.count for letter in report.letters] == [1, 2]
    assert report.sources[0].dead_letters == 3
    monkeypatch.setattr(state, "is_local", lambda _: False)
    again = bench.run(SOURCE + OUT + OTHER + LETTERS)
    assert bench.text("out.csv") == quick
    assert engine_free(bench.text("dead.csv")) == engine_free(letters)
    assert [(x.stage, x.category, x.count) for x in again.letters] == [
        (x.stage, x.category, x.count) for x in report.letters
    ]
    rows = [(letter["_cxl_dlq_source_file"], letter["_cxl_dlq_source_row"], letter["id"]) for letter in bench.letters()]
    assert rows == [("two.csv", "1", "x"), ("two.csv", "2", "11"), ("two.csv", "3", "12")]


def test_identifiers_are_of_version_7_and_differ(bench: Any) -> None:
    bench.file("one.csv", HEADER)
    bench.file("two.csv", DIRTY)
    bench.run(SOURCE + OUT + LETTERS)
    found = {letter["_cxl_dlq_id"] for letter in bench.letters()}
    assert len(found) == 3
    assert all(len(i) == 36 and i[14] == "7" and i[19] in "89ab" for i in found)


def test_failures_of_transforms_are_still_found(bench: Any) -> None:
    bench.file("one.csv", ONE)
    bench.file("two.csv", DIRTY)
    failing = SOURCE.replace("emit double = price * 2", "emit double = id / (id - 9)")
    bench.run(failing + OUT + LETTERS)
    stages = [(letter["_cxl_dlq_stage"], letter["_cxl_dlq_source_row"]) for letter in bench.letters()]
    assert stages == [("transform:priced", "3"), ("source", "1"), ("source", "2"), ("source", "3")]


def test_fail_fast_names_the_first_bad_record(bench: Any) -> None:
    bench.file("one.csv", ONE)
    bench.file("two.csv", DIRTY)
    with pytest.raises(ClinkerError, match=r"two\.csv, row 1: field 'id': cannot convert 'x' to Int \(3 records"):
        bench.run(SOURCE + OUT)
