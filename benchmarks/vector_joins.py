"""The joins of `bench_vector`: their files, pipelines, scripts and what DuckDB is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run

Work = Callable[[], object]
CUSTOMERS, BANDS, AXIS = 500_000, 2_000, 1_000_000
PIPELINE = """
pipeline: {{ name: bench, engine: {engine} }}
nodes:
  - type: source
    name: orders
    config: {{ type: csv, path: {folder}/orders.csv, schema: {{ {orders} }} }}
  - type: source
    name: table
    config: {{ type: csv, path: {folder}/table.csv, schema: {{ {table} }} }}
  - type: combine
    name: found
    input: {{ o: orders, t: table }}
    config:
      where: {where}
      match: {match}
      on_miss: {miss}
      drive: o
      propagate_ck: driver
      cxl: |
        {cxl}
  - {{ type: output, name: out, input: found, config: {{ type: csv, path: {folder}/{engine}.csv }} }}
"""


def _write(path: Path, columns: dict[str, object]) -> None:
    pacsv.write_csv(pa.table(columns), path, pacsv.WriteOptions(quoting_style="none"))


def _program(*statements: str) -> str:
    return "\n        ".join(statements)


def _sides(spark: SparkSession, folder: Path, texts: dict[str, str], script: Work, sql: str) -> dict[str, Work]:
    def duck() -> None:
        duckdb.sql(f"COPY ({sql}) TO '{folder}/duck.csv'")

    sides: dict[str, Work] = {"script": script, "duckdb": duck}
    for engine in ("spark", "vector"):
        path = folder / f"{engine}.yaml"
        path.write_text(PIPELINE.format(folder=folder, engine=engine, **texts))
        plan = prepare(path)
        sides[engine] = lambda plan=plan: run(plan, spark)  # type: ignore[misc]
    return sides


def lookup(spark: SparkSession, folder: Path, rows: int) -> dict[str, Work]:
    """Orders look up their customers; one in twenty has none."""
    random = np.random.default_rng(7)
    _write(
        folder / "orders.csv",
        {
            "id": np.arange(rows),
            "customer": random.integers(0, int(CUSTOMERS * 1.05), rows),
            "qty": random.integers(1, 99, rows),
            "price": np.round(random.random(rows) * 1000, 2),
        },
    )
    codes = random.permutation(CUSTOMERS)
    names = np.char.add("customer ", codes.astype(str))
    _write(folder / "table.csv", {"code": codes, "name": names, "rate": np.round(random.random(CUSTOMERS), 4)})

    def script() -> None:
        orders = spark.read.schema("id BIGINT, customer BIGINT, qty BIGINT, price DOUBLE").option("header", True)
        table = spark.read.schema("code BIGINT, name STRING, rate DOUBLE").option("header", True)
        o, t = orders.csv(f"{folder}/orders.csv"), table.csv(f"{folder}/table.csv")
        joined = o.join(t, o["customer"] == t["code"], "left")
        chosen = joined.select("id", "name", "qty", (F.col("price") * F.col("rate")).alias("total"))
        chosen.write.mode("overwrite").option("header", True).csv(f"{folder}/script")

    texts = {
        "orders": "id: int, customer: int, qty: int, price: float",
        "table": "code: int, name: string, rate: float",
        "where": "o.customer == t.code",
        "match": "first",
        "miss": "null_fields",
        "cxl": _program("emit id = o.id", "emit name = t.name", "emit qty = o.qty", "emit total = o.price * t.rate"),
    }
    sql = f"SELECT id, name, qty, price * rate AS total FROM '{folder}/orders.csv' o "
    return _sides(spark, folder, texts, script, f"{sql} LEFT JOIN '{folder}/table.csv' t ON o.customer = t.code")


def bands(spark: SparkSession, folder: Path, rows: int) -> dict[str, Work]:
    """Points look up all bands that they lie in: 2.7 for each."""
    random = np.random.default_rng(7)
    _write(folder / "orders.csv", {"id": np.arange(rows), "at": random.integers(0, AXIS, rows)})
    low = random.integers(0, AXIS, BANDS)
    _write(folder / "table.csv", {"name": np.arange(BANDS), "low": low, "high": low + random.integers(0, 2_680, BANDS)})

    def script() -> None:
        points = spark.read.schema("id BIGINT, at BIGINT").option("header", True).csv(f"{folder}/orders.csv")
        table = spark.read.schema("name BIGINT, low BIGINT, high BIGINT").option("header", True)
        t = table.csv(f"{folder}/table.csv")
        joined = points.join(F.broadcast(t), (points["at"] >= t["low"]) & (points["at"] <= t["high"]))
        joined.select("id", "name").write.mode("overwrite").option("header", True).csv(f"{folder}/script")

    texts = {
        "orders": "id: int, at: int",
        "table": "name: int, low: int, high: int",
        "where": "o.at >= t.low and o.at <= t.high",
        "match": "all",
        "miss": "skip",
        "cxl": _program("emit id = o.id", "emit name = t.name"),
    }
    sql = f"SELECT id, name FROM '{folder}/orders.csv' o JOIN '{folder}/table.csv' t ON o.at BETWEEN t.low AND t.high"
    return _sides(spark, folder, texts, script, sql)


JOBS: dict[str, Callable[[SparkSession, Path, int], dict[str, Work]]] = {"join": lookup, "bands": bands}
