"""A stream join side by side: `clinker stream --once` against the same join as Structured Streaming by hand.

Both read the same files of JSON lines, batch by batch, in one warm session with the same state store (RocksDB with a
change log, join format 4) and the same number of partitions, and write JSON lines. What is measured is the time from
the start of the query to its end, the first batch included. The rows that both write are counted and compared.

    python benchmarks/bench_stream.py [--rows 40000] [--batches 6] [--keys 20000] [--runs 2] [--format json|parquet]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.session.sessions import session
from clinker_spark.spark.streaming.state import stream_session
from clinker_spark.streaming.run import StreamOptions, run_stream

PIPELINE = """\
pipeline: {{ name: bench }}
stream: {{ checkpoint: {run}/state, max_files: 1, partitions: {partitions} }}
nodes:
  - type: source
    name: l
    config: {{ type: {kind}, glob: "l/*", {options} watermark: {{ column: at, delay: 5s }},
              schema: {{ id: int, k: string, at: date_time }} }}
  - type: source
    name: r
    config: {{ type: {kind}, glob: "r/*", {options} watermark: {{ column: at, delay: 5s }},
              schema: {{ id: int, k: string, at: date_time }} }}
  - type: stream_join
    name: j
    input: {{ left: l, right: r }}
    config: {{ left_keys: [k], right_keys: [k], time_window: 5s }}
  - {{ type: output, name: out, input: j, config: {{ type: json, path: {run}/out/, options: {{ format: ndjson }} }} }}
"""
SCHEMA = "id bigint, k string, at timestamp_ntz"


def make_files(folder: Path, rows: int, batches: int, keys: int, kind: str) -> None:
    """Both sides in the order of their times; a batch is ten seconds long."""
    rng = random.Random(1)
    for side in ("l", "r"):
        (folder / side).mkdir()
        for batch in range(batches):
            seconds = sorted(batch * 10 + rng.random() * 10 for _ in range(rows))
            ids = [batch * rows + i for i in range(rows)]
            names = [f"k{rng.randrange(keys)}" for _ in range(rows)]
            place = folder / side / f"{batch:04}.{kind}"
            if kind == "parquet":
                times = pa.array([1767261600_000_000 + int(s * 1e6) for s in seconds], pa.timestamp("us"))
                pq.write_table(pa.table({"id": ids, "k": names, "at": times}), place)
            else:
                with open(place, "w") as file:
                    for i, name, s in zip(ids, names, seconds, strict=True):
                        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1767261600 + int(s)))
                        record = {"id": i, "k": name, "at": f"{at}.{int(s % 1 * 1000):03}"}
                        file.write(json.dumps(record) + "\n")


def by_hand(spark: SparkSession, folder: Path, place: Path, kind: str, partitions: int) -> None:
    own = stream_session(spark, partitions, 100)
    sides = []
    for side in ("l", "r"):
        reader = own.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        frame = reader.format(kind).load(str(folder / side))
        frame = frame.select(*[F.col(name).alias(f"{side}_{name}") for name in ("id", "k", "at")])
        frame = frame.withColumn(f"{side}_t", F.col(f"{side}_at").cast("timestamp_ltz"))
        sides.append(frame.withWatermark(f"{side}_t", "5 seconds"))
    close = "r_t >= l_t - INTERVAL 5 SECONDS AND r_t <= l_t + INTERVAL 5 SECONDS"
    joined = sides[0].join(sides[1], F.expr(f"l_k = r_k AND {close}")).drop("l_t", "r_t")
    writer = joined.writeStream.format("json").option("path", str(place / "out"))
    writer.option("checkpointLocation", str(place / "state")).trigger(availableNow=True).start().awaitTermination()


def clinker(spark: SparkSession, folder: Path, place: Path, kind: str, partitions: int) -> None:
    options = "options: { format: ndjson }," if kind == "json" else ""
    path = folder / f"{place.name}.yaml"
    path.write_text(PIPELINE.format(run=place, kind=kind, options=options, partitions=partitions))
    run_stream(prepare(path), spark, StreamOptions(once=True), lambda event, details: None)


def written(place: Path) -> int:
    return sum(sum(1 for _ in open(path, "rb")) for path in (place / "out").glob("*.json"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000, help="of each side in a batch")
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--format", dest="kind", choices=("json", "parquet"), default="json")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-stream-"))
    try:
        make_files(folder, given.rows, given.batches, given.keys, given.kind)
        spark = session("local[2]", app_name="bench", conf={"spark.driver.memory": "3g"})
        best: dict[str, float] = {}
        pairs: dict[str, int] = {}
        for run in range(given.runs + 1):  # the first one warms up
            for name, work in (("by hand", by_hand), ("clinker", clinker)):
                place = folder / f"{name.replace(' ', '-')}-{run}"
                begin = time.perf_counter()
                work(spark, folder, place, given.kind, given.partitions)
                seconds = time.perf_counter() - begin
                pairs[name] = written(place)
                print(f"{'warm-up' if run == 0 else f'run {run}':8} {name:8} {seconds:6.2f} s", flush=True)
                if run:
                    best[name] = min(seconds, best.get(name, seconds))
        records = 2 * given.rows * given.batches
        for name, seconds in best.items():
            rates = f"{records / seconds:>10,.0f} records/s {pairs[name] / seconds:>10,.0f} pairs/s"
            print(f"{name:8} {seconds:6.2f} s {rates}   {pairs[name]:,} pairs")
        assert pairs["by hand"] == pairs["clinker"], pairs
        print(f"clinker / by hand: {best['clinker'] / best['by hand']:.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
