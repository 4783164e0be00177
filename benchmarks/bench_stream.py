"""A stream join side by side: `clinker stream --once` against the same join as Structured Streaming by hand.

Both read the same files of JSON lines, batch by batch, in one warm session with the same state store (RocksDB with a
change log, join format 4) and the same number of partitions, and write JSON lines. What is measured is the time from
the start of the query to its end, the first batch included, and the processor seconds of all processes meanwhile, which
say more on a machine that is busy. They take turns. The rows that both write are counted and compared.

With `--ematix PYTHON` (of an environment with ematix-flow 1.0.0) and `--format parquet`, the same join of the same
files by ematix-flow stands beside them: its state in memory, and a lateness that keeps everything, without which it
loses pairs. It never ends; its time is that to the last row it writes, its start included.

    python benchmarks/bench_stream.py [--rows 40000] [--batches 6] [--keys 20000] [--runs 2] [--format json|parquet]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
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


EMATIX = """\
pipeline_name = "bench"
idle_pause_ms = 50

[[sources]]
query = "l"
kind = "object_store_local"
path = "{folder}"
format = "parquet"

[[sources]]
query = "r"
kind = "object_store_local"
path = "{folder}"
format = "parquet"

[target]
kind = "object_store_local"
path = "{place}"
format = "json_lines"
prefix = "out"

[transform.join]
kind = "inner"
left_source = "l"
right_source = "r"
left_keys = ["k"]
right_keys = ["k"]
time_window_ms = 5000
event_time_column = "at"

[state_store]
kind = "in_memory"

[watermark]
lateness_ms = 1000000000
"""
QUIET = 8.0
"""After so many seconds without another row ematix-flow has no more to give."""


def ematix(python: str, folder: Path, place: Path) -> tuple[float, float, int]:
    """How long ematix-flow takes to its last row, its processor seconds (those in which it waits for more included),
    and how many rows it writes."""
    place.mkdir()
    (place / "out").mkdir()
    code = "import sys; from ematix_flow.streaming import run_pipeline; run_pipeline(config_str=sys.stdin.read())"
    begin, wall, before = time.perf_counter(), time.time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [python, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(EMATIX.format(folder=folder, place=place).encode())
    process.stdin.close()
    last = begin
    seen = -1
    while process.poll() is None and time.perf_counter() - last < QUIET:
        size = sum(path.stat().st_size for path in (place / "out").rglob("*") if path.is_file())
        if size != seen:
            seen, last = size, time.perf_counter()
        time.sleep(0.05)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    files = [path for path in (place / "out").rglob("*") if path.is_file()]
    if not files:
        print(process.stderr.read().decode()[-2000:])
        return 0.0, 0.0, 0
    seconds = max(path.stat().st_mtime for path in files) - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, sum(sum(1 for _ in open(path, "rb")) for path in files)


def processor_seconds() -> tuple[float, float]:
    """Of the JVM, and of this process and all others below it; those included that have ended."""
    todo, java, other = [os.getpid()], 0.0, 0.0
    while todo:
        pid = todo.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            own, ended = (sum(map(int, fields[i : i + 2])) / os.sysconf("SC_CLK_TCK") for i in (11, 13))
            is_java = "java" in os.readlink(f"/proc/{pid}/exe")
            java, other = java + own * is_java, other + ended + own * (not is_java)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                todo += [int(text) for text in task.read_text().split()]
        except OSError:
            continue
    return java, other


def written(place: Path) -> int:
    files = [path for path in (place / "out").glob("*.json") if not path.name.startswith(".")]
    return sum(sum(1 for _ in open(path, "rb")) for path in files)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=40_000, help="of each side in a batch")
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--format", dest="kind", choices=("json", "parquet"), default="json")
    parser.add_argument("--ematix", metavar="PYTHON", help="of an environment with ematix-flow 1.0.0")
    given = parser.parse_args()
    if given.ematix and given.kind != "parquet":
        parser.error("--ematix goes with --format parquet: in JSON it takes times for texts")
    folder = Path(tempfile.mkdtemp(prefix="bench-stream-"))
    try:
        make_files(folder, given.rows, given.batches, given.keys, given.kind)
        spark = session("local[2]", app_name="bench", conf={"spark.driver.memory": "3g"})
        best: dict[str, tuple[float, float]] = {}
        pairs: dict[str, int] = {}
        for run in range(given.runs + 1):  # the first one warms up
            ways = [("by hand", by_hand), ("clinker", clinker)]
            for name, work in ways if run % 2 else reversed(ways):
                place = folder / f"{name.replace(' ', '-')}-{run}"
                begin, before = time.perf_counter(), processor_seconds()
                work(spark, folder, place, given.kind, given.partitions)
                seconds, after = time.perf_counter() - begin, processor_seconds()
                java, other = (after[i] - before[i] for i in range(2))
                used = java + other
                pairs[name] = written(place)
                label = "warm-up" if run == 0 else f"run {run}"
                print(f"{label:8} {name:8} {seconds:6.2f} s, {used:6.2f} s of processors ({java:.2f} JVM)", flush=True)
                if run:
                    known = best.get(name, (seconds, used))
                    best[name] = min(seconds, known[0]), min(used, known[1])
        records = 2 * given.rows * given.batches
        if given.ematix:
            own = [ematix(given.ematix, folder, folder / f"ematix-{run}") for run in range(given.runs)]
            best["ematix"] = (min(seconds for seconds, _, _ in own), min(used for _, used, _ in own))
            pairs["ematix"] = own[-1][2]
        for name, (seconds, used) in best.items():
            rates = f"{records / seconds:>10,.0f} records/s {pairs[name] / seconds:>10,.0f} pairs/s" if seconds else ""
            print(f"{name:8} {seconds:6.2f} s, {used:6.2f} s of processors {rates}   {pairs[name]:,} pairs")
        assert pairs["by hand"] == pairs["clinker"], pairs
        clock, cpu = (best["clinker"][i] / best["by hand"][i] for i in range(2))
        print(f"clinker / by hand: {clock:.2f} by the clock, {cpu:.2f} in processor seconds (goal 1.10)")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
