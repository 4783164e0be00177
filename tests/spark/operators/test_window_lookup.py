"""Analytic windows over the records of another node."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.explain import explain

PIPELINE = """
pipeline: { name: test }
nodes:
  - type: transform
    name: priced
    input: orders
    config:
      analytic_window: { source: offers, group_by: [item], on: "what.lower()", sort_by: [{ field: day, order: desc }] }
      cxl: |
        let cheapest = $window.min(price)
        emit n = $window.count()
        emit total = $window.sum(price * 2)
        emit diff = price - cheapest
        emit newest = $window.first().price
        emit days = $window.collect(day)
        emit dear = $window.any(it.price > 5.0)
        emit all_dear = $window.every(price > 1.0)
  - type: transform
    name: shares
    input: priced
    config:
      analytic_window: { source: offers, group_by: [] }
      cxl: emit offers = $window.count()
  - type: source
    name: offers
    config: { type: csv, path: offers.csv, schema: { item: nullable(string), price: nullable(float), day: int } }
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, schema: { id: int, what: nullable(string), price: float } }
  - { type: output, name: out, input: shares, config: { type: json, path: out.ndjson, options: { format: ndjson } } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""
OFFERS = "item,price,day,note\na,2,1,x\nb,,5,x\na,6,3,x\n,9,9,x\na,oops,4,x\na,4,2,x\n"


def test_records_see_the_partition_they_ask_for(bench: Any) -> None:
    bench.file("offers.csv", OFFERS)
    bench.file("orders.csv", "id,what,price\n1,A,10\n2,b,1\n3,c,5\n4,,7\n5,a,3\n")
    report = bench.run(PIPELINE)
    assert report.dead_letters == 1  # the offer that cannot be read is one, and counts nowhere
    text = bench.text("out.ndjson").replace('"offers":5', "").replace(",}", "}")
    assert text.splitlines() == [
        '{"id":1,"what":"A","price":10.0,"n":3,"total":24.0,"diff":8.0,"newest":6.0,"days":[3,2,1],"dear":true,"all_dear":true}',
        '{"id":2,"what":"b","price":1.0,"n":1,"days":[5]}',
        '{"id":3,"what":"c","price":5.0,"n":0,"days":[],"dear":false,"all_dear":true}',
        '{"id":4,"price":7.0,"n":0,"days":[],"dear":false,"all_dear":true}',
        '{"id":5,"what":"a","price":3.0,"n":3,"total":24.0,"diff":1.0,"newest":6.0,"days":[3,2,1],"dear":true,"all_dear":true}',
    ]


def test_the_plan_shows_what_is_looked_into(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    text = explain(prepare(tmp_path / "p.yaml"), "text")
    assert "  window: partitions of 'offers' by item; one record of each is joined\n" in text
    assert "[transform] priced <- orders, offers" in text


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("source: offers, group_by: [item]", "source: ofers, group_by: [item]", "E004"),
        ("group_by: [item], on", "group_by: [what], on", "E203"),
        ('"what.lower()"', "id", "E200"),
        ('"what.lower()"', "whta", "E203"),
        ('"what.lower()"', "emit x = 1", "E202"),
        ("$window.count()\n        emit total", "$window.rank()\n        emit total", "E200"),
        ("$window.sum(price * 2)", "$window.sum(id)", "E203"),
        ("$window.sum(price * 2)", "$window.sum(10 / day)", "E200"),
        ("source: offers, group_by: [item], on", "group_by: [what], on", "E007"),
        ("group_by: [item], on", "group_by: [item, day], on", "E007"),
    ],
)
def test_what_is_wrong_is_said_before_the_run(tmp_path: Any, old: str, new: str, code: str) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.replace(old, new))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "p.yaml")
    found = caught.value.diagnostics[0]
    assert found.code == code and found.span
