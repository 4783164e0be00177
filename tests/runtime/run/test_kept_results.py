"""What a shuffle made for several outputs is computed once, and let go when the last of them is written."""

from __future__ import annotations

from typing import Any

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { city: string, n: int } } }
  - { type: aggregate, name: cities, input: orders, config: { group_by: [city], cxl: "emit total = sum(n)" } }
  - { type: route, name: size, input: cities, config: { conditions: { large: "total > 4" }, default: small } }
  - { type: output, name: large, input: size.large, config: { type: csv, path: large.csv } }
  - { type: output, name: small, input: size.small, config: { type: csv, path: small.csv } }
  - { type: output, name: all, input: orders, config: { type: csv, path: all.csv } }
"""


def test_totals_of_several_outputs(bench: Any) -> None:
    bench.file("orders.csv", "city,n\nBern,1\nBasel,9\nBern,2\nChur,x\n")
    pipeline = PIPELINE + "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
    plan = prepare(bench.file("pipeline.yaml", pipeline))
    assert plan.facts.order.materialized == ("cities",)
    kept: dict[str, int] = {}
    rdds = bench.spark.sparkContext._jsc.getPersistentRDDs
    before = rdds().size()

    def listen(event: str, details: dict[str, Any]) -> None:
        if event == "output_started":
            kept[details["output"]] = rdds().size() - before

    report = run(plan, bench.spark, Options(), listen)
    assert kept == {"large": 0, "small": 1, "all": 0}
    assert rdds().size() == before
    assert [output.records for output in report.outputs] == [1, 1, 3] and report.dead_letters == 1
    assert bench.text("large.csv") == "city,total\nBasel,9\n"
    assert bench.text("small.csv") == "city,total\nBern,3\n"
