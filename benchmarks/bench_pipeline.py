"""Is `clinker run` as fast as the script one would write by hand? CSV in, a filter, five derived columns, CSV out.

Both run in one warm session, in turns. The script reads with Spark's CSV reader and a schema, and writes one CSV
file as Spark does (a folder of parts; ours is one file with a header, in source order). Reported: best time of the
clock and of the CPU, their ratio and the median ratio of neighbouring runs, and the peak memory of the process tree.

    python benchmarks/bench_pipeline.py [--rows 10000000] [--runs 3] [--dirty 0.01]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pacsv
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.session.sessions import session

SCHEMA = "id BIGINT, customer STRING, city STRING, qty BIGINT, price DOUBLE, rate DOUBLE, ordered DATE"
PIPELINE = """
pipeline: {{ name: bench }}
nodes:
  - type: source
    name: orders
    config:
      type: csv
      path: {data}
      schema:
        - {{ name: id, type: int }}
        - {{ name: customer, type: string }}
        - {{ name: city, type: string }}
        - {{ name: qty, type: int }}
        - {{ name: price, type: float }}
        - {{ name: rate, type: float }}
        - {{ name: ordered, type: date }}
  - type: transform
    name: priced
    input: orders
    config:
      cxl: |
        filter qty > 5
        emit gross = price * qty
        emit net = gross * (1.0 - rate)
        emit place = city.upper()
        emit year = ordered.year()
        emit bulk = if qty >= 50 then "bulk" else "retail"
  - type: output
    name: out
    input: priced
    config: {{ type: csv, path: {out} }}
error_handling: {{ strategy: continue, dlq: {{ path: {letters} }} }}
"""


def generate(path: Path, rows: int, dirty: float) -> None:
    """About 55 bytes a row; `dirty` is the share of rows whose quantity is no number."""
    random = np.random.default_rng(7)
    customers = np.array([f"customer {i}" for i in range(5000)])
    cities = np.array(["Paris", "London", "New York", "Tokyo", "Berlin"])
    with open(path, "wb") as file:
        for start in range(0, rows, 1_000_000):
            n = min(1_000_000, rows - start)
            qty = random.integers(1, 100, n).astype(str).astype(object)
            if dirty:
                qty[random.random(n) < dirty] = "n/a"
            table = pa.table(
                {
                    "id": np.arange(start, start + n),
                    "customer": customers[random.integers(0, len(customers), n)],
                    "city": cities[random.integers(0, len(cities), n)],
                    "qty": pa.array(qty, pa.string()),
                    "price": np.round(random.random(n) * 1000, 2),
                    "rate": np.round(random.random(n), 4),
                    "ordered": pa.array(random.integers(15000, 20000, n).astype("int32")).cast(pa.date32()),
                }
            )
            options = pacsv.WriteOptions(quoting_style="none", include_header=start == 0)
            pacsv.write_csv(table, file, options)


def script(spark: SparkSession, data: Path, out: Path) -> None:
    """What one would write by hand."""
    frame = spark.read.schema(SCHEMA).option("header", True).csv(str(data))
    frame = frame.where(F.col("qty") > 5)
    frame = frame.withColumn("gross", F.col("price") * F.col("qty"))
    frame = frame.withColumn("net", F.col("gross") * (1.0 - F.col("rate")))
    frame = frame.withColumn("place", F.upper("city"))
    frame = frame.withColumn("year", F.year("ordered"))
    frame = frame.withColumn("bulk", F.when(F.col("qty") >= 50, "bulk").otherwise("retail"))
    frame.write.mode("overwrite").option("header", True).csv(str(out))


def tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def cpu() -> float:
    total = 0.0
    for process in tree():
        try:
            times = process.cpu_times()
            total += times.user + times.system
        except psutil.Error:
            continue
    return total


class Peak:
    """The most memory of the process tree while the block runs."""

    def __enter__(self) -> Peak:
        self.most = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            used = 0
            for process in tree():
                try:
                    used += process.memory_info().rss
                except psutil.Error:
                    continue
            self.most = max(self.most, used)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def timed(work: Callable[[], object]) -> tuple[float, float, int]:
    before, began = cpu(), time.perf_counter()
    with Peak() as peak:
        work()
    return time.perf_counter() - began, cpu() - before, peak.most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dirty", type=float, default=0.0)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        data, out = folder / "orders.csv", folder / "ours.csv"
        generate(data, given.rows, given.dirty)
        print(f"{given.rows:,} rows, {data.stat().st_size / 1e6:.0f} MB, {given.dirty:.1%} dirty")
        text = PIPELINE.format(data=data, out=out, letters=folder / "letters.csv")
        (folder / "pipeline.yaml").write_text(text)
        plan = prepare(folder / "pipeline.yaml")
        spark = session("local[*]")
        sides: dict[str, Callable[[], object]] = {
            "script": lambda: script(spark, data, folder / "script"),
            "clinker": lambda: run(plan, spark),
        }
        results: dict[str, list[tuple[float, float, int]]] = {name: [] for name in sides}
        for i in range(given.runs + 1):
            for name, work in sides.items():
                found = timed(work)
                label = "warm-up" if i == 0 else f"run {i}"
                print(f"  {label:8} {name:8} {found[0]:6.2f} s  {found[1]:6.2f} s CPU  {found[2] / 1e6:6.0f} MB")
                if i:
                    results[name].append(found)
        best = {name: [min(column) for column in zip(*rows, strict=True)] for name, rows in results.items()}
        for i, what in enumerate(("clock", "CPU")):
            pairs = [ours[i] / theirs[i] for ours, theirs in zip(results["clinker"], results["script"], strict=True)]
            ratio = best["clinker"][i] / best["script"][i]
            print(
                f"{what}: clinker/script = {ratio:.2f} (best of each), {statistics.median(pairs):.2f} (median of pairs)"
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
