"""`type: query` in a pipeline: checked and planned without Java; mistakes stand in the YAML file."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import clinker_spark
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.query.node import QueryPlan
from clinker_spark.spark.build.metrics import Metrics

PIPELINE = """\
pipeline: {{ name: demo }}
nodes:
  - type: source
    name: orders
    config: {{ type: csv, path: orders.csv, schema: {{ id: int, city: string, total: float }} }}
  - type: query
    name: totals
    inputs: [orders]
    config:
      query: |
        {query}
  - type: output
    name: report
    input: totals
    config: {{ type: csv, path: out.csv }}
"""
LETTERS = """\
error_handling:
  strategy: continue
  dlq: { path: dlq.csv }
"""


def planned(folder: Path, query: str) -> Plan:
    (folder / "p.yaml").write_text(PIPELINE.format(query=query.replace("\n", "\n        ")))
    return prepare(folder / "p.yaml")


def test_columns_and_types_of_the_result(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        "from o in orders group by o.city into g\nselect {city: g.key, n: count(g), ids: (from x in g select x.id)}",
    )
    node = plan["totals"]
    assert isinstance(node, QueryPlan)
    assert {name: str(t) for name, t in node.schema.items()} == {
        "city": "Nullable(String)",
        "n": "Nullable(Int)",
        "ids": "Nullable(Array(Nullable(Int)))",
    }
    assert "$arrival" in node.ordered_text and "$arrival" not in node.text.split("|> SELECT")[-1]


@pytest.mark.parametrize(
    ("query", "arrival"),
    [
        ("from o in orders select {id: o.id}", ", `$o"),
        ("from o in orders join p in orders on p.id == o.id select {id: o.id}", "concat(`$o"),
        ("(from o in orders select {id: o.id}) union all (from o in orders select {id: 1})", "concat(array("),
        ("from o in orders sort by o.city desc select {id: o.id}", "monotonically_increasing_id()"),
    ],
)
def test_records_get_their_places_in_parallel(tmp_path: Path, query: str, arrival: str) -> None:
    node = planned(tmp_path, query)["totals"]
    assert isinstance(node, QueryPlan)
    assert arrival in node.ordered_text.split("|> SELECT")[-1]
    assert "OVER (" not in node.ordered_text


@pytest.mark.parametrize(
    ("query", "code", "line", "marked"),
    [
        ("from o in orders where o.totl > 1.0 select o", "E701", 11, "totl"),
        ("from o in orders\nwhere o.city > 1 select o", "E702", 12, "o.city > 1"),
        ("from o in orders select print(o.id)", "E708", 11, "print(o.id)"),
        ("from o in orders select", "E700", 11, ""),
    ],
)
def test_mistakes_stand_in_the_pipeline_file(tmp_path: Path, query: str, code: str, line: int, marked: str) -> None:
    with pytest.raises(ClinkerError) as error:
        planned(tmp_path, query)
    found = error.value.diagnostics[0]
    assert found.code == code and found.source is not None and found.span is not None
    assert found.source.name.endswith("p.yaml")
    assert found.source.position(found.span.start)[0] == line
    assert found.source.text[found.span.start : found.span.end].strip() == marked


@pytest.mark.parametrize(
    ("query", "guarded"),
    [
        ("from o in orders where 1 / o.id > 0 select o", True),
        ("from o in orders group by o.id into g select {s: sum(from x in g select 1 % x.id)}", True),
        ("from x in (from o in orders let n = o.city.to_int() select {n: n}) join o in orders on true select x", True),
        ("from o in orders where o.id / 2 > 1 && o.total / 2.5 > 1.0 select {id: str(o.id)}", False),
        ("from o in orders join p in orders on p.id == o.id select {s: 1 / (o.id - p.id)}", False),
        ("from o in orders group by o.id into g select {s: 1 / count(g)}", False),
        ("from o in orders where count(from p in orders where 1 / p.id == o.id select p) > 1 select o", False),
    ],
)
def test_failures_of_single_records_are_told_before_the_query(tmp_path: Path, query: str, guarded: bool) -> None:
    node = planned(tmp_path, query)["totals"]
    assert isinstance(node, QueryPlan)
    assert any("named_struct('kind'" in error for _, error in node.errors.get(0, ())) is guarded
    assert all(f"{alias}.`" in error for alias, error in node.errors.get(0, ()))


def test_a_record_that_fails_in_a_query_is_a_dead_letter(quick: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,city,total\n1,7,1\n2,x,1\n3,8,1\n4,0,1\n9223372036854775807,9,1\n")
    query = "from o in orders where 10 / (o.id - 3) < 99 sort by -(o.id + 1)\nselect {id: o.id, n: o.city as int}"
    (tmp_path / "p.yaml").write_text(PIPELINE.format(query=query.replace("\n", "\n        ")) + LETTERS)
    clinker_spark.load(tmp_path / "p.yaml").run(quick)
    assert (tmp_path / "out.csv").read_text() == "id,n\n4,0\n1,7\n"
    letters = csv.DictReader((tmp_path / "dlq.csv").open())
    assert [(row["id"], row["_cxl_dlq_stage"], row["_cxl_dlq_error_detail"]) for row in letters] == [
        ("2", "query:totals", "cannot convert to BIGINT: o.city as int"),
        ("3", "query:totals", "division by zero: 10 / (o.id - 3)"),
        ("9223372036854775807", "query:totals", "a number does not fit: o.id + 1"),
    ]


def test_failures_that_nobody_counted_are_found_all_the_same(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark Connect does not bring back what was counted behind the views that a query reads."""
    counted = Metrics.counted
    monkeypatch.setattr("clinker_spark.runtime.run.state.is_connect", lambda spark: True)

    def counted_after_the_query(self: Metrics, name: str, patience: float = 2.0) -> dict[str, int]:
        return counted(self, name, patience) if name == "report" else {}

    monkeypatch.setattr(Metrics, "counted", counted_after_the_query)
    test_a_record_that_fails_in_a_query_is_a_dead_letter(quick, tmp_path)


@pytest.mark.parametrize("key", ["", "correlation_key: id, "])
def test_where_nothing_can_fail_nothing_is_found(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr("clinker_spark.runtime.run.state.is_connect", lambda spark: True)
    pq.write_table(pa.table({"id": [1, 2], "city": ["Ulm", "Bonn"], "total": [1.5, 2.5]}), tmp_path / "orders.parquet")
    text = PIPELINE.format(query="from o in orders select {id: o.id}") + LETTERS
    text = text.replace("type: csv, path: orders.csv, ", f"type: parquet, path: orders.parquet, {key}")
    (tmp_path / "p.yaml").write_text(text)
    report = clinker_spark.load(tmp_path / "p.yaml").run(quick)
    assert report.exit_code == 0 and (tmp_path / "out.csv").read_text() == "id\n1\n2\n"


def test_a_group_that_fails_ends_the_run(quick: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,city,total\n1,Ulm,1\n")
    query = "from o in orders group by o.city into g\nselect {city: g.key, part: 10 / (count(g) - 1)}"
    (tmp_path / "p.yaml").write_text(PIPELINE.format(query=query.replace("\n", "\n        ")))
    with pytest.raises(ClinkerError, match="query 'totals': division by zero") as error:
        clinker_spark.load(tmp_path / "p.yaml").run(quick)
    found = error.value.diagnostics[0]
    assert found.code == "E705" and found.source is not None and found.span is not None
    assert found.source.text[found.span.start : found.span.end] == "10 / (count(g) - 1)"


@pytest.mark.parametrize(
    ("query", "code"),
    [("count(orders)", "E709"), ("from o in orders select {row: o}", "E708")],
)
def test_results_that_a_pipeline_cannot_hold(tmp_path: Path, query: str, code: str) -> None:
    with pytest.raises(ClinkerError) as error:
        planned(tmp_path, query)
    assert error.value.diagnostics[0].code == code
