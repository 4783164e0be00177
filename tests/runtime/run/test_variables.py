"""Variables that transforms write: of one of several sources, before they are written, in compositions and previews;
and the records of any node as a DataFrame, with all its columns."""

from __future__ import annotations

from typing import Any

from clinker_spark.runtime.api import Pipeline
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.preview import preview

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: shop, config: { type: csv, glob: "shop-*.csv", schema: { id: int, n: int, extra: string } } }
  - { type: source, name: web, config: { type: csv, path: web.csv, schema: { id: int, n: int, extra: string } } }
  - type: transform
    name: shop_last
    input: shop
    config:
      declares:
        - { name: last, scope: source, type: int, default: 7 }
        - { name: most, scope: pipeline, type: int }
      cxl: |
        filter n < 100
        emit $source.last = n
        emit $pipeline.most = n
  - type: transform
    name: own
    input: shop_last
    config: { cxl: "emit own = $source.last" }
  - type: transform
    name: web_own
    input: web
    config: { cxl: "emit own = 0" }
  - { type: merge, name: both, inputs: [own, web_own] }
  - { type: composition, name: part, use: part.comp.yaml, input: both }
  - type: transform
    name: read
    input: part
    config:
      cxl: |
        emit of_shop = $source.shop.last
        emit by_input = $source.own.last
        emit of_web = $source.web.last
        emit from = $source.name
  - { type: output, name: out, input: read, config: { type: csv, path: out.csv, exclude: [extra] } }
  - type: combine
    name: joined
    input: { s: own, w: web }
    config: { where: s.id == w.id, propagate_ck: driver, on_miss: skip, cxl: "emit v = w.n + $source.shop.last" }
  - { type: output, name: out2, input: joined, config: { type: csv, path: out2.csv } }
"""
PART = """
_compose:
  name: part
  inputs: { rows: {} }
  outputs: { out: kept }
  scoped_vars: { pipeline: { most: { type: int } } }
nodes:
  - { type: transform, name: kept, input: rows, config: { cxl: "emit most = $pipeline.most" } }
"""


def prepare_files(bench: Any) -> None:
    bench.file("shop-1.csv", "id,n,extra\n1,5,a\n2,6,b\n")
    bench.file("shop-2.csv", "id,n,extra\n3,8,c\n9,500,d\n")
    bench.file("web.csv", "id,n,extra\n1,10,e\n")
    bench.file("part.comp.yaml", PART)


def test_variables_of_named_sources(bench: Any) -> None:
    prepare_files(bench)
    report = bench.run(PIPELINE)
    assert report.exit_code == 0
    assert bench.text("out.csv").splitlines() == [
        "id,n,own,most,of_shop,by_input,of_web,from",
        "1,5,6,8,8,8,7,shop",
        "2,6,6,8,8,8,7,shop",
        "3,8,8,8,8,8,7,shop",
        "1,10,0,8,8,8,7,web",
    ]
    assert bench.text("out2.csv") == "v\n18\n"

    # The same in a preview, which runs no stages, and in a DataFrame.
    pipeline = Pipeline.load(bench.folder / "pipeline.yaml")
    shown = preview(pipeline.plan, bench.spark, Options(), 10)
    assert "3,8,8,8,8,8,7,shop\n1,10,0,8,8,8,7,web" in shown
    frame = pipeline.dataframe("read", bench.spark)
    assert frame.columns == ["id", "n", "extra", "own", "most", "of_shop", "by_input", "of_web", "from"]
    assert sorted(tuple(row) for row in frame.collect())[0] == (1, 5, "a", 6, 8, 8, 8, 7, "shop")


def test_a_file_that_wrote_nothing_has_the_default(bench: Any) -> None:
    prepare_files(bench)
    bench.file("shop-2.csv", "id,n,extra\n9,500,d\n")
    plain = """
pipeline: { name: test }
nodes:
  - { type: source, name: shop, config: { type: csv, glob: "shop-*.csv", schema: { id: int, n: int } } }
  - type: transform
    name: w
    input: shop
    config:
      phase: init
      declares: [{ name: last, scope: source, type: int, default: 7 }]
      cxl: |
        filter n < 100
        emit $source.last = n
  - { type: transform, name: r, input: shop, config: { cxl: "emit last = $source.last" } }
  - { type: output, name: out, input: r, config: { type: csv, path: out.csv, include_unmapped: false } }
"""
    bench.run(plain)
    assert bench.text("out.csv") == "last\n6\n6\n7\n"


def test_a_dataframe_has_all_columns_of_its_node(bench: Any) -> None:
    bench.file("a.csv", "id,name,n\n1,x,2\n2,y,bad\n3,z,4\n")
    bench.file(
        "pipeline.yaml",
        """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, path: a.csv, schema: { id: int, name: string, n: int } } }
  - { type: transform, name: t, input: s, config: { cxl: "emit double = n * 2" } }
  - { type: route, name: r, input: t, config: { conditions: { big: n > 3 }, default: small } }
  - { type: aggregate, name: g, input: t, config: { group_by: [name], cxl: "emit total = sum(n)" } }
  - { type: output, name: o, input: r.big, config: { type: csv, path: o.csv, mapping: [id] } }
  - { type: output, name: p, input: g, config: { type: csv, path: p.csv, mapping: [total] } }
""",
    )
    pipeline = Pipeline.load(bench.folder / "pipeline.yaml")
    for node, columns, rows in (
        ("s", ["id", "name", "n"], [(1, "x", 2), (3, "z", 4)]),
        ("t", ["id", "name", "n", "double"], [(1, "x", 2, 4), (3, "z", 4, 8)]),
        ("r.big", ["id", "name", "n", "double"], [(3, "z", 4, 8)]),
        ("g", ["name", "total"], [("x", 2), ("z", 4)]),
    ):
        frame = pipeline.dataframe(node, bench.spark)
        assert frame.columns == columns
        assert sorted(tuple(row) for row in frame.collect()) == rows
    assert not (bench.folder / "o.csv").exists()
