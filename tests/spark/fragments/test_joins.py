"""Broadcast combines inside of fragments: the same records, letters and numbers as Spark gives."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run import state
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.fragments.joins import fetch
from clinker_spark.spark.fragments.joins.lookup import MOST_PAIRS
from clinker_spark.spark.fragments.task import Table
from tests.spark.fragments.engines import both_engines, seen_with, sizes

SOURCES = """
pipeline: { name: p, engine: ENGINE }
nodes:
  - type: source
    name: orders
    config:
      type: csv
      path: orders.csv
      schema:
        - { name: id, type: int }
        - { name: code, type: "nullable(int)" }
        - { name: rate, type: "nullable(float)" }
        - { name: day, type: "nullable(date)" }
        - { name: city, type: "nullable(string)" }
        - { name: cost, type: "nullable(decimal(2))" }
  - type: source
    name: products
    config:
      type: csv
      path: products.csv
      schema:
        - { name: code, type: "nullable(int)" }
        - { name: rate, type: "nullable(float)" }
        - { name: low, type: "nullable(float)" }
        - { name: high, type: "nullable(float)" }
        - { name: since, type: "nullable(date)" }
        - { name: title, type: "nullable(string)" }
        - { name: cost, type: "nullable(decimal(2))" }
  - type: source
    name: cities
    config: { type: csv, path: cities.csv, schema: { city: string, zone: int } }
  - type: transform
    name: fine
    input: products
    config: { cxl: "filter title != 'gone'\\nemit tax = 10 / (code ?? 1)" }
  - { type: transform, name: asked, input: orders, config: { cxl: "emit whole = 100 / (code ?? 7)" } }
"""
JOIN = """
  - type: combine
    name: NAME
    input: INPUTS
    config:
      where: 'WHERE'
      match: MATCH
      on_miss: MISS
      propagate_ck: driver
      drive: o
      cxl: |
        emit id = o.id
        emit title = p.title
        emit left = o.rate
        emit found = p.rate
        emit tax = o.whole + p.tax
        emit gain = o.cost - p.cost
        MORE
  - { type: transform, name: after NAME, input: NAME, config: { cxl: "emit size = 60 / (id % 4)" } }
  - { type: output, name: out NAME, input: after NAME, config: { type: csv, path: NAME.csv } }
"""
END = "error_handling: { strategy: continue, dlq: { path: dead.csv } }\n"
KEY = "o.code == p.code"
FILTERS = "filter o.id % 3 != 1\n        filter 9 / (o.id % 5) > 2 and tax != 4"
RANGE = "o.rate >= p.low and o.rate < p.high"
CASES = [
    (f"{KEY} and o.whole / (p.tax - 5) > 0", "first", "skip"),
    (f"{RANGE} and {KEY}", "all", "null_fields"),
    (RANGE, "all", "skip"),
    ("o.day >= p.since", "first", "null_fields"),
    ("o.cost == p.cost and o.cost <= p.cost", "all", "null_fields"),
]
"""What is compared, which matches count, what becomes of misses."""
MORE = [
    (f"o.cost > p.cost and {KEY}", "first", "skip"),
    (KEY, "first", "null_fields"),
    (KEY, "all", "skip"),
    (f"{KEY} and o.city == p.title and o.rate != p.rate", "all", "null_fields"),
    ("o.rate == p.rate", "all", "null_fields"),
    ("100 / o.whole == p.code and o.day >= p.since", "first", "skip"),
    ("o.rate > p.low and o.rate <= p.high and o.whole > p.tax", "first", "skip"),
    (f"o.rate > p.high and {KEY}", "all", "skip"),
]


def _write(folder: Path) -> None:
    rng, coins = random.Random(8), random.Random(9)
    rates = ["0.0", "-0.0", "0.25", "1.5", "2.5", "7.25", "", "100.0", "1000.5"]
    costs = ["0.10", "-12345678901234567890.55", "7.00", "", "7"]
    days = ["2024-01-01", "2024-02-29", "2023-06-30", ""]

    def file(name: str, header: str, rows: list[list[str]]) -> None:
        (folder / name).write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")

    codes = ["0", "1", "2", "3", "4", "5", "", "77"]
    orders = [
        [str(i), rng.choice([*codes, "x"]), rng.choice(rates), rng.choice(days), rng.choice(["Rome", "Köln", "", "a"])]
        for i in range(180)
    ]
    file("orders.csv", "id,code,rate,day,city,cost,more", [[*row, coins.choice(costs), f"m{row[0]}"] for row in orders])
    products = []
    for _ in range(60):
        low = rng.choice(rates)
        high = low if rng.random() < 0.3 else rng.choice(["3.5", "8.0", "1000.0", ""])
        title = rng.choice(["Rome", "a", "tool", "", "gone"])
        products.append([rng.choice([*codes, "y"]), rng.choice(rates), low, high, rng.choice(days), title])
    file(
        "products.csv",
        "code,rate,low,high,since,title,cost,note",
        [[*row, coins.choice(costs), "n"] for row in products],
    )
    file("cities.csv", "city,zone", [["Rome", "1"], ["Köln", "2"], ["Rome", "3"], ["a", "x"]])


def _joins(cases: list[tuple[str, str, str]]) -> str:
    text = SOURCES
    for i, (where, match, miss) in enumerate(cases):
        join = JOIN.replace("NAME", f"j{i}").replace("WHERE", where).replace("MATCH", match).replace("MISS", miss)
        several = i == 0
        inputs = "{ o: asked, p: fine, c: cities }" if several else "{ o: asked, p: fine }"
        more = "emit zone = c.zone" if several else FILTERS if i in (1, 3) else ""
        join = join.replace("INPUTS", inputs).replace("MORE", more)
        text += join.replace(KEY, f"{KEY} and o.city == c.city") if several else join
    return text + END


def test_engines_find_the_same(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds of conditions in one pipeline: one job of the workers writes all outputs."""
    with sizes(spark, monkeypatch, small=False):
        cases = CASES + (MORE if os.environ.get("CLINKER_CASES") == "all" else [])
        files, letters, *_ = both_engines(spark, tmp_path, _write, _joins(cases))
    assert all(content.count(b"\n") > 4 for content in files.values()), {n: c.count(b"\n") for n, c in files.items()}
    assert {letter["_cxl_dlq_source_name"] for letter in letters} == {"orders", "products", "cities"}


def test_a_table_that_is_too_large_is_joined_by_spark(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MOST_MAPPED", 100)
    with sizes(spark, monkeypatch, small=False):
        both_engines(spark, tmp_path, _write, _joins(CASES[:1]))


def test_tables_are_sent_where_tasks_run_elsewhere(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written where workers of another machine could not read it."""
    monkeypatch.setattr(state, "is_local", lambda session: False)
    made: list[Table | None] = []
    as_ever = fetch._table

    def noted(*args: Any, **options: Any) -> Table | None:
        made.append(as_ever(*args, **options))
        return made[-1]

    monkeypatch.setattr(fetch, "_table", noted)
    with sizes(spark, monkeypatch, small=False):
        text = _joins(CASES[1:2])
        assert seen_with(spark, tmp_path, _write, text, "vector")[0]["j0.csv"].count(b"\n") > 50
    assert [table is not None and table.path is None and table.content is not None for table in made] == [True, True]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("emit id = o.id", "emit id = o.id\n        emit list = [o.id]", "of type"),
        ("propagate_ck: driver", "propagate_ck: driver\n      strategy: grace_hash", "small enough"),
    ],
)
def test_what_only_spark_can_join_says_so(old: str, new: str, why: str, tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "p.yaml").write_text(_joins(CASES[:1]).replace("ENGINE", "auto").replace(old, new))
    facts = prepare(tmp_path / "p.yaml").facts.flow
    where, said = facts.unfit["orders"]
    assert (where, why in said) == ("j0", True), said


def test_a_batch_that_is_joined_in_halves_is_written_once(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More pairs than are made at once, behind an output of the same batch: its lines must not come again."""
    rows = 2100
    (tmp_path / "left.csv").write_text("id,k\n" + "".join(f"{i},1\n" for i in range(rows)))
    (tmp_path / "right.csv").write_text("n,k\n" + "".join(f"{i},1\n" for i in range(1000)))
    (tmp_path / "p.yaml").write_text(
        """
pipeline: { name: p, engine: vector }
nodes:
  - { type: source, name: left, config: { type: csv, path: left.csv, schema: { id: int, k: int } } }
  - { type: source, name: right, config: { type: csv, path: right.csv, schema: { n: int, k: int } } }
  - { type: output, name: before, input: left, config: { type: csv, path: before.csv } }
  - type: combine
    name: pairs
    input: { l: left, r: right }
    config: { where: l.k == r.k, match: all, on_miss: skip, propagate_ck: driver, cxl: "emit id = l.id\\nemit n = r.n" }
  - { type: transform, name: few, input: pairs, config: { cxl: "filter n == 7\\nemit id = id\\nemit n = n" } }
  - { type: output, name: after, input: few, config: { type: csv, path: after.csv, include_unmapped: false } }
"""
    )
    assert rows * 1000 > MOST_PAIRS
    with sizes(spark, monkeypatch, small=False):
        plan = prepare(tmp_path / "p.yaml")
        assert plan.facts.flow.fragments, plan.facts.flow.unfit
        run(plan, spark, Options())
    assert (tmp_path / "before.csv").read_text() == (tmp_path / "left.csv").read_text()
    assert (tmp_path / "after.csv").read_text() == "id,n\n" + "".join(f"{i},7\n" for i in range(rows))


def test_an_output_that_no_record_reaches_is_counted(
    tmp_path: Path, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark sees while it runs that nothing is left, and leaves out what would have counted."""
    text = _joins(CASES[:1]).replace("60 / (id % 4)", "60 / (title ?? '').length()")
    with sizes(started, monkeypatch, small=False):
        files, letters, *_ = both_engines(started, tmp_path, _write, text)
    assert files["j0.csv"].count(b"\n") == 1 and letters
