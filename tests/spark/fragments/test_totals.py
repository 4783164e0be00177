"""Aggregates whose groups workers make: the bytes, letters and numbers that Spark gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.cxl.lower.aggregates import lower_aggregate
from clinker_spark.cxl.system import default_context
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.accounting import Accounts
from clinker_spark.spark.fragments import frames as fragment_frames
from clinker_spark.spark.fragments.totals import frames, parts
from tests.spark.fragments.engines import both_engines, seen_with, sizes

SOURCE = """
pipeline: { name: p, engine: ENGINE }
nodes:
  - type: source
    name: s
    config:
      type: csv
      path: in.csv
      schema:
        - { name: id, type: int }
        - { name: city, type: "nullable(string)" }
        - { name: qty, type: "nullable(int)" }
        - { name: price, type: "nullable(float)" }
        - { name: day, type: "nullable(date)" }
        - { name: at, type: "nullable(date_time)" }
        - { name: flag, type: "nullable(bool)" }
        - { name: cost, type: "nullable(decimal(2))" }
"""
PROGRAM = """
        emit n = count(*)
        emit days = count(day)
        emit items = sum(qty)
        emit total = sum(price)
        emit mean = avg(price)
        emit middle = avg(qty)
        emit least = min(price)
        emit most = max(price)
        emit first_day = min(day)
        emit last = max(at)
        emit name = max(city)
        emit share = sum(price) / count(price)
        emit double = sum(qty * 2) + 1
        emit spent = sum(cost)
        emit usual = avg(cost).round(3)
        emit dearest = max(cost * 2)
        emit cheapest = min(cost)
"""
END = """
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def _totals(*keys: str, node: str = "s", program: str = PROGRAM) -> str:
    return f"""
  - type: aggregate
    name: t
    input: {node}
    config:
      group_by: [{", ".join(keys)}]
      cxl: |{program}
  - {{ type: output, name: out, input: t, config: {{ type: csv, path: out.csv }} }}
"""


def _write(rows: int, cities: int, seed: int = 1) -> Any:
    def write(folder: Path) -> None:
        rng = random.Random(seed)
        prices = ["1.5", "0.1", "0.2", "-0.0", "1e-9", "123456789.125", "", "1e18", "0.30000000000000004", "7e19"]
        prices += ["-7e19"]
        quantities = ["1", "0", "-7", "", "42", "5", "4611686018427387904", "x7"]
        days = ["2024-02-29", "0001-01-01", "9999-12-31", "", "soon"]
        times = ["2024-03-15T14:30:00.5", "1969-12-31T23:59:59.123456", ""]
        with open(folder / "in.csv", "w") as file:
            file.write("id,city,qty,price,day,at,flag,cost\n")
            for i in range(rows):
                city = rng.choice(["", "Köln", "São Paulo", "😀"]) if cities < 9 else f"city {rng.randrange(cities)}"
                price = rng.choice(prices) if rng.random() < 0.5 else repr(rng.uniform(-1e3, 1e3))
                price = rng.choice(["nan", "inf", "-inf", "1e308"]) if rng.random() < 0.08 else price
                cells = [str(i), city, rng.choice(quantities), price, rng.choice(days), rng.choice(times)]
                cost = rng.choice(["0.10", "", "-7.25", "12345678901234567890.99"])
                file.write(",".join([*cells, rng.choice(["true", "false", ""]), cost]) + "\n")

    return write


@pytest.mark.parametrize("cities", [3, 900])
@pytest.mark.parametrize("enough", [64, parts.ENOUGH])
def test_groups_are_those_of_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cities: int, enough: int
) -> None:
    monkeypatch.setattr(parts, "ENOUGH", enough)
    text = SOURCE + _totals("city", "flag") + END
    with sizes(spark, monkeypatch, small=False):
        seen = both_engines(spark, tmp_path, _write(1500, cities), text)
    assert len(seen[1]) > 100  # letters: cells that are no values, and sums that no Int can hold


@pytest.mark.parametrize("keys", [("price",), ("day", "cost"), ("qty", "price", "flag")])
def test_keys_of_all_types(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]) -> None:
    """Also of -0.0, which is the key 0.0."""
    text = SOURCE + _totals(*keys, program="\n        filter id % 7 != 3\n        emit n = count(*)\n") + END
    with sizes(spark, monkeypatch, small=False):
        both_engines(spark, tmp_path, _write(600, 3), text)


def test_groups_that_nobody_keeps(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where workers and the run see other folders, Spark gets the groups, and sorts them."""
    monkeypatch.setattr(frames, "group_folder", lambda builder: None)
    text = SOURCE + _totals("city") + END
    with sizes(spark, monkeypatch, small=False):
        both_engines(spark, tmp_path, _write(700, 60), text)


def test_many_groups_are_read_by_several_tasks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "FEW", 10)
    text = SOURCE + _totals("id", "day", program="\n        emit n = count(*)\n        emit p = sum(price)\n") + END
    with sizes(spark, monkeypatch, small=False):
        both_engines(spark, tmp_path, _write(900, 3), text)


def test_behind_other_nodes_and_before_others(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    middle = """
  - { type: transform, name: u, input: s, config: { cxl: "filter id % 5 != 0\\nemit part = 100 / (id % 11)" } }
  - { type: route, name: r, input: u, config: { conditions: { low: "part < 30" }, default: rest } }
"""
    program = """
        filter qty == null or 100 / (id % 13) > 9
        emit n = count(*)
        emit parts = sum(100 / (id % 17))
"""
    rest = """
  - { type: transform, name: v, input: t, config: { cxl: "filter n > 1\\nemit ratio = parts / (n - 3)" } }
  - { type: output, name: two, input: v, config: { type: json, path: two.json } }
"""
    text = SOURCE + middle + _totals("city", node="r.low", program=program) + rest + END
    with sizes(spark, monkeypatch, small=False):
        both_engines(spark, tmp_path, _write(900, 40), text)


_ENDS = """
  - { type: transform, name: u, input: s, config: { cxl: "filter id % 5 != 0\\nemit part = 100 / (id % 11)" } }
  - { type: route, name: r, input: u, config: { conditions: { low: "part < 30" }, default: rest } }
  - type: aggregate
    name: by_day
    input: u
    config: { group_by: [day], cxl: "emit n = count(*)\\nemit s = sum(qty)" }
  - { type: aggregate, name: by_flag, input: r.rest, config: { group_by: [flag], cxl: "emit last = max(at)" } }
  - { type: transform, name: after, input: by_flag, config: { cxl: "emit flagged = last" } }
  - type: combine
    name: found
    input: { l: u, c: cities }
    config:
      where: l.city == c.name
      match: all
      on_miss: null_fields
      propagate_ck: driver
      cxl: |
        emit id = l.id
        emit number = 10 / (c.number - 2)
  - { type: output, name: days, input: by_day, config: { type: csv, path: days.csv } }
  - { type: output, name: low, input: r.low, config: { type: csv, path: low.csv } }
  - { type: output, name: flags, input: after, config: { type: json, path: flags.json } }
  - { type: output, name: all, input: u, config: { type: json, path: all.json } }
  - { type: output, name: found_out, input: found, config: { type: csv, path: found.csv } }
"""
_CITIES = """
  - { type: source, name: cities, config: { type: csv, path: cities.csv, schema: { name: string, number: int } } }
"""


@pytest.mark.parametrize("folders", ["seen", "elsewhere"])
def test_groups_beside_others_and_lines(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: str
) -> None:
    """One job reads the source and makes them all."""
    read: list[str] = []
    given = fragment_frames.read
    monkeypatch.setattr(fragment_frames, "read", lambda *a: (read.append(a[2].source), given(*a))[1])
    if folders == "elsewhere":  # then it is Spark's
        monkeypatch.setattr(frames, "group_folder", lambda builder: None)

    def write(folder: Path) -> None:
        _write(700, 3)(folder)
        names = [*["Köln"] * 40, "São Paulo", "", "Rom"]
        (folder / "cities.csv").write_text(
            "\n".join(["name,number", *(f"{n},{i}" for i, n in enumerate(names))]) + "\n"
        )

    with sizes(spark, monkeypatch, small=False):
        both_engines(spark, tmp_path, write, SOURCE + _CITIES + _ENDS + END)
    assert read == (["s"] if folders == "seen" else [])


@pytest.mark.parametrize("whole", [False, True])
def test_records_of_several_sources(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Groups come in the order of the merge, and their keys have its types."""
    head, schema = SOURCE.split("  - type: source")
    second = schema.replace("name: s\n", "name: s2\n").replace("in.csv", "second.csv")
    sources = f"{head}  - type: source{schema}  - type: source{second.replace('nullable(int)', 'nullable(float)')}"
    middle = """
  - { type: transform, name: less, input: s, config: { cxl: "filter id % 3 == 0" } }
  - { type: merge, name: m, inputs: [s2, less], config: { mode: concat } }
"""
    program = "\n        emit n = count(*)\n        emit all = sum(qty)\n"

    def write(folder: Path) -> None:
        _write(400, 90, seed=4)(folder)
        (folder / "in.csv").rename(folder / "second.csv")
        _write(500, 70)(folder)

    spark.conf.set("spark.sql.unionOutputPartitioning", "true")  # one task may read both, one after the other
    try:
        with sizes(spark, monkeypatch, small=False, whole=whole):
            both_engines(spark, tmp_path, write, sources + middle + _totals("city", node="m", program=program) + END)
    finally:
        spark.conf.set("spark.sql.unionOutputPartitioning", "false")


@pytest.mark.parametrize("value", ["avg(id)", "avg(id * 2) + 1.0", "avg(price)", "sum(id)", "max(price)", "count(*)"])
def test_totals_fail_alike_whoever_adds_up(tmp_path: Path, value: str) -> None:
    """A mean of Ints always has a value: where a node is said not to fail, nothing may look for failures."""
    text = SOURCE + _totals("city", program=f"\n        emit x = {value}\n")
    (tmp_path / "p.yaml").write_text(text.replace("ENGINE", "vector"))
    node: Any = prepare(tmp_path / "p.yaml")["t"]
    typed, context = node.program.typed, default_context("t")
    by_spark, by_workers = (lower_aggregate(typed, context, added_up=added_up) for added_up in (False, True))
    assert (by_spark.after.error is None) == (by_workers.after.error is None)


def test_a_source_is_read_once(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups are made while the pass is built; what readers said then is what counts."""
    again: list[str] = []
    monkeypatch.setattr(Accounts, "_count_again", lambda self: again.append("counted again"))
    program = "\n        emit n = count(*)\n"
    with sizes(spark, monkeypatch, small=False):
        seen_with(spark, tmp_path, _clean, SOURCE + _totals("city", program=program) + END, "vector")
    assert not again


def _clean(folder: Path) -> None:
    lines = [f"{i},city {i % 7},1,1.5,2024-02-29,,true" for i in range(900)]
    (folder / "in.csv").write_text("\n".join(["id,city,qty,price,day,at,flag", *lines]) + "\n")
