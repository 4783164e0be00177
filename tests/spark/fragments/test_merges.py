"""Merges inside of fragments: records of several files in one output, as Spark writes them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from tests.spark.fragments.engines import both_engines, sizes

PIPELINE = """
pipeline: { name: p, engine: ENGINE }
nodes:
  - type: source
    name: shops
    config:
      type: csv
      path: shops.csv
      schema: [{ name: id, type: int }, { name: price, type: "nullable(int)" }, { name: city, type: string }]
  - type: source
    name: web
    config:
      type: csv
      path: web.csv
      schema: [{ name: id, type: int }, { name: price, type: "nullable(float)" }, { name: city, type: string }]
  - type: source
    name: phone
    config:
      type: csv
      path: phone.csv
      schema: [{ name: id, type: int }, { name: price, type: float }, { name: city, type: string }]
  - { type: route, name: size, input: shops, config: { conditions: { low: "id % 3 == 0" }, default: rest } }
  - type: transform
    name: fair
    input: phone
    config: { cxl: "filter price > 0.5\\nemit price = 100.0 / price.round(0)" }
  - { type: merge, name: first, inputs: [web, size.rest] }
  - { type: merge, name: all, inputs: [fair, first], config: { mode: concat } }
  - { type: transform, name: late, input: all, config: { cxl: 'emit place = (12 / (id % 5)).to_string()' } }
  - { type: route, name: side, input: late, config: { conditions: { east: 'id % 2 == 0' }, default: west } }
  - { type: output, name: low, input: size.low, config: { type: csv, path: low.csv } }
  - { type: output, name: one, input: first, config: { type: csv, path: one.csv, include_unmapped: false } }
  - { type: output, name: east, input: side.east, config: { type: csv, path: east.csv } }
  - { type: output, name: west, input: side.west, config: { type: csv, path: west.csv, mapping: [id, place] } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def _write(folder: Path) -> None:
    rng = random.Random(3)
    for name, more in (("shops", ["size", "note"]), ("web", ["note", "agent"]), ("phone", [])):
        lines = [",".join(["id", "price", "city", *more])]
        for i in range(250):
            price = rng.choice(["1", "", "7", "x" if rng.random() < 0.1 else "2"])
            if name != "shops":
                price = rng.choice([price, "0.25", "nan", "2.5", "1e20"])
            lines.append(",".join([str(i), price, rng.choice(["Paris", "Köln", ""]), *[f"{m}{i}" for m in more]]))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("small", "whole"), [(False, False), (True, False), (False, True)])
def test_engines_write_the_same(
    small: bool, whole: bool, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of files that one task each reads: Spark may read all of them in a single one."""
    spark.conf.set("spark.sql.unionOutputPartitioning", "true")
    try:
        with sizes(spark, monkeypatch, small=small, whole=whole):
            files, letters, *_ = both_engines(spark, tmp_path, _write, PIPELINE)
    finally:
        spark.conf.set("spark.sql.unionOutputPartitioning", "false")
    assert all(content.count(b"\n") > 50 for content in files.values())
    assert {letter["_cxl_dlq_source_name"] for letter in letters} == {"shops", "web", "phone"}
    assert files["east.csv"].startswith(b"id,price,city,place,note,agent,size\n")


@pytest.mark.parametrize(
    ("old", "new", "node", "why"),
    [
        ("mode: concat", "mode: interleave", "all", "'interleave' asks who came before"),
        ("[web, size.rest]", "[size.low, size.rest]", "first", "it takes the records of one source in several parts"),
        ("type: csv\n      path: web.csv", "type: json\n      path: web.csv", "web", "known late"),
    ],
)
def test_what_only_spark_can_merge_says_so(old: str, new: str, node: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("ENGINE", "auto").replace(old, new))
    facts = prepare(tmp_path / "p.yaml").facts.flow
    where, said = facts.unfit["shops"]
    assert (where, why in said) == (node, True), said
    assert "east" not in facts.fragments


def test_merges_with_other_orders_of_their_sources_are_sparks(tmp_path: Path) -> None:
    text = PIPELINE.replace("ENGINE", "auto").replace("[fair, first]", "[shops, web]")
    (tmp_path / "p.yaml").write_text(text.replace("input: fair", "input: phone"))
    facts = prepare(tmp_path / "p.yaml").facts.flow
    assert facts.unfit["shops"] == ("all", "merges want their sources in different orders")
