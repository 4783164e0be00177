"""Combines against DuckDB: every way to match and to miss, every shape of condition, however Spark is told to join.

DuckDB finds the pairs; what becomes of them (`first`, `all`, `collect`, misses) is a few lines of Python here. Many
cases run in one Spark job: each case is a tagged part of one union.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import json
import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.nodes.combine import CombinePlan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options, contexts
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.memo import Memo
from clinker_spark.spark.build.passes import Find, Pass, RunContext
from clinker_spark.spark.build.stream import Stream

COLUMNS = {
    "i": "int",
    "k": "int",
    "s": "string",
    "f": "float",
    "lo": "int",
    "hi": "int",
    "d": "date",
    "t": "datetime",
    "m": "decimal(2)",
}
SQL_TYPES = {
    "int": "BIGINT",
    "string": "VARCHAR",
    "float": "DOUBLE",
    "date": "DATE",
    "datetime": "TIMESTAMP",
    "decimal(2)": "DECIMAL(18, 2)",
}


@dataclass(frozen=True)
class Shape:
    """A condition in CXL, and the same in DuckDB's SQL."""

    name: str
    cxl: str
    sql: str


FINITE = "isfinite(a.f) AND isfinite(b.f)"
SHAPES = (
    Shape("int key", "a.k == b.k", "a.k = b.k"),
    Shape("text key", "a.s == b.s", "a.s = b.s"),
    Shape("float key", "a.f == b.f", "a.f = b.f"),
    Shape("date key", "a.d == b.d", "a.d = b.d"),
    Shape("decimal key", "a.m == b.m", "a.m = b.m"),
    Shape("two keys", "a.k == b.k and a.s == b.s", "a.k = b.k AND a.s = b.s"),
    Shape("expressions", "a.k + 1 == b.k * 2", "a.k + 1 = b.k * 2"),
    Shape("key and residual", "a.k == b.k and a.lo + b.lo > 30", "a.k = b.k AND a.lo + b.lo > 30"),
    Shape("one side only", "a.k == b.k and b.lo > 10 and a.lo < 90", "a.k = b.k AND b.lo > 10 AND a.lo < 90"),
    Shape("either or", 'a.k == b.k and (a.s == "x" or b.s == "y")', "a.k = b.k AND (a.s = 'x' OR b.s = 'y')"),
    Shape("point in interval", "a.lo >= b.lo and a.lo <= b.hi", "a.lo >= b.lo AND a.lo <= b.hi"),
    Shape("half open", "b.lo <= a.lo and a.lo < b.hi", "a.lo >= b.lo AND a.lo < b.hi"),
    Shape("open", "b.lo < a.lo and a.lo < b.hi", "a.lo > b.lo AND a.lo < b.hi"),
    Shape("interval has point", "a.lo <= b.lo and b.lo <= a.hi", "a.lo <= b.lo AND b.lo <= a.hi"),
    Shape("overlap", "a.lo <= b.hi and b.lo <= a.hi", "a.lo <= b.hi AND b.lo <= a.hi"),
    Shape("contains", "a.lo >= b.lo and a.hi <= b.hi", "a.lo >= b.lo AND a.hi <= b.hi"),
    Shape(
        "key and interval", "a.k == b.k and a.lo >= b.lo and a.lo <= b.hi", "a.k = b.k AND a.lo BETWEEN b.lo AND b.hi"
    ),
    Shape("one range", "a.lo < b.lo", "a.lo < b.lo"),
    Shape("one range of floats", "a.f >= b.f", f"{FINITE} AND a.f >= b.f"),
    Shape("one range of dates", "a.d > b.d and (b.k ?? 0) > 1", "a.d > b.d AND coalesce(b.k, 0) > 1"),
    Shape("key and one range", "a.k == b.k and a.lo < b.hi", "a.k = b.k AND a.lo < b.hi"),
    Shape("two axes", "a.lo > b.lo and a.hi < b.hi", "a.lo > b.lo AND a.hi < b.hi"),
    Shape("same direction", "a.lo > b.lo and a.hi > b.hi", "a.lo > b.lo AND a.hi > b.hi"),
    Shape("floats", "a.f >= b.f and a.f <= b.f + 5.0", f"{FINITE} AND a.f BETWEEN b.f AND b.f + 5.0"),
    Shape("mixed", "a.f >= b.lo and a.f <= b.hi", "isfinite(a.f) AND a.f BETWEEN b.lo AND b.hi"),
    Shape("decimals", "a.m >= b.m and a.m <= b.m + 1", "a.m BETWEEN b.m AND b.m + 1"),
    Shape("whole and decimal", "a.k >= b.m and a.k <= b.m + 2", "a.k BETWEEN b.m AND b.m + 2"),
    Shape("dates", "a.d >= b.d and a.d <= b.d.add_days(40)", "a.d BETWEEN b.d AND b.d + 40"),
    Shape("times", "a.t >= b.t and a.t < b.t.add_days(3)", "a.t >= b.t AND a.t < b.t + INTERVAL 3 DAY"),
    Shape(
        "interval and residual",
        "a.lo >= b.lo and a.lo <= b.hi and (a.k ?? 0) + (b.k ?? 0) > 4",
        "a.lo BETWEEN b.lo AND b.hi AND coalesce(a.k, 0) + coalesce(b.k, 0) > 4",
    ),
)
MODES = tuple(itertools.product(("first", "all", "collect"), ("null_fields", "skip")))
STRATEGIES = (None, "broadcast", "grace_hash", "sort_merge", "nested_loop")


# ---------------------------------------------------------------- data


def records(pattern: str, side: str, rng: random.Random) -> list[dict[str, Any]]:
    """Records of one side: dense keys, nulls, one heavy key, lengths from 0 to very long, odd floats."""
    many = {"empty": 0 if side == "b" else 12, "skew": 60}.get(pattern, 40)
    result = []
    for i in range(many):
        low = rng.choice([rng.randint(0, 100), rng.randint(-1000, 1_000_000)])
        length = rng.choice(
            [0, 1, rng.randint(0, 20), rng.randint(0, 400), 10 ** rng.randint(1, 6), -rng.randint(1, 9)]
        )
        record: dict[str, Any] = {
            "i": i,
            "k": 7 if pattern == "skew" and rng.random() < 0.7 else rng.randint(0, 12),
            "s": rng.choice(["x", "y", "z", "", "é"]),
            "f": rng.choice(
                [0.0, -0.0, math.nan, math.inf, -math.inf, float(rng.randint(-9, 9)), rng.uniform(-40, 40)]
            ),
            "lo": low,
            "hi": low + length,
            "d": dt.date(2024, 1, 1) + dt.timedelta(days=rng.randint(0, 200)),
            "t": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=rng.randint(0, 20 * 86400)),
            "m": decimal.Decimal(rng.randint(-500, 3000)) / 100,
        }
        if pattern == "nulls":
            for name in record:
                if name != "i" and rng.random() < 0.25:
                    record[name] = None
        result.append(record)
    return result


def pairs(shape: Shape, a: list[dict[str, Any]], b: list[dict[str, Any]]) -> list[tuple[int, int]]:
    with duckdb.connect() as db:
        for name, rows in (("a", a), ("b", b)):
            columns = ", ".join(f"{c} {SQL_TYPES[t]}" for c, t in COLUMNS.items())
            db.execute(f"CREATE TABLE {name} ({columns})")
            if rows:
                marks = ", ".join("?" for _ in COLUMNS)
                db.executemany(f"INSERT INTO {name} VALUES ({marks})", [list(row.values()) for row in rows])
        found = db.execute(f"SELECT a.i, b.i FROM a, b WHERE {shape.sql} ORDER BY 1, 2").fetchall()
    return [(x, y) for x, y in found]


def expected(found: list[tuple[int, int]], drivers: int, match: str, on_miss: str) -> list[Any]:
    by_driver: dict[int, list[int]] = {}
    for x, y in found:
        by_driver.setdefault(x, []).append(y)
    result: list[Any] = []
    for x in range(drivers):
        matches = by_driver.get(x, [])
        if match == "collect":
            if matches or on_miss != "skip":
                result.append([x, matches])
        elif not matches:
            if on_miss == "null_fields":
                result.append([x, None])
        else:
            result += [[x, y] for y in (matches if match == "all" else matches[:1])]
    return result


# ---------------------------------------------------------------- running


def plan_of(folder: Path, shape: Shape, match: str, on_miss: str, number: int) -> CombinePlan:
    columns = json.dumps(COLUMNS)
    body = "" if match == "collect" else "emit x = a.i\nemit y = b.i"
    source = "  - {{type: source, name: {0}, config: {{type: csv, path: {0}.csv, schema: {1}}}}}"
    text = "\n".join(
        (
            "pipeline: {name: p}",
            "nodes:",
            source.format("a", columns),
            source.format("b", columns),
            "  - type: combine",
            "    name: c",
            "    input: {a: a, b: b}",
            f"    config: {{where: {json.dumps(shape.cxl)}, match: {match}, on_miss: {on_miss}, propagate_ck: all, "
            f"cxl: {json.dumps(body)}}}",
            "  - {type: output, name: o, input: c, config: {type: json, path: o.json}}",
        )
    )
    path = folder / f"p{number}.yaml"
    path.write_text(text)
    return prepare(path)  # type: ignore[return-value]


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    kinds = {"int": "bigint", "string": "string", "float": "double", "date": "date", "datetime": "timestamp_ntz"}
    kinds["decimal(2)"] = "decimal(29, 2)"
    schema = ", ".join(f"{name} {kinds[t]}" for name, t in COLUMNS.items())
    made = spark.createDataFrame([tuple(row.values()) for row in rows], schema)
    return made.withColumn(ARRIVAL_COLUMN, F.col("i"))


def results(builder: Builder, case: int, match: str) -> DataFrame:
    made = builder.stream(StreamRef("c")).frame
    if match == "collect":
        second = F.expr("to_json(transform(b, m -> try_variant_get(m['i'], '$', 'bigint')))")
        first = F.col("i")
    else:
        second, first = F.col("y").cast("string"), F.col("x")
    return made.select(
        F.lit(case).alias("case"),
        F.col(quote(ARRIVAL_COLUMN)).cast("string").alias("at"),
        first.alias("x"),
        second.alias("y"),
    )


def run_cases(spark: SparkSession, folder: Path, cases: list[tuple[Shape, str, str, str | None]], pattern: str) -> None:
    rng = random.Random(f"{pattern}")
    a, b = records(pattern, "a", rng), records(pattern, "b", rng)
    left, right = frame(spark, a), frame(spark, b)
    frames, plans = [], {}
    for number, (shape, match, on_miss, forced) in enumerate(cases):
        key = (shape.name, match, on_miss)
        if key not in plans:
            plans[key] = plan_of(folder, shape, match, on_miss, number)
        plan: Any = plans[key]
        needs = plan.facts.columns.required
        streams = {
            name: made.select(*sorted(needs[name].columns), ARRIVAL_COLUMN)
            for name, made in (("a", left), ("b", right))
        }
        context = RunContext(spark, plan, contexts(plan, Options()), {}, forced_join=forced)
        built = {name: {None: Stream(made, in_place=False)} for name, made in streams.items()}
        builder = Builder(context, Pass(Find(frozenset())), Memo(built))
        frames.append(results(builder, number, match))
    found: dict[int, list[Any]] = {}
    for row in reduce(DataFrame.unionByName, frames).collect():
        found.setdefault(row["case"], []).append(row)
    known: dict[str, list[tuple[int, int]]] = {}
    for number, (shape, match, on_miss, forced) in enumerate(cases):
        if shape.name not in known:
            known[shape.name] = pairs(shape, a, b)
        want = expected(known[shape.name], len(a), match, on_miss)
        rows = [[r["x"], None if r["y"] is None else json.loads(r["y"])] for r in found.get(number, [])]
        got = sorted(rows, key=lambda r: (r[0], r[1] if isinstance(r[1], int) else -1))
        assert got == want, f"{shape.name}, {match}, {on_miss}, {forced}, {pattern}"


def groups(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
"""All combinations take minutes; without it, a part of them that is the same in every run."""


def chosen(cases: list[Any], seed: str, many: int) -> list[Any]:
    return cases if EVERYTHING else random.Random(seed).sample(cases, many)


@pytest.mark.parametrize("pattern", ["plain", "nulls", "skew", "empty"])
def test_every_shape_and_mode(spark: SparkSession, tmp_path: Path, pattern: str) -> None:
    cases = [(shape, match, on_miss, None) for shape in SHAPES for match, on_miss in MODES]
    for part in groups(chosen(cases, pattern, 10 if pattern == "nulls" else 2), 25):
        run_cases(spark, tmp_path, part, pattern)


def test_every_strategy(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(7)
    cases = [(shape, *rng.choice(MODES), forced) for shape in SHAPES for forced in STRATEGIES[1:]]
    for part in groups(chosen(cases, "strategies", 6), 25):
        run_cases(spark, tmp_path, part, "nulls")
