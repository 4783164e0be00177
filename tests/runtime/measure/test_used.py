"""A run that is measured knows what its nodes and processes used."""

from __future__ import annotations

from typing import Any

PIPELINE = """
pipeline: { name: test, engine: spark }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { id: int, city: string } } }
  - { type: aggregate, name: totals, input: orders, config: { group_by: [city], cxl: emit n = count(*) } }
  - { type: output, name: out, input: totals, config: { type: csv, path: out.csv } }
"""


def test_memory_and_nodes(bench: Any) -> None:
    bench.file("orders.csv", "id,city\n1,Bonn\n2,Bern\n3,Bonn\n")
    report = bench.run(PIPELINE, measure=True)
    used = report.cost.used
    assert used.memory.peak.total >= used.memory.peak.jvm > 0 and used.memory.samples[0].at == 0
    assert set(used.nodes) <= {"orders", "totals", "out"}
    assert sum(node.peak_bytes for node in used.nodes.values()) > 0  # a hash table, at the least
    assert report.as_dict()["used"]["memory"]["peak_bytes"] == used.memory.peak.total
    assert bench.run(PIPELINE).cost.used is None
