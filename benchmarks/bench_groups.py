"""What nodes that look at groups of records cost, beside the same by hand: from Parquet to a folder of Parquet.

python benchmarks/bench_groups.py [reshape windows hopping] [--rows 5000000] [--runs 2]

- reshape: rules that change and add records in groups of ten, beside `applyInPandas` with the same rules.
- windows: five window functions, beside a PySpark script.
- hopping: totals of windows of an hour that begin every five minutes, beside Spark's `window()`.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench_pipeline import timed

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.session.sessions import session

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

HEAD = """
pipeline: { name: bench }
nodes:
  - type: source
    name: rows
    config:
      type: parquet
      path: rows.parquet
      watermark: { column: at }
      schema: { id: int, g: int, at: date_time, v: int, w: float, status: string }
"""
TAIL = """
  - { type: output, name: out, input: made, config: { type: parquet, path: ours/, order: any } }
"""
RESHAPE = """
  - type: reshape
    name: made
    input: rows
    config:
      partition_by: [g]
      order_by: [at]
      rules:
        - name: split
          when: v > 900
          mutate: { set: { v: v - 900 } }
          synthesize: { overrides: { v: "900", status: '"synthesized"' } }
        - name: late
          when: w < 0.05
          mutate: { set: { status: '"late"' } }
"""
WINDOWS = """
  - type: transform
    name: made
    input: rows
    config:
      analytic_window: { group_by: [g], sort_by: [at] }
      cxl: |
        emit total  = $window.sum(w)
        emit most   = $window.max(v)
        emit so_far = $window.cumulative_sum(w)
        emit place  = $window.row_number()
        emit before = $window.lag(1).v
"""
HOPPING = """
  - type: aggregate
    name: made
    input: rows
    config:
      group_by: [g]
      time_window: { hopping: { size: 1h, slide: 5m } }
      cxl: |
        emit total = sum(v)
        emit n = count(*)
"""


def generate(path: Path, rows: int, groups: int) -> None:
    random = np.random.default_rng(7)
    at = np.datetime64("2026-01-01") + random.integers(0, 86_400_000_000, rows).astype("timedelta64[us]")
    table = pa.table(
        {
            "id": np.arange(rows),
            "g": random.integers(0, groups, rows),
            "at": pa.array(at, pa.timestamp("us")),
            "v": random.integers(0, 1000, rows),
            "w": random.random(rows),
            "status": pa.array(np.array(["baseline", "open", "closed"])[random.integers(0, 3, rows)]),
        }
    )
    pq.write_table(table, path, row_group_size=500_000)


def reshaped(rows: DataFrame) -> DataFrame:
    import pandas as pd

    def repair(group: pd.DataFrame) -> pd.DataFrame:
        group = group.sort_values("at", kind="stable")
        split, late = group["v"] > 900, group["w"] < 0.05
        new = group[split].copy()
        new["v"], new["status"] = 900, "synthesized"
        group.loc[split, "v"] = group.loc[split, "v"] - 900
        group.loc[late, "status"] = "late"
        return pd.concat([group, new])

    return rows.groupBy("g").applyInPandas(repair, rows.schema)


def windowed(rows: DataFrame) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    in_order = Window.partitionBy("g").orderBy("at")
    whole = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return rows.select(
        "*",
        F.sum("w").over(whole).alias("total"),
        F.max("v").over(whole).alias("most"),
        F.sum("w").over(so_far).alias("so_far"),
        F.row_number().over(in_order).alias("place"),
        F.lag("v").over(in_order).alias("before"),
    )


def hopping(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    groups = rows.groupBy("g", F.window("at", "1 hour", "5 minutes"))
    return groups.agg(F.sum("v").alias("total"), F.count(F.lit(1)).alias("n")).drop("window")


PARTS: dict[str, tuple[str, Callable[[DataFrame], DataFrame], int, int]] = {
    "reshape": (RESHAPE, reshaped, 2_000_000, 200_000),
    "windows": (WINDOWS, windowed, 5_000_000, 50_000),
    "hopping": (HOPPING, hopping, 5_000_000, 100),
}


def measure(part: str, spark: SparkSession, folder: Path, runs: int, rows: int | None) -> None:
    text, by_hand, usual, groups = PARTS[part]
    count = rows or usual
    generate(folder / "rows.parquet", count, max(1, groups * count // usual))
    (folder / "pipeline.yaml").write_text(HEAD + text + TAIL)
    plan = prepare(folder / "pipeline.yaml")

    def theirs() -> None:
        read = spark.read.parquet(str(folder / "rows.parquet"))
        by_hand(read).write.mode("overwrite").parquet(str(folder / "theirs"))

    ways: dict[str, Callable[[], Any]] = {"clinker": lambda: run(plan, spark), "by hand": theirs}
    best: dict[str, tuple[float, float]] = {}
    for i in range(runs + 1):
        for name, work in ways.items():
            clock, cpu, memory = timed(work)
            label = "warm-up" if i == 0 else f"run {i}"
            print(f"  {label:8} {part:8} {name:8} {clock:7.2f} s  {cpu:7.2f} s CPU  {memory / 1e6:6.0f} MB", flush=True)
            if i or not runs:
                before = best.get(name, (clock, cpu))
                best[name] = (min(clock, before[0]), min(cpu, before[1]))
    made = [sum(pq.read_metadata(p).num_rows for p in (folder / n).rglob("*.parquet")) for n in ("ours", "theirs")]
    assert made[0] == made[1], made
    ratios = [a / b for a, b in zip(best["clinker"], best["by hand"], strict=True)]
    print(f"{part}: {count:,} rows become {made[0]:,}; clinker / by hand = {ratios[0]:.2f} clock, {ratios[1]:.2f} CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[*PARTS], choices=[*PARTS, []])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        spark = session("local[*]")
        for part in given.parts or [*PARTS]:
            measure(part, spark, folder, given.runs, given.rows)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
