"""What does the error channel cost? The same ten columns as CXL and as hand-written PySpark, side by side.

Five million rows are generated once as Parquet; each side reads them and writes to Spark's noop sink, in
turns in one session. Reported are the best runs of each side, in seconds of the clock and of the JVM's CPU, and
their ratios: the machine is shared, so only ratios mean anything, and those of CPU time the most.

    python benchmarks/bench_error_channel.py [--rows 5000000] [--runs 7]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.cxl.program import compile
from clinker_spark.spark.columns.types import schema_of
from clinker_spark.spark.session.sessions import session

PROGRAM = """
emit total = price * qty
emit units = qty + bonus
emit unit_cost = amount / qty
emit name = first.trim().upper()
emit domain = email.capture("@(.+)$", 1)
emit year = ordered.year()
emit tier = if amount > 9000 then "gold" else if amount > 5000 then "silver" else "bronze"
emit number = code.to_int()
emit discount = (price * 0.1).round_to(2)
emit label = name + "-" + code
"""


def by_hand(df: DataFrame) -> DataFrame:
    """What a data engineer would write for the same columns, without any care for bad values."""
    name = F.upper(F.trim("first"))
    tier = F.when(F.col("amount") > 9000, "gold").when(F.col("amount") > 5000, "silver").otherwise("bronze")
    return df.select(
        "*",
        (F.col("price") * F.col("qty")).alias("total"),
        (F.col("qty") + F.col("bonus")).alias("units"),
        F.expr("amount div qty").alias("unit_cost"),
        name.alias("name"),
        F.regexp_extract("email", "@(.+)$", 1).alias("domain"),
        F.year("ordered").alias("year"),
        tier.alias("tier"),
        F.col("code").cast("long").alias("number"),
        F.round(F.col("price") * 0.1, 2).alias("discount"),
        F.concat(name, F.lit("-"), F.col("code")).alias("label"),
    )


def make_data(spark: SparkSession, rows: int, path: str) -> DataFrame:
    df = spark.range(rows, numPartitions=4).selectExpr(
        "id % 9 + 1 AS qty",
        "id % 17 AS bonus",
        "(id * 7919) % 10000 AS amount",
        "CAST((id * 31) % 100000 AS DOUBLE) / 100 AS price",
        "concat('  name', id % 1000, ' ') AS first",
        "concat('user', id, '@example', id % 50, '.org') AS email",
        "CAST(id % 100000 AS STRING) AS code",
        "date_add(DATE'2015-01-01', CAST(id % 4000 AS INT)) AS ordered",
    )
    df.write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)


def cpu_seconds() -> float:
    """CPU time used so far by everything this process has started: the JVM."""
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children(recursive=True))


def timed(make: Callable[[], DataFrame]) -> tuple[float, float]:
    start, cpu = time.perf_counter(), cpu_seconds()
    make().write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start, cpu_seconds() - cpu


def report(times: dict[str, list[tuple[float, float]]]) -> None:
    for name, found in times.items():
        clock, cpu = zip(*found, strict=True)
        print(f"{name:14} clock: best {min(clock):6.2f} s, median {statistics.median(clock):6.2f} s", end="   ")
        print(f"CPU: best {min(cpu):6.2f} s, median {statistics.median(cpu):6.2f} s")
    for index, what in enumerate(("clock", "CPU")):
        hand, ours = ([t[index] for t in times[name]] for name in ("hand-written", "cxl"))
        pairs = statistics.median(o / h for o, h in zip(ours, hand, strict=True))
        print(f"{what:5} ratio: best {min(ours) / min(hand):.3f}, median of the pairs {pairs:.3f} (goal: at most 1.10)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--plan", action="store_true", help="print the physical plans")
    options = parser.parse_args()
    spark = session("local[2]", conf={"spark.driver.memory": "4g"})
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        df = make_data(spark, options.rows, str(folder / "orders"))
        program = compile(PROGRAM, schema_of(df.schema))
        sides: dict[str, Callable[[], DataFrame]] = {
            "hand-written": lambda: by_hand(df),
            "cxl": lambda: program.apply(df),
        }
        if options.plan:
            for make in sides.values():
                make().explain("formatted")
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for run in range(options.runs + 2):
            for name, make in sides.items():
                found = timed(make)
                if run > 1:  # the first rounds warm up the JIT
                    times[name].append(found)
        report(times)
    finally:
        shutil.rmtree(folder)
        spark.stop()


if __name__ == "__main__":
    main()
