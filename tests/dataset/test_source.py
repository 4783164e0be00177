"""`type: dataset` in pipelines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.config.model.schema import Column
from clinker_spark.core.errors import ClinkerError
from clinker_spark.spark.scan.dataset.source import pruned
from clinker_spark.spark.scan.request import ReadRequest
from tests.dataset.model import recorded
from tests.dataset.test_semantics import INDEXES, RECORDING
from tests.support.workbench import Workbench

PIPELINE = """
pipeline: { name: robots }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
nodes:
  - type: source
    name: robots
    config:
      type: dataset
      path: dataset
      index: frame
      segments: [seg1]
      fill_latest_at: true
      MORE
      on_unmapped: drop
      schema:
        - { name: frame, type: int }
        - { name: a, type: int, source_name: "/a:v" }
        - { name: b, type: nullable(array(int)), source_name: "/b:v" }
        - { name: cal, type: nullable(int), source_name: "/static_e:cal" }
  - type: transform
    name: rates
    input: robots
    config:
      cxl: |
        emit frame = frame
        emit rate = 600 / (a - 100)
        emit last = b
  - type: output
    name: out
    input: rates
    config: { type: json, path: out.jsonl, options: { format: ndjson } }
"""


def pipeline(more: str = "") -> str:
    return PIPELINE.replace("MORE\n", f"{more}\n" if more else "origin_time: false\n")


def test_rows_of_a_dataset_are_records_and_failures_are_letters(bench: Workbench) -> None:
    recorded(bench.folder, RECORDING, INDEXES)
    report = bench.run(pipeline())
    assert report.exit_code in (0, 2)
    rows = [json.loads(line) for line in bench.text("out.jsonl").splitlines()]
    assert [row["frame"] for row in rows] == [30, 35, 40, 50]
    assert rows[0]["last"] == [1] and rows[3]["last"] == []
    letters = bench.letters()
    assert [(letter["_cxl_dlq_source_row"], letter["frame"], letter["a"]) for letter in letters] == [
        ("1", "10", "100"),
        ("2", "20", "100"),
    ]
    assert bench.left_over() == []


def test_given_values_and_a_range(bench: Workbench) -> None:
    recorded(bench.folder, RECORDING, INDEXES)
    bench.run(pipeline("values: [31, 33, 45]\n      range: [32, null]"))
    assert [json.loads(line)["frame"] for line in bench.text("out.jsonl").splitlines()] == [33, 45]


def test_what_does_not_fit_is_said_with_its_place(bench: Workbench) -> None:
    with pytest.raises(ClinkerError, match="is no dataset: there is no"):
        bench.run(pipeline())
    recorded(bench.folder, RECORDING, INDEXES)
    with pytest.raises(ClinkerError, match="has no entity '/arm'"):
        bench.run(pipeline('entities: ["/arm"]'))


def test_explain_says_where_python_is(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(pipeline())
    shown = CliRunner().invoke(clinker, ["run", str(tmp_path / "p.yaml"), "--explain"], catch_exceptions=False).output
    assert "rows of a dataset are assembled by Python" in shown and "source:dataset" in shown


def test_columns_that_nobody_reads_are_not_fetched() -> None:
    """Unless their values could be wrong, or dead letters show them."""
    columns = tuple(
        Column(name=name, type=kind) for name, kind in (("a", "int"), ("b", "nullable(int)"), ("c", "nullable(int)"))
    )
    request = ReadRequest("robots", (), columns, None, wanted=frozenset({"c"}))
    assert [column.name for column in pruned(request).columns] == ["a", "c"]
    assert pruned(replace(request, record=True)).columns == columns
