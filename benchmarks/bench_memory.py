"""Does `memory.limit` hold? A sort, an aggregate of very many groups and a join over a large CSV file, each with
several limits and policies. The command runs as a process; the memory of its whole process tree is sampled from
outside, as the proportional share (PSS) that the system reports, and the bytes that it writes must be the same with
every limit.

    python benchmarks/bench_memory.py [--megabytes 4000] [--limits 8G 1G 2G] [--policies pause spill]
                                      [--pipelines sort aggregate join] [--keep FOLDER] [--source FOLDER]
    python benchmarks/bench_memory.py --pipelines converge --limits 8G --policies pause [--orders ranked topological]

`--source` is another source tree to run (`PYTHONPATH`), `--keep` a folder for data that a second run finds there, as
it finds the hashes of what was written: limits can be tried one at a time.

`converge` is two aggregates that meet in a join: the heavier chain is made first (*ranked*), or the chains are made as
they stand in the plan (*topological*). There the most that Spark's sorts and hash tables held at once is shown, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pacsv

_SCHEMA = "{ id: int, customer: int, product: int, cents: int, city: string, note: string }"
_ORDERS = f"  - {{ type: source, name: orders, config: {{ type: csv, path: orders.csv, schema: {_SCHEMA} }} }}"
_CUSTOMERS = """  - type: source
    name: customers
    config: { type: csv, path: customers.csv, schema: { code: int, name: string } }"""
_OUT = "config: { type: csv, path: out.csv"
PIPELINES = {
    "sort": f"{_ORDERS}\n  - {{ type: output, name: out, input: orders, {_OUT}, sort_order: [cents, id] }} }}",
    "aggregate": f"""{_ORDERS}
  - type: aggregate
    name: totals
    input: orders
    config:
      group_by: [customer]
      cxl: |
        emit n = count(*)
        emit spent = sum(cents)
        emit last = max(id)
  - {{ type: output, name: out, input: totals, {_OUT} }} }}""",
    "join": f"""{_ORDERS}
{_CUSTOMERS}
  - type: combine
    name: named
    input: {{ o: orders, c: customers }}
    config:
      where: o.customer == c.code
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit id = o.id
        emit cents = o.cents
        emit name = c.name
        emit note = o.note
  - {{ type: output, name: out, input: named, {_OUT} }} }}""",
    "converge": f"""  - type: source
    name: few
    config: {{ type: csv, path: few.csv, schema: {{ code: int, cents: int }} }}
{_ORDERS}
  - {{ type: aggregate, name: light, input: few, config: {{ group_by: [code], cxl: "emit owed = sum(cents)" }} }}
  - {{ type: aggregate, name: heavy, input: orders, config: {{ group_by: [customer], cxl: "emit paid = sum(cents)" }} }}
  - type: combine
    name: both
    input: {{ l: light, h: heavy }}
    config:
      where: l.code == h.customer
      drive: l
      on_miss: skip
      propagate_ck: driver
      cxl: |
        emit customer = l.code
        emit owed = l.owed
        emit paid = h.paid
  - {{ type: output, name: out, input: both, {_OUT} }} }}""",
}
_SWITCH = """
import sys, threading, time
from types import SimpleNamespace

order, shown, *sys.argv[1:] = sys.argv[1:]
if order == "topological":
    from clinker_spark.plan.passes import scheduling

    scheduling.rank = lambda candidate, headroom: candidate.index

def look():
    from pyspark import SparkContext
    from clinker_spark.spark.measure.steering import Steering

    most = 0
    while True:
        time.sleep(0.05)
        context = SparkContext._active_spark_context
        try:
            held = Steering(SimpleNamespace(sparkContext=context)).execution_bytes() if context else 0
        except AttributeError:  # a context that is not whole yet
            continue
        if held > most:
            most = held
            with open(shown, "w") as file:
                file.write(str(most))

threading.Thread(target=look, daemon=True).start()
from clinker_spark.cli.clinker.entry import main

main()
"""
"""The command, with a switch for the order of chains, and a look at what Spark's operators hold."""
EVERY = 0.2
_ROW = 84
"""Bytes of a line, about."""
_MB = 1e6


@dataclass
class Watched:
    """What a command used, seen from outside. Bytes."""

    peak: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    """At the peak."""
    most: dict[str, int] = field(default_factory=dict)
    """Of each kind of process, at any time."""
    seconds: float = 0.0
    code: int = 0
    said: str = ""


def main() -> None:
    given = _arguments()
    folder = Path(given.keep or tempfile.mkdtemp(prefix="clinker-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _data(folder, given.megabytes)
        if "converge" in given.pipelines:
            _few(folder, given.megabytes)
        failed = 0
        for name in given.pipelines:
            kept = folder / f"hashes-{given.megabytes}-{name}.json"
            hashes: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
            for limit in given.limits:
                for policy in given.policies if limit != given.limits[0] else given.policies[:1]:
                    for order in given.orders if name == "converge" else [""]:
                        failed += _one(folder, name, limit, policy, hashes, given.source, order)
                    kept.write_text(json.dumps(hashes))
        sys.exit(failed > 0)
    finally:
        if given.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=4000)
    parser.add_argument("--limits", nargs="+", default=["8G", "1G", "2G"], help="the first is compared with")
    parser.add_argument("--policies", nargs="+", default=["pause", "spill"])
    parser.add_argument("--pipelines", nargs="+", default=["sort", "aggregate", "join"], choices=list(PIPELINES))
    parser.add_argument("--orders", nargs="+", default=["topological", "ranked"], choices=["topological", "ranked"])
    parser.add_argument("--keep")
    parser.add_argument("--source")
    return parser.parse_args()


def _data(folder: Path, megabytes: int) -> None:
    """`orders.csv` of that size, with two orders for each customer, and all customers."""
    done = folder / f"done-{megabytes}"
    if done.exists():
        return
    rows = int(megabytes * _MB / _ROW)
    random = np.random.default_rng(7)
    cities = np.array(["Bonn", "Bern", "Linz", "Graz", "Basel", "Trier"])
    options = pacsv.WriteOptions(quoting_style="none")
    with open(folder / "orders.csv", "wb") as file, open(folder / "customers.csv", "wb") as build:
        for start in range(0, rows, 500_000):
            ids = np.arange(start, min(start + 500_000, rows))
            columns = {
                "id": ids,
                "customer": random.integers(0, rows // 2, len(ids)),
                "product": random.integers(0, 100_000, len(ids)),
                "cents": random.integers(0, 10_000_000, len(ids)),
                "city": cities[random.integers(0, len(cities), len(ids))],
                "note": np.char.add("as agreed on the phone; order no ", (ids * 7919 % 1_000_003).astype(str)),
            }
            pacsv.write_csv(pa.table(columns), file, _after(options, start))
            codes = np.arange(start // 2, min(start + 500_000, rows) // 2)
            names = np.char.add("customer ", codes.astype(str))
            pacsv.write_csv(pa.table({"code": codes, "name": names}), build, _after(options, start))
    done.touch()


def _few(folder: Path, megabytes: int) -> None:
    """Half of the customers: one record for each."""
    customers = int(megabytes * _MB / _ROW) // 2
    if (folder / "few.csv").exists():
        return
    codes = np.arange(0, customers, 2)
    table = pa.table({"code": codes, "cents": codes * 7919 % 1_000_003})
    with open(folder / "few.csv", "wb") as file:
        pacsv.write_csv(table, file)


def _after(options: pacsv.WriteOptions, start: int) -> pacsv.WriteOptions:
    options.include_header = start == 0
    return options


def _one(
    folder: Path, name: str, limit: str, policy: str, hashes: dict[str, str], source: str | None, order: str
) -> int:
    """Run one pipeline, and say what it took; 1 if it must not have been so."""
    memory = f"memory: {{ limit: {limit}{'' if policy == 'none' else f', backpressure: {policy}'} }}"
    (folder / f"{name}.yaml").write_text(f"pipeline: {{ name: {name}, {memory} }}\nnodes:\n{PIPELINES[name]}\n")
    (folder / "out.csv").unlink(missing_ok=True)
    spool = folder / "spool"
    shutil.rmtree(spool, ignore_errors=True)
    shown = folder / "operators"
    shown.unlink(missing_ok=True)
    start = ["-c", _SWITCH, order, str(shown)] if order else ["-m", "clinker_spark"]
    command = [sys.executable, *start, "run", str(folder / f"{name}.yaml"), "-q"]
    found = watched([*command, "--metrics-spool-dir", str(spool)], source)
    written = _hash(folder / "out.csv") if found.code == 0 else ""
    (folder / "out.csv").unlink(missing_ok=True)
    same = "nothing" if not written else "first" if not hashes else "same bytes"
    if written and any(written != other for other in hashes.values()):
        same = "OTHER BYTES"
    if written:
        hashes[f"{limit} {policy} {order}".strip()] = written
    parts = ", ".join(f"{kind} {size / _MB:.0f}" for kind, size in sorted(found.parts.items()))
    most = ", ".join(f"{kind} {size / _MB:.0f}" for kind, size in sorted(found.most.items()))
    allowed = _bytes(limit) + 0.1 * (1 << 30)
    verdict = "ok" if found.code == 0 and found.peak <= allowed and same != "OTHER BYTES" else "FAILED"
    print(
        f"{name:<9} {limit:>4} {policy:<5} {order} {found.seconds:6.1f} s  peak {found.peak / _MB:5.0f} MB "
        f"({found.peak / _bytes(limit):.3f} of the limit; {parts}; at most {most})  "
        f"exit {found.code}, {same}: {verdict}"
    )
    if shown.exists():
        print(f"          sorts and hash tables of all tasks: at most {int(shown.read_text()) / _MB:.0f} MB")
    for line in _reported(spool):
        print(f"          {line}")
    if found.code:
        print(found.said)
    sys.stdout.flush()
    return int(verdict != "ok")


def _reported(spool: Path) -> list[str]:
    """What the run itself says: memory by its own samples, spill by node, what was paused."""
    lines = []
    for path in spool.glob("*.json"):
        record: dict[str, Any] = json.loads(path.read_text())
        used = record.get("used") or {}
        lines.append(f"own samples: peak {(record.get('peak_rss_bytes') or 0) / _MB:.0f} MB; {used.get('arbitration')}")
        lines.append(
            f"sampling took {used.get('seconds_sampling')} s of {(record.get('duration_ms') or 0) / 1e3:.1f} s"
        )
        for node, numbers in used.get("nodes", {}).items():
            spilled, peak = numbers["spilled_bytes"] / _MB, numbers["peak_bytes"] / _MB
            lines.append(f"{node}: spilled {spilled:.0f} MB, peak of an operator {peak:.0f} MB, {numbers['seconds']} s")
    return lines


def watched(command: list[str], source: str | None = None) -> Watched:
    """Run a command, and look at its process tree meanwhile."""
    path = {"PYTHONPATH": source} if source else {}
    found = Watched()
    began = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **path})
        while process.poll() is None:
            parts = tree(process.pid)
            for kind, size in parts.items():
                found.most[kind] = max(found.most.get(kind, 0), size)
            if sum(parts.values()) > found.peak:
                found.peak, found.parts = sum(parts.values()), parts
            time.sleep(EVERY)
        found.seconds, found.code = time.monotonic() - began, process.returncode
        output.seek(0)
        found.said = output.read().decode(errors="replace")[-3000:]
    return found


def tree(root: int) -> dict[str, int]:
    """The memory of a process and of all that it started, by kind."""
    parts = {"driver": 0, "jvm": 0, "workers": 0}
    try:
        every = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
    except psutil.Error:
        return parts
    for process in every:
        try:
            kind = "driver" if process.pid == root else "jvm" if process.name().startswith("java") else "workers"
            with open(f"/proc/{process.pid}/smaps_rollup") as file:
                parts[kind] += next(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except (psutil.Error, OSError, StopIteration):  # it ended meanwhile
            continue
    return parts


def _bytes(size: str) -> int:
    return int(float(size[:-1]) * {"M": 1 << 20, "G": 1 << 30}[size[-1]])


def _hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


if __name__ == "__main__":
    main()
