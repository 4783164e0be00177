"""A day of skewed traffic through a stream join: does what it holds stay bounded, and its memory flat?

Two sources of 24 hours are cut into batches. A few keys have most of the records, more in the evening than at night.
Every so many batches the garbage of the JVM is collected and what is left is measured: live heap, metaspace and code,
the processes of the JVM and of Python, and the objects of the driver's Python. In the end what waits is compared with
what could wait at most, and the warning about hot keys must have come. `--native` tells the memory of the JVM by
what it is for (at the cost of some of it), and what it does not know of: RocksDB, and what lies unused in malloc.

    python benchmarks/bench_stream_day.py [--batches 200] [--rows 400] [--every 20] [--classes] [--native]
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import math
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.session.sessions import session
from clinker_spark.spark.streaming.state import FLAT
from clinker_spark.streaming.run import StreamOptions, run_stream

START = dt.datetime(2026, 1, 1)
WINDOW = dt.timedelta(minutes=1)
DELAY = dt.timedelta(seconds=30)
PIPELINE = """\
pipeline: { name: day }
stream: { max_files: 1, partitions: 2, hot_key: 100, checkpoint: state }
nodes:
  - type: source
    name: l
    config: { type: json, glob: l/*, options: { format: ndjson }, watermark: { column: at, delay: 30s },
              schema: { id: int, k: string, at: date_time } }
  - type: source
    name: r
    config: { type: json, glob: r/*, options: { format: ndjson }, watermark: { column: at, delay: 30s },
              schema: { id: int, k: string, at: date_time } }
  - type: stream_join
    name: j
    input: { left: l, right: r }
    config: { left_keys: [k], right_keys: [k], time_window: 1m, kind: left }
  - { type: output, name: out, input: j, config: { type: json, path: out/, options: { format: ndjson } } }
"""


def make_files(folder: Path, batches: int, rows: int) -> int:
    """How many records could wait at most: what lies in the window, the delay and two batches."""
    rng = random.Random(3)
    step = dt.timedelta(days=1) / batches
    keys = [f"k{i}" for i in range(2000)]
    weights = [1 / (i + 1) ** 1.3 for i in range(len(keys))]
    most: list[int] = []
    for side in ("l", "r"):
        (folder / side).mkdir(parents=True)
        for batch in range(batches):
            share = 1 + 0.8 * math.sin(2 * math.pi * (batch / batches - 0.5))
            count = int(rows * share)
            times = sorted(START + step * (batch + rng.random()) for _ in range(count))
            names = rng.choices(keys, weights, k=count)
            lines = [
                json.dumps({"id": i, "k": k, "at": at.isoformat(timespec="milliseconds")}) + "\n"
                for i, (k, at) in enumerate(zip(names, times, strict=True))
            ]
            (folder / side / f"{batch:05}.jsonl").write_text("".join(lines))
            most.append(count)
    spans = math.ceil((WINDOW + DELAY) / step) + 2
    return 2 * spans * max(most)


def jcmd(pid: int, *what: str) -> str:
    return subprocess.run(["jcmd", str(pid), *what], capture_output=True, text=True, check=True).stdout


_KIND = r"-\s+(\w[\w ]*) \(reserved=\d+KB, committed=(\d+)KB"


class Memory:
    """Samples of the processes of this one."""

    def __init__(self, native: bool) -> None:
        found = _children()
        self.jvm = next(pid for pid in found if "java" in os.readlink(f"/proc/{pid}/exe"))
        self.native = native

    def sample(self) -> dict[str, float]:
        jcmd(self.jvm, "GC.run")
        text = jcmd(self.jvm, "GC.heap_info")
        heap = sum(int(used) for used in re.findall(r"(?:total \S+ used|heap\s+total \d+K, used) (\d+)K", text))
        meta = re.search(r"Metaspace\s+used (\d+)K", text)
        python = [pid for pid in _children() if pid != self.jvm]
        return {
            "heap MB": heap / 1024,
            "metaspace MB": int(meta.group(1)) / 1024 if meta else 0,
            "JVM MB": _pss(self.jvm),
            "driver MB": _pss(os.getpid()),
            "workers MB": sum(map(_pss, python)),
            "workers": len(python),
            "objects": len(gc.get_objects()),
            "threads": len(os.listdir(f"/proc/{self.jvm}/task")),
            "files": len(os.listdir(f"/proc/{self.jvm}/fd")),
            **(self.kinds() if self.native else {}),
        }

    def kinds(self) -> dict[str, float]:
        """What the JVM has taken from the system, by what it is for."""
        text = jcmd(self.jvm, "VM.native_memory", "summary")
        found = {name.strip(): int(size) / 1024 for name, size in re.findall(_KIND, text)}
        total = int(re.search(r"Total: reserved=\d+KB, committed=(\d+)KB", text)[1]) / 1024  # type: ignore[index]
        untouched = found["Java Heap"] - self._resident_heap()
        kept = {f"{name} MB": found.get(name, 0.0) for name in ("Code", "Class", "Compiler", "GC", "Other")}
        return {**kept, "unknown MB": _pss(self.jvm) - (total - untouched)}

    def _resident_heap(self) -> float:
        """Of the memory that was taken for the heap, what was ever touched."""
        text = Path(f"/proc/{self.jvm}/smaps").read_text()
        areas = [int(size) / 1024 for size in re.findall(r"^Rss:\s+(\d+)", text, re.M)]
        return max(areas)  # it is the largest area by far

    def classes(self) -> Counter[str]:
        """Bytes of live objects by class."""
        found: Counter[str] = Counter()
        for line in jcmd(self.jvm, "GC.class_histogram").splitlines():
            parts = line.split()
            if len(parts) >= 4 and parts[0].rstrip(":").isdigit():
                found[parts[3]] += int(parts[2])
        return found


def _children() -> list[int]:
    found, todo = [], [os.getpid()]
    while todo:
        pid = todo.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                todo += [int(text) for text in task.read_text().split()]
            except OSError:
                continue
        found.append(pid)
    return found[1:]


def _pss(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) / 1024  # type: ignore[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rows", type=int, default=400, help="of each side in a batch, on average")
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--native", action="store_true", help="show what the memory of the JVM is for")
    parser.add_argument("--classes", action="store_true", help="show which classes of the JVM grow")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-day-"))
    try:
        bound = make_files(folder, given.batches, given.rows)
        (folder / "p.yaml").write_text(PIPELINE)
        tracked = "-XX:NativeMemoryTracking=summary" if given.native else ""
        settings = {"spark.driver.memory": "1g", **FLAT}
        spark = session("local[2]", app_name="day", conf=settings, java_options=tracked)
        memory = Memory(given.native)
        samples: list[dict[str, float]] = []
        before: list[Counter[str]] = []
        most = removed = 0

        def tell(event: str, details: dict[str, Any]) -> None:
            nonlocal most, removed
            if event != "batch":
                return
            held = sum(side["rows"] for side in details["state"])
            most, removed = max(most, held), removed + sum(side["removed"] for side in details["state"])
            if details["number"] % given.every == given.every - 1:
                samples.append(memory.sample())
                if given.classes:
                    before.append(memory.classes())
                row = "  ".join(f"{name} {value:,.0f}" for name, value in samples[-1].items())
                print(f"batch {details['number'] + 1:4}: {held:5} wait  {row}", flush=True)

        begin = time.perf_counter()
        report = run_stream(prepare(folder / "p.yaml"), spark, StreamOptions(once=True), tell)
        seconds = time.perf_counter() - begin
        codes = sorted({warning.code for warning in report.warnings})
        print(
            f"{len(report.batches)} batches in {seconds:.0f} s; at most {most} wait (bound {bound}), {removed} evicted"
        )
        print(f"warnings: {codes}; late: {report.late}")
        if len(before) > 2:
            grown = Counter(before[-1])
            grown.subtract(before[1])
            for name, size in grown.most_common(12):
                print(f"  {size / 1024:+10,.0f} KB  {name}")
        assert most <= bound and "W500" in codes
        half = samples[len(samples) // 2 :]
        for name in samples[0]:
            values = [sample[name] for sample in half]
            print(f"second half, {name}: {min(values):,.0f} to {max(values):,.0f}, last {values[-1]:,.0f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
