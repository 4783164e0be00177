"""A thousand JSON-lines files with fields that nobody declared become one CSV file with the union of columns.

python benchmarks/bench_drift.py [--files 1000] [--records 200] [--fields 3] [--runs 3]

Beside it the same by hand: Spark finds out the columns of all files (its own pass over them), then reads and writes
them. Jobs of Spark are counted; `key scan` is what the run reads before, without a job, to know the names.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_pipeline import timed

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.session.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """
pipeline: { name: drift }
nodes:
  - type: source
    name: feed
    config:
      type: json
      glob: "in/*.jsonl"
      options: { format: ndjson }
      schema: { id: int, at: string, amount: float }
  - { type: output, name: out, input: feed, config: { type: csv, path: ours.csv } }
"""


def generate(folder: Path, files: int, records: int, fields: int) -> int:
    """Each file has fields of its own, some of them also in other files; not every record has all of them."""
    chance = random.Random(7)
    folder.mkdir()
    size = 0
    for number in range(files):
        names = [f"extra_{chance.randrange(files)}" for _ in range(fields)]
        lines = []
        for i in range(records):
            record: dict[str, Any] = {
                "id": number * records + i,
                "at": "2026-01-01",
                "amount": round(chance.random(), 3),
            }
            record |= {name: chance.choice([i, "text", 0.5, True]) for name in names if chance.random() < 0.9}
            lines.append(json.dumps(record) + "\n")
        path = folder / f"{number:05}.jsonl"
        path.write_text("".join(lines))
        size += path.stat().st_size
    return size


def columns_and_rows(path: Path) -> tuple[int, int]:
    with open(path, encoding="utf-8") as file:
        return len(next(file).split(",")), sum(1 for _ in file)


def jobs(spark: SparkSession) -> int:
    """How many jobs Spark was asked for so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


def measure(spark: SparkSession, folder: Path, runs: int) -> None:
    (folder / "pipeline.yaml").write_text(PIPELINE)
    plan = prepare(folder / "pipeline.yaml")

    def theirs() -> None:
        read = spark.read.json(str(folder / "in"))
        read.write.mode("overwrite").csv(str(folder / "theirs"), header=True)

    ways: dict[str, Callable[[], Any]] = {"clinker": lambda: run(plan, spark), "by hand": theirs}
    best: dict[str, tuple[float, float]] = {}
    for i in range(runs + 1):
        for name, work in ways.items():
            before = jobs(spark)
            clock, cpu, memory = timed(work)
            label = "warm-up" if i == 0 else f"run {i}"
            used = f"{clock:7.2f} s  {cpu:7.2f} s CPU  {memory / 1e6:6.0f} MB  {jobs(spark) - before} jobs"
            print(f"  {label:8} {name:8} {used}", flush=True)
            if i:
                known = best.get(name, (clock, cpu))
                best[name] = (min(clock, known[0]), min(cpu, known[1]))
    columns, rows = columns_and_rows(folder / "ours.csv")
    parts = [columns_and_rows(path) for path in (folder / "theirs").glob("*.csv")]
    assert {columns} == {wide for wide, _ in parts} and rows == sum(count for _, count in parts), (columns, rows, parts)
    ratios = [a / b for a, b in zip(best["clinker"], best["by hand"], strict=True)]
    print(f"{rows:,} records, {columns:,} columns; clinker / by hand = {ratios[0]:.2f} clock, {ratios[1]:.2f} CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--fields", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    try:
        size = generate(folder / "in", given.files, given.records, given.fields)
        print(f"{given.files:,} files, {size / 1e6:.1f} MB")
        measure(session("local[*]"), folder, given.runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
