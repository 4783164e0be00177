"""The aggregates of `bench_vector`: five groups and 500,000 groups of the same orders, and what DuckDB is asked."""

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
GROUPS = 500_000
SCHEMA = "id BIGINT, customer STRING, city STRING, qty BIGINT, price DOUBLE"
PIPELINE = """
pipeline: {{ name: bench, engine: {engine} }}
nodes:
  - type: source
    name: orders
    config:
      type: csv
      path: {data}
      schema: {{ id: int, customer: string, city: string, qty: int, price: float }}
  - type: transform
    name: priced
    input: orders
    config: {{ cxl: "filter qty > 5\\nemit gross = price * qty" }}
  - type: aggregate
    name: totals
    input: priced
    config:
      group_by: [{key}]
      cxl: |
        emit n = count(*)
        emit items = sum(qty)
        emit total = sum(gross)
        emit most = max(price)
        emit mean = avg(price)
  - {{ type: output, name: out, input: totals, config: {{ type: csv, path: {folder}/{engine}.csv }} }}
"""
SQL = """
SELECT {key}, count(*) n, sum(qty) items, sum(price * qty) total, max(price) most, avg(price) mean
FROM read_csv('{data}') WHERE qty > 5 GROUP BY {key}
"""


def generate(path: Path, rows: int) -> None:
    random = np.random.default_rng(7)
    customers = np.array([f"customer {i}" for i in range(GROUPS)])
    cities = np.array(["Paris", "London", "New York", "Tokyo", "Berlin"])
    table = {
        "id": np.arange(rows),
        "customer": customers[random.integers(0, GROUPS, rows)],
        "city": cities[random.integers(0, len(cities), rows)],
        "qty": random.integers(1, 100, rows),
        "price": np.round(random.random(rows) * 1000, 2),
    }
    pacsv.write_csv(pa.table(table), path, pacsv.WriteOptions(quoting_style="none"))


def _job(key: str) -> Callable[[SparkSession, Path, int], dict[str, Work]]:
    def sides(spark: SparkSession, folder: Path, rows: int) -> dict[str, Work]:
        data = folder / "orders.csv"
        generate(data, rows)

        def script() -> None:
            frame = spark.read.schema(SCHEMA).option("header", True).csv(str(data)).where(F.col("qty") > 5)
            frame = frame.withColumn("gross", F.col("price") * F.col("qty"))
            groups = frame.groupBy(key).agg(
                F.count(F.lit(1)).alias("n"),
                F.sum("qty").alias("items"),
                F.sum("gross").alias("total"),
                F.max("price").alias("most"),
                F.avg("price").alias("mean"),
            )
            groups.write.mode("overwrite").option("header", True).csv(str(folder / "script"))

        def duck() -> None:
            duckdb.sql(f"COPY ({SQL.format(key=key, data=data)}) TO '{folder}/duck.csv'")

        found: dict[str, Work] = {"script": script, "duckdb": duck}
        for engine in ("spark", "vector"):
            path = folder / f"{engine}.yaml"
            path.write_text(PIPELINE.format(folder=folder, engine=engine, data=data, key=key))
            plan = prepare(path)
            found[engine] = lambda plan=plan: run(plan, spark)  # type: ignore[misc]
        return found

    return sides


JOBS = {"few": _job("city"), "many": _job("customer")}
