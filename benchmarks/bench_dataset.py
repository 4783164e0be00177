"""Latest-at queries: memory and time for many rows, beside a plain Parquet scan of the result and, if there, Rerun.

    python benchmarks/bench_dataset.py --rows 1000000 --entities 6             # 6 M rows in all
    python benchmarks/bench_dataset.py --rows 250000 --rerun                   # the same data through rerun-sdk
    python benchmarks/bench_dataset.py --rows 1000000 --spark                  # a pipeline, and its Python workers
    python benchmarks/bench_dataset.py --scaling                               # more rows, more entities

The entities log in turn, so that every value is a row of the result. Each measurement is a process of its own, which
says its peak memory (the resident set) and the seconds, by the clock and of the processors, that it took after its
imports. What is compared is measured in turns. Rerun (`rerun-sdk[catalog]==0.41.0`, in the same environment or in that
of `--rerun-python`) has server and client in one process, as it is meant to be used locally; it takes some 2.4 KB of
memory for each row.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

START = """
import sys, time
def begin():
    global clock, processors
    clock, processors = time.perf_counter(), time.process_time()
"""
END = """
import json
seconds, cpu = time.perf_counter() - clock, time.process_time() - processors
# The highest resident set since the program began; what `getrusage` says includes the process that started it.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
print(json.dumps({"rows": rows, "seconds": round(seconds, 3), "cpu": round(cpu, 3), "peak_mb": round(peak)}))
"""
QUERY = """
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.query import query
from clinker_spark.dataset.selection import Query
begin()
rows, pause = 0, float(sys.argv[3])
for batch in query(Dataset.open(sys.argv[1]), Query("frame", fill=sys.argv[2] == "fill")):
    rows += batch.num_rows
    time.sleep(pause)
"""
SCAN = """
import pyarrow.parquet as pq
begin()
rows = 0
for batch in pq.ParquetFile(sys.argv[1]).iter_batches():
    rows += batch.num_rows
"""
RERUN = """
import os
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
    begin()
    rows = 0
    for batch in dataset.reader(index="frame", fill_latest_at=True).execute_stream():
        rows += batch.to_pyarrow().num_rows
"""
PIPELINE = """pipeline:
  name: bench
nodes:
  - type: source
    name: rows
    config:
      type: dataset
      path: {place}
      index: frame
      fill_latest_at: true
      on_unmapped: drop
      schema:
        - {{ name: frame, type: int }}
{columns}
  - type: output
    name: out
    input: rows
    config:
      type: parquet
      path: {folder}/out
"""
Figures = dict[str, Any]


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


def measured(program: str, *args: str, python: str = sys.executable, **variables: str) -> Figures:
    done = subprocess.run(
        [python, "-c", START + program + END, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def filled(place: str, mode: str = "fill", pause: float = 0.0, **variables: str) -> Figures:
    return measured(QUERY, place, mode, str(pause), **variables)


def compared(name: str, runs: list[Figures], base: list[Figures] | None = None) -> None:
    """One line: the median and the best of several runs, and how many times the base that is."""
    line = f"{name:<14}"
    for what in ("seconds", "cpu"):
        found = [run[what] for run in runs]
        line += f"{what} {min(found):7.2f} best {statistics.median(found):7.2f} median"
        if base is not None:
            line += f" ({min(found) / min(b[what] for b in base):5.2f} of the scan's best)"
        line += "   "
    print(f"{line}peak {max(run['peak_mb'] for run in runs)} MB   {runs[0]['rows']:,} rows", flush=True)


def recorded(folder: Path, rows: int, entities: int) -> str:
    from clinker_spark.runtime.dataset.imports import import_events

    place = str(folder / f"dataset-{rows}-{entities}")
    events(folder / "events.parquet", rows, entities)
    import_events(place, [str(folder / "events.parquet")], ["frame"])
    (folder / "events.parquet").unlink()
    return place


def result_file(place: str, path: Path) -> None:
    """The result of the query, as a plain Parquet file with large row groups."""
    from clinker_spark.dataset.files.manifest import Dataset
    from clinker_spark.dataset.query import query
    from clinker_spark.dataset.selection import Query, layout_of

    opened, asked = Dataset.open(place), Query("frame", fill=True)
    with pq.ParquetWriter(path, layout_of(opened, asked).schema) as writer:
        held: list[pa.RecordBatch] = []
        for batch in query(opened, asked):
            held.append(batch)
            if len(held) == 256:
                writer.write_table(pa.Table.from_batches(held))
                held.clear()
        if held:
            writer.write_table(pa.Table.from_batches(held))


def scaling(folder: Path, rounds: int) -> None:
    """Cells of the result against time: it should be as many times longer as there are more of them."""
    total = 2_400_000
    cases = [(total * share // 4, 6) for share in (1, 2, 4, 8)] + [(total, e) for e in (1, 2, 4, 8)]
    places = {case: recorded(folder, case[0] // case[1], case[1]) for case in cases}
    runs: dict[tuple[int, int], list[Figures]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, place in places.items():
            runs[case].append(filled(place))
    for (rows, entities), found in runs.items():
        each = min(run["cpu"] for run in found) / (rows * (entities + 2)) * 1e9
        compared(f"{rows // 1000}k x {entities}", found)
        print(f"{'':<14}{each:.1f} ns of the processors for each cell of the result", flush=True)


def under_spark(place: str, folder: Path, entities: int) -> None:
    """A pipeline that reads the dataset; the highest resident set of its Python workers, each by itself."""
    columns = "\n".join(
        f'        - {{ name: e{e}, type: nullable(float), source_name: "/e{e}:v" }}' for e in range(entities)
    )
    (folder / "pipeline.yaml").write_text(PIPELINE.format(place=place, folder=folder, columns=columns))
    command = [sys.executable, "-m", "clinker_spark", "run", str(folder / "pipeline.yaml")]
    peaks: dict[int, int] = {}
    ended = threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:

        def sample() -> None:
            me = psutil.Process(running.pid)
            while not ended.wait(0.05):
                for child in me.children(recursive=True):
                    try:
                        if "pyspark" in " ".join(child.cmdline()) and "java" not in child.name():
                            lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
                            peaks[child.pid] = next(int(x.split()[1]) >> 10 for x in lines if x.startswith("VmHWM"))
                    except (psutil.Error, OSError, StopIteration):
                        continue

        watching = threading.Thread(target=sample)
        watching.start()
        said, _ = running.communicate()
        ended.set()
        watching.join()
    print(said.strip().splitlines()[-1] if running.returncode == 0 else said)
    print("spark         Python workers, peak MB each:", sorted(peaks.values(), reverse=True), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each entity")
    parser.add_argument("--entities", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each, in turns")
    parser.add_argument("--no-scan", action="store_true", help="without the result as a Parquet file")
    parser.add_argument("--budgets", action="store_true", help="a slow reader, with several budgets")
    parser.add_argument("--spark", action="store_true", help="the query as the source of a pipeline")
    parser.add_argument("--rerun", action="store_true", help="the same data through rerun-sdk")
    parser.add_argument("--rerun-python", default=sys.executable, help="a Python that has it")
    parser.add_argument("--scaling", action="store_true", help="only: 1, 2, 4 and 8 times the rows; 1 to 8 entities")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-dataset-"))
    try:
        if options.scaling:
            return scaling(folder, options.rounds)
        place = recorded(folder, options.rows, options.entities)
        if not options.no_scan:
            result_file(place, folder / "result.parquet")
        runs: dict[str, list[Figures]] = {"fill": [], "sparse": [], "parquet": []}
        for _ in range(options.rounds):
            runs["fill"].append(filled(place))
            runs["sparse"].append(filled(place, "sparse"))
            if not options.no_scan:
                runs["parquet"].append(measured(SCAN, str(folder / "result.parquet")))
        for name, found in runs.items():
            if found:
                compared(name, found, None if options.no_scan else runs["parquet"])
        if options.budgets:
            for most in ("16MiB", "64MiB", "256MiB"):
                limits = {"CLINKER_DATASET_BUDGET_MIN": most, "CLINKER_DATASET_BUDGET_MAX": most}
                compared(f"budget {most}", [filled(place, pause=0.0005, **limits)])
        if options.spark:
            under_spark(place, folder, options.entities)
        if options.rerun:
            sizes = (str(folder), str(options.rows), str(options.entities))
            theirs = measured(RERUN, *sizes, python=options.rerun_python)
            compared("rerun", [theirs])
            ours = [*runs["fill"], filled(place)]
            for what in ("seconds", "cpu"):
                print(f"rerun takes {theirs[what] / statistics.median(r[what] for r in ours):.1f} times the {what}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
