"""Joins side by side: `clinker run` against the same join as a PySpark script, both in one warm session, and DuckDB.

* equi: 5 M orders look up 200 k or 2 M products by key; CSV in, CSV out.
* range: 1 M points look up 100 k intervals. Spark alone compares all with all, so its time is measured on a fraction
  of the points and extrapolated; the join is counted, not written, so that only the join is measured.

    python benchmarks/bench_combine.py [--part equi|range|latest] [--rows 5000000] [--runs 2]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from bench_pipeline import timed
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.plan.nodes.base import StreamRef
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.discover.sources import discover
from clinker_spark.runtime.run.options import Options, contexts
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import RunContext
from clinker_spark.spark.session.sessions import session

EQUI = """
pipeline: {{ name: bench }}
nodes:
  - type: source
    name: orders
    config: {{ type: csv, path: orders.csv, schema: {{ id: int, product: int, qty: int }} }}
  - type: source
    name: products
    config: {{ type: csv, path: {products}, schema: {{ code: int, title: string, price: float }} }}
  - type: combine
    name: priced
    input: {{ o: orders, p: products }}
    config:
      where: o.product == p.code
      on_miss: {on_miss}
      propagate_ck: driver
      cxl: |
        emit id = o.id
        emit title = p.title
        emit total = o.qty * p.price
  - type: output
    name: out
    input: priced
    config: {{ type: csv, path: out.csv, order: {order} }}
"""
RANGE = """
pipeline: {{ name: bench }}
nodes:
  - type: source
    name: points
    config: {{ type: csv, path: {points}, schema: {{ id: int, at: int }} }}
  - type: source
    name: spans
    config: {{ type: csv, path: spans.csv, schema: {{ name: int, low: int, high: int }} }}
  - type: combine
    name: found
    input: {{ p: points, s: spans }}
    config:
      where: p.at >= s.low and p.at <= s.high
      match: all
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit id = p.id
        emit name = s.name
  - type: output
    name: out
    input: found
    config: {{ type: csv, path: out.csv }}
"""


def write(path: Path, columns: dict[str, object]) -> None:
    pacsv.write_csv(pa.table(columns), path, pacsv.WriteOptions(quoting_style="none"))


def equi(spark: SparkSession, folder: Path, rows: int, products: int, runs: int, order: str, on_miss: str) -> None:
    random = np.random.default_rng(7)
    write(
        folder / "orders.csv",
        {
            "id": np.arange(rows),
            "product": random.integers(0, int(products * 1.05), rows),
            "qty": random.integers(1, 99, rows),
        },
    )
    codes = random.permutation(products)
    titles = np.char.add("product ", codes.astype(str))
    name = f"products{products}.csv"
    write(folder / name, {"code": codes, "title": titles, "price": np.round(random.random(products) * 100, 2)})
    path = folder / "equi.yaml"
    path.write_text(EQUI.format(products=name, order=order, on_miss=on_miss))
    plan = prepare(path)
    how = "left" if on_miss == "null_fields" else "inner"

    def script() -> None:
        orders = spark.read.schema("id BIGINT, product BIGINT, qty BIGINT").option("header", True)
        lookup = spark.read.schema("code BIGINT, title STRING, price DOUBLE").option("header", True)
        o, p = orders.csv(str(folder / "orders.csv")), lookup.csv(str(folder / name))
        joined = o.join(p, o["product"] == p["code"], how)
        joined.select("id", "title", (F.col("qty") * F.col("price")).alias("total")).write.mode("overwrite").option(
            "header", True
        ).csv(str(folder / "script"))

    def duck() -> None:
        duckdb.sql(
            f"COPY (SELECT id, title, qty * price AS total FROM '{folder}/orders.csv' o {how} JOIN '{folder}/{name}' p "
            f"ON o.product = p.code) TO '{folder}/duck.csv'"
        )

    print(f"equi: {rows:,} x {products:,}, order: {order}, {on_miss}, strategy {plan['priced'].steps[0].strategy}")
    compare({"script": script, "clinker": lambda: run(plan, spark), "duckdb": duck}, runs)


def compare(sides: dict[str, Callable[[], object]], runs: int) -> None:
    results: dict[str, list[tuple[float, float, int]]] = {name: [] for name in sides}
    for i in range(runs + 1):
        for name, work in sides.items():
            found = timed(work)
            print(f"  {'warm-up' if i == 0 else f'run {i}':8} {name:8} {found[0]:6.2f} s  {found[1]:6.2f} s CPU")
            if i:
                results[name].append(found)
    best = {name: [min(column) for column in zip(*rows, strict=True)] for name, rows in results.items()}
    for i, what in enumerate(("clock", "CPU")):
        print(f"  {what}: clinker/script = {best['clinker'][i] / best['script'][i]:.2f}")


def ranges(spark: SparkSession, folder: Path, points: int, spans: int, fraction: int) -> None:
    random = np.random.default_rng(7)
    axis = 1_000_000_000
    low = random.integers(0, axis, spans)
    # Most are short, some long, a few very long.
    length = np.exp(random.normal(7, 2, spans)).astype("int64")
    write(folder / "spans.csv", {"name": np.arange(spans), "low": low, "high": low + length})

    def counted(number: int) -> tuple[float, int]:
        name = f"points{number}.csv"
        if not (folder / name).exists():
            write(folder / name, {"id": np.arange(number), "at": random.integers(0, axis, number)})
        path = folder / f"range{number}.yaml"
        path.write_text(RANGE.format(points=name))
        plan = prepare(path)
        began = time.perf_counter()
        files = {source.name: discover(source, folder, Options().now).files for source in plan.sources}
        builder = Builder(RunContext(spark, plan, contexts(plan, Options()), files))
        found = builder.stream(StreamRef("found")).frame.count()
        return time.perf_counter() - began, found

    def nested(number: int) -> tuple[float, int]:
        p = spark.read.schema("id BIGINT, at BIGINT").option("header", True).csv(str(folder / f"points{points}.csv"))
        s = (
            spark.read.schema("name BIGINT, low BIGINT, high BIGINT")
            .option("header", True)
            .csv(str(folder / "spans.csv"))
        )
        p = p.limit(number).repartition(spark.sparkContext.defaultParallelism)
        began = time.perf_counter()
        found = p.join(s, (p["at"] >= s["low"]) & (p["at"] <= s["high"])).count()
        return time.perf_counter() - began, found

    def duck() -> tuple[float, int]:
        began = time.perf_counter()
        query = f"SELECT count(*) FROM '{folder}/points{points}.csv' p JOIN '{folder}/spans.csv' s"
        [row] = duckdb.sql(f"{query} ON p.at >= s.low AND p.at <= s.high").fetchall()
        return time.perf_counter() - began, row[0]

    print(f"range: {points:,} points x {spans:,} intervals")
    counted(points)
    ours, found = min(counted(points) for _ in range(2))
    theirs_db, found_db = duck()
    small = points // fraction
    nested(small // 10)
    theirs, _ = nested(small)
    overhead, _ = nested(small // 10)
    whole = (theirs - overhead) / (small - small // 10) * points
    assert found == found_db, (found, found_db)
    print(f"  clinker  {ours:8.2f} s  {found:,} pairs (the same as DuckDB)")
    print(f"  duckdb   {theirs_db:8.2f} s")
    print(f"  spark    {whole:8.2f} s  extrapolated from {small:,} points in {theirs:.2f} s")
    print(f"  spark/clinker = {whole / ours:.0f}")
    more, _ = min(counted(5 * points) for _ in range(2))
    print(f"  5 times the points: {more:.2f} s, {more / ours:.2f} times as long")


LATEST = """
pipeline: { name: bench }
nodes:
  - type: source
    name: trades
    config: { type: csv, path: trades.csv, schema: { id: int, key: int, at: int } }
  - type: source
    name: quotes
    config: { type: csv, path: quotes.csv, schema: { key: int, at: int, price: float } }
  - type: combine
    name: priced
    input: { t: trades, q: quotes }
    config:
      where: t.key == q.key and q.at <= t.at
      match: latest
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit id = t.id
        emit price = q.price
  - type: output
    name: out
    input: priced
    config: { type: csv, path: out.csv }
"""


def latest(spark: SparkSession, folder: Path, rows: int, runs: int) -> None:
    """The as-of join: ours (both sides in one sorted stream), Spark's own, and an aggregate after an equi join."""
    random = np.random.default_rng(7)
    quotes, keys = rows // 5, 2000
    write(
        folder / "trades.csv",
        {"id": np.arange(rows), "key": random.integers(0, keys, rows), "at": random.integers(0, 10**9, rows)},
    )
    write(
        folder / "quotes.csv",
        {
            "key": random.integers(0, keys, quotes),
            "at": np.unique(random.integers(0, 10**9, 2 * quotes))[:quotes],
            "price": np.round(random.random(quotes) * 100, 2),
        },
    )
    (folder / "latest.yaml").write_text(LATEST)
    plan = prepare(folder / "latest.yaml")
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    spark.conf.set("spark.sql.join.sortMergeAsOfJoin.enabled", "true")

    def ours() -> int:
        files = {source.name: discover(source, folder, Options().now).files for source in plan.sources}
        builder = Builder(RunContext(spark, plan, contexts(plan, Options()), files))
        return builder.stream(StreamRef("priced")).frame.count()

    def frames() -> tuple[DataFrame, DataFrame]:
        t = spark.read.schema("id BIGINT, key BIGINT, at BIGINT").option("header", True).csv(str(folder / "trades.csv"))
        q = spark.read.schema("key BIGINT, at BIGINT, price DOUBLE").option("header", True)
        return t, q.csv(str(folder / "quotes.csv"))

    def native() -> int:
        t, q = frames()
        t.createOrReplaceTempView("t")
        q.createOrReplaceTempView("q")
        text = "SELECT t.id, q.price FROM t ASOF JOIN q MATCH_CONDITION (t.at >= q.at) ON t.key = q.key"
        return spark.sql(text).where("price IS NOT NULL").count()

    def grouped() -> int:
        t, q = frames()
        pairs = t.join(q.withColumnRenamed("at", "since"), "key").where("since <= at")
        return pairs.groupBy("id").agg(F.max_by("price", "since")).count()

    print(f"latest: {rows:,} x {quotes:,}, {keys:,} keys")
    for name, work in (("clinker", ours), ("spark ASOF JOIN", native), ("join and max_by", grouped)):
        found, best = None, 1e9
        try:
            for _ in range(runs + 1):
                began = time.perf_counter()
                found = work()
                best = min(best, time.perf_counter() - began)
            print(f"  {name:16} {best:7.2f} s  {found:,} pairs", flush=True)
        except Exception as error:
            print(f"  {name:16} failed: {str(error).splitlines()[0][:100]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("equi", "range", "latest"))
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    spark = session("local[*]")
    try:
        if given.part in (None, "equi"):
            for products in (200_000, 2_000_000):
                equi(spark, folder, given.rows, products, given.runs, "source", "null_fields")
        if given.part in (None, "range"):
            ranges(spark, folder, given.rows // 5, given.rows // 50, 200)
        if given.part in (None, "latest"):
            latest(spark, folder, given.rows // 5, given.runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
