"""What explain says about how records get from node to node, against the plans that Spark has executed: shuffles,
broadcasts and what is kept, pipeline by pipeline."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from clinker_spark.plan import memory, small_inputs
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.measure.executions import executions, executions_so_far
from clinker_spark.spark.scan.csv import source as csv_source

ORDERS = """pipeline: { name: test, engine: ENGINE }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv,
      schema: { id: int, city: string, n: int, at: datetime } } }
"""
FEW = """  - { type: source, name: few, config: { type: csv, path: few.csv,
      schema: { id: int, city: string, n: int, at: datetime } } }
"""
MANY = FEW.replace("name: few", "name: many").replace("path: few.csv", 'glob: "few*.csv"')
OUT = "  - {{ type: output, name: out, input: {}, config: {{ type: csv, path: out.csv }} }}\n"
ANY = OUT.replace("path: out.csv", "path: out.csv, order: any")
COMBINE = """  - {{ type: combine, name: both, input: {{ o: orders, f: {} }}, config: {{ drive: o, where: "{}",
      match: {}, on_miss: skip, propagate_ck: driver, cxl: "emit id = o.id" {} }} }}
"""


def combine(other: str = "few", where: str = "o.id == f.id", match: str = "first", more: str = "") -> str:
    return COMBINE.format(other, where, match, more)


TOTALS = '  - { type: aggregate, name: totals, input: orders, config: { group_by: [city], cxl: "emit s = sum(n)" } }\n'
TWICE = '  - { type: transform, name: twice, input: orders, config: { cxl: "emit m = n * 2" } }\n'
WINDOW = """  - { type: transform, name: ranked, input: orders,
      config: { cxl: "emit r = $window.sum(n)", analytic_window: { group_by: [city] } } }
"""
ROUTE = '  - { type: route, name: size, input: INPUT, config: { conditions: { large: "SIZE > 4" }, default: small } }\n'
PORTS = OUT.format("size.large") + OUT.format("size.small").replace("name: out", "name: rest").replace(
    "out.csv", "rest.csv"
)
CASES = {
    "a transform": TWICE + OUT.format("twice"),
    "a route": ROUTE.replace("INPUT", "orders").replace("SIZE", "n") + PORTS,
    "a merge": FEW + "  - { type: merge, name: all, inputs: [orders, few] }\n" + OUT.format("all"),
    "a sort": OUT.format("orders").replace("path: out.csv", "path: out.csv, sort_order: [n]"),
    "totals": TOTALS + ANY.format("totals"),
    "totals in order": TOTALS + OUT.format("totals"),
    "totals of totals": TOTALS
    + '  - { type: aggregate, name: all, input: totals, config: { group_by: [s], cxl: "emit c = count(*)" } }\n'
    + ANY.format("all"),
    "distinct": '  - { type: transform, name: once, input: orders, config: { cxl: "distinct by city" } }\n'
    + ANY.format("once"),
    "a window": WINDOW + ANY.format("ranked"),
    "a window in order": WINDOW + OUT.format("ranked"),
    "a join that is held": FEW + combine() + OUT.format("both"),
    "a join that is held, all matches": FEW + combine(match="all") + OUT.format("both"),
    "a join of unknown size": MANY + combine("many") + ANY.format("both"),
    "a join of unknown size that is small": MANY + combine("many") + ANY.format("both"),
    "a join by hash": FEW + combine(more=", strategy: grace_hash") + ANY.format("both"),
    "a join with a condition": FEW + combine(where="o.id == f.id and o.n > f.n") + ANY.format("both"),
    "a join by range": FEW + combine(where="o.n >= f.n and o.n <= f.id", match="all") + ANY.format("both"),
    "kept totals": TOTALS + ROUTE.replace("INPUT", "totals").replace("SIZE", "s") + PORTS,
}
VECTOR = ("a transform", "a route", "a merge", "totals in order", "a join that is held, all matches")


HELD = {
    "a join of unknown size": 10,
    "a join of unknown size that is small": 64 << 20,
}
"""Up to which size an input is held by every task, where that is not as always."""


@pytest.mark.parametrize(
    ("name", "engine"), [*((name, "spark") for name in CASES), *((name, "vector") for name in VECTOR)]
)
def test_plans_are_as_explained(bench: Any, monkeypatch: pytest.MonkeyPatch, name: str, engine: str) -> None:
    monkeypatch.setattr(small_inputs, "SMALL", 0)  # the session of tests takes no input for small either
    monkeypatch.setattr(csv_source.read_csv, "__kwdefaults__", {"target": 600, "smallest": 1})  # several tasks
    monkeypatch.setattr(memory, "BROADCAST_BYTES", HELD.get(name, memory.BROADCAST_BYTES))
    head = "id,city,n,at\n"
    rows = [f"{i},city {i % 5},{i % 7},2024-01-{i % 28 + 1:02}T00:00:00\n" for i in range(60)]
    bench.file("orders.csv", head + "".join(rows))
    bench.file("few.csv", head + "".join(rows[:30]))
    text = ORDERS.replace("ENGINE", engine) + CASES[name]
    plan = prepare(bench.file("pipeline.yaml", text))
    flow = plan.facts.flow
    assert bool(flow.in_workers) == (engine == "vector"), flow.unfit
    first = executions_so_far(bench.spark)
    run(plan, bench.spark, Options())
    written = [[o.name for o in execution] for execution in executions(bench.spark, first)]
    written = [names for names in written if any(name.startswith(("Execute", "Overwrite")) for name in names)]
    edges = Counter(edge.how for edge in plan.facts.resources.edges)
    small = name.endswith("small")
    shuffles = edges["shuffle"] + edges["shuffle, then broadcast"]
    shuffles += 0 if small or "range" in name else edges["shuffle or none"] + edges["shuffle or broadcast"]
    broadcasts = edges["broadcast"] + edges["shuffle, then broadcast"]
    broadcasts += edges["shuffle or broadcast"] if small or "range" in name else 0
    kept = sum(plan.facts.order.materialized != () for _ in written)
    for names in written:
        seen = Counter(names)
        assert seen["BroadcastExchange"] == broadcasts, names
        if kept:  # what is kept stands with the plan that made it in that of each output
            assert seen["Exchange"] == 2 and any("In-memory table" in name for name in names), names
        else:
            assert seen["Exchange"] >= shuffles, names
            assert seen["Exchange"] <= shuffles + (small * 1), names
    if edges["parts"]:
        assert any("Exchange" in [o.name for o in each] for each in executions(bench.spark, first))
