"""Files that calls of a composition choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from tests.support.workbench import Workbench

BODY = """
_compose:
  name: priced
  inputs: { orders: { schema: { sku: string, n: int } } }
  outputs: { out: priced }
  resources_schema: { prices: { kind: file }, more: { required: false } }
nodes:
  - { type: source, name: list, config: { type: csv, resource: prices, schema: { sku: string, price: float } } }
  - { type: source, name: rest, config: { type: csv, resource: more, schema: { sku: string, price: float } } }
  - { type: merge, name: all, inputs: [list, rest] }
  - type: combine
    name: priced
    input: { o: orders, p: all }
    config:
      where: o.sku == p.sku
      propagate_ck: driver
      cxl: |
        emit sku = o.sku
        emit cost = o.n * p.price
"""
PIPELINE = """
pipeline: { name: resources }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { sku: string, n: int } } }
  - { type: composition, name: a, use: ../parts/priced.comp.yaml, input: orders, resources: { prices: spring } }
  - { type: composition, name: b, use: ../parts/priced.comp.yaml, input: orders,
      resources: { prices: autumn, more: spring } }
  - { type: output, name: o1, input: a, config: { type: csv, path: a.csv } }
  - { type: output, name: o2, input: b, config: { type: csv, path: b.csv } }
"""
CATALOG = """
[catalog.resources.spring]
kind = "file"
path = "data/spring.csv"
access = "read"

[catalog.resources.autumn]
kind = "file"
path = "data/autumn.csv"

[catalog.resources.result]
kind = "file"
path = "data/result.csv"
access = "write"
"""


def test_each_call_reads_its_own_files(bench: Workbench) -> None:
    bench.file("clinker.toml", CATALOG)
    bench.file("parts/priced.comp.yaml", BODY)
    bench.file("data/spring.csv", "sku,price\nx,1.5\n")
    bench.file("data/autumn.csv", "sku,price\ny,2\n")
    inner = Workbench(bench.folder / "flows", bench.spark)
    inner.file("orders.csv", "sku,n\nx,2\ny,3\n")
    inner.run(PIPELINE)
    assert inner.text("a.csv") == "sku,cost\nx,3\ny,\n"
    assert inner.text("b.csv") == "sku,cost\nx,3\ny,6\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("prices: spring }", "price: spring }"),
        ("prices: spring }", "prices: sprin }"),
        ("prices: spring }", "prices: result }"),
        ("prices: autumn, ", ""),
        ("path: orders.csv", "resource: prices"),
        ("resource: prices", "resource: other"),
    ],
)
def test_resources_that_are_not_there(tmp_path: Path, old: str, new: str) -> None:
    texts = {"clinker.toml": CATALOG, "parts/priced.comp.yaml": BODY, "flows/p.yaml": PIPELINE}
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace(old, new, 1))
    with pytest.raises(ClinkerError) as caught:
        prepare(tmp_path / "flows/p.yaml")
    assert {found.code for found in caught.value.diagnostics} == {"E343"}
    assert all(found.help and found.span for found in caught.value.diagnostics)
