"""Latest-at queries: memory and time for many rows, beside a plain Parquet scan of the result and, if there, Rerun.

    python benchmarks/bench_dataset.py --rows 1000000 --entities 6           # 6 M rows in all
    python benchmarks/bench_dataset.py --rows 1000000 --rerun venv/bin/python

The entities log in turn, so that every value is a row of the result. Each measurement is a process of its own, which
says its peak memory (the resident set) and the seconds that it took after its imports. `--rerun` is a Python that has
`rerun-sdk[catalog]==0.41.0`; its server shares the process with the client, as it is meant to be used locally.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

END = """
import json
# The highest resident set since the program began; what `getrusage` says includes the process that started it.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
cpu = round(time.process_time(), 2)
print(json.dumps({"rows": rows, "seconds": round(seconds, 2), "cpu": cpu, "peak_mb": round(peak)}))
"""
QUERY = """
import sys, time
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.query import query
from clinker_spark.dataset.selection import Query
start, rows = time.perf_counter(), 0
for batch in query(Dataset.open(sys.argv[1]), Query("frame", fill=sys.argv[2] == "fill")):
    rows += batch.num_rows
seconds = time.perf_counter() - start
"""
SCAN = """
import sys, time
import pyarrow.parquet as pq
start, rows = time.perf_counter(), 0
for batch in pq.ParquetFile(sys.argv[1]).iter_batches():
    rows += batch.num_rows
seconds = time.perf_counter() - start
"""
RERUN = """
import os, sys, time
import numpy as np
import rerun as rr
folder, count, entities = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
path = os.path.join(folder, "run1.rrd")
recording = rr.RecordingStream("bench", recording_id="run1", send_properties=False)
recording.save(path)
chance = np.random.default_rng(1)
for start in range(0, count, 10_000):
    size = min(10_000, count - start)
    for e in range(entities):
        times = np.arange(start, start + size) * entities + e
        recording.send_columns(f"/e{e}", indexes=[rr.TimeColumn("frame", sequence=times)],
                               columns=rr.AnyValues.columns(v=chance.random(size)))
recording.flush()
del recording
with rr.server.Server(host="127.0.0.1", datasets={"ds": [path]}) as server:
    dataset = server.client().get_dataset("ds")
    start, rows = time.perf_counter(), 0
    for batch in dataset.reader(index="frame", fill_latest_at=True).execute_stream():
        rows += batch.to_pyarrow().num_rows
    seconds = time.perf_counter() - start
"""


def events(path: Path, count: int, entities: int) -> None:
    """The events of a recording, as a Parquet file."""
    schema = pa.schema([("segment", pa.string()), ("entity", pa.string()), ("frame", pa.int64()), ("v", pa.float64())])
    chance = np.random.default_rng(1)
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, count, 10_000):
            size = min(10_000, count - start)
            for e in range(entities):
                times = pa.array(np.arange(start, start + size) * entities + e)
                values = pa.array(chance.random(size))
                writer.write_table(
                    pa.table([pa.repeat("run1", size), pa.repeat(f"/e{e}", size), times, values], schema=schema)
                )


def measured(python: str, program: str, *args: str, **variables: str) -> dict[str, float]:
    done = subprocess.run(
        [python, "-c", program + END, *args],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables},
    )
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each entity")
    parser.add_argument("--entities", type=int, default=6)
    parser.add_argument("--rerun", help="a Python that has rerun-sdk")
    parser.add_argument("--no-scan", action="store_true", help="without the result as a Parquet file")
    options = parser.parse_args()
    from clinker_spark.runtime.dataset.imports import import_events

    folder = Path(tempfile.mkdtemp(prefix="bench-dataset-"))
    try:
        events(folder / "events.parquet", options.rows, options.entities)
        place = str(folder / "dataset")
        import_events(place, [str(folder / "events.parquet")], ["frame"])
        (folder / "events.parquet").unlink()
        for _ in range(2):
            print("fill      ", measured(sys.executable, QUERY, place, "fill"), flush=True)
        print("sparse    ", measured(sys.executable, QUERY, place, "sparse"), flush=True)
        for least in ("16MiB", "512MiB"):
            found = measured(sys.executable, QUERY, place, "fill", CLINKER_DATASET_BUDGET_MIN=least)
            print(f"min {least:>6}", found, flush=True)
        if not options.no_scan:
            from clinker_spark.dataset.files.manifest import Dataset
            from clinker_spark.dataset.query import query
            from clinker_spark.dataset.selection import Query, layout_of

            opened, asked = Dataset.open(place), Query("frame", fill=True)
            with pq.ParquetWriter(folder / "result.parquet", layout_of(opened, asked).schema) as writer:
                for batch in query(opened, asked):
                    writer.write_batch(batch, 1 << 20)
            for _ in range(2):
                print("parquet   ", measured(sys.executable, SCAN, str(folder / "result.parquet")), flush=True)
        if options.rerun:
            print("rerun     ", measured(options.rerun, RERUN, str(folder), str(options.rows), str(options.entities)))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
