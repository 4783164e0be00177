"""`batch_size` never changes what is written."""

from __future__ import annotations

from typing import Any

PIPELINE = """
pipeline: { name: test %s }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { id: int, city: string } } }
  - { type: source, name: lines, config: { type: json, path: lines.json, schema: { id: int, city: string } } }
  - { type: merge, name: both, inputs: [orders, lines], config: {} }
  - { type: transform, name: numbered, input: both, config: { cxl: "emit id = id\\nemit row = $source.row" } }
  - { type: output, name: out, input: numbered, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_batches_of_two_records(bench: Any) -> None:
    bench.file("orders.csv", "id,city\n1,Bonn\nx,Bern\n3,Bonn\n4,Chur\n5,Bern\n")
    bench.file("lines.json", "".join(f'{{"id": {i}, "city": "Linz"}}\n' for i in range(6, 11)))
    letters = []
    texts = set()
    for settings in ("", ", batch_size: 2", ", batch_size: 1"):
        report = bench.run(PIPELINE % settings)
        assert report.dead_letters == 1
        texts.add(bench.text("out.csv"))
        letters.append(bench.text("dead.csv").count("\n"))
    assert len(texts) == 1 and len(set(letters)) == 1 and next(iter(texts)).count("\n") == 10
