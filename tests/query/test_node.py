"""`type: query` in a pipeline: checked and planned without Java; mistakes stand in the YAML file."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.nodes import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.query.node import QueryPlan

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
    ("query", "code"),
    [("count(orders)", "E709"), ("from o in orders select {row: o}", "E708")],
)
def test_results_that_a_pipeline_cannot_hold(tmp_path: Path, query: str, code: str) -> None:
    with pytest.raises(ClinkerError) as error:
        planned(tmp_path, query)
    assert error.value.diagnostics[0].code == code
