"""What do three outputs over one source cost? This tree against another one, each in warm sessions of its own, one
after the other, or against three pipelines with an output each.

    python benchmarks/bench_fan_out.py --old SRC [--rows 1500000] [--turns 2] [--rounds 2] [--apart] [--cases route ...]

`--old` is the `src` folder of another commit (`git archive COMMIT src | tar x -C FOLDER`). Reported: seconds of
a processor of all processes, and of the clock, best of all rounds but the first of a session; *apart* are three
pipelines of this tree (`--apart`).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pacsv

_SOURCE = """  - type: source
    name: orders
    config:
      type: csv
      path: orders.csv
      schema: { id: int, customer: string, city: string, qty: int, price: float }
"""
_KINDS = {"csv": ("csv", ""), "json": ("json", ", options: { format: array }"), "lines": ("json", "")}


def _output(name: str, source: str, kind: str = "csv") -> str:
    word, options = _KINDS[kind]
    return (
        f"  - {{ type: output, name: {name}, input: {source}, "
        f"config: {{ type: {word}, path: {name}.{word}{options} }} }}\n"
    )


def _route() -> str:
    return """  - type: route
    name: sorted_out
    input: orders
    config:
      conditions: { large: qty >= 70, middle: qty >= 30 }
      default: small
"""


def _transform(number: int) -> str:
    return f"""  - type: transform
    name: copy{number}
    input: orders
    config:
      cxl: |
        emit gross = price * qty
        emit place = city.upper()
"""


def _filter() -> str:
    return "  - { type: transform, name: kept, input: orders, config: { cxl: filter qty > 10 } }\n"


def _aggregate(name: str, key: str, source: str) -> str:
    return f"""  - type: aggregate
    name: {name}
    input: {source}
    config:
      group_by: [{key}]
      cxl: |
        emit n = count(*)
        emit spent = sum(price)
"""


_PORTS = ["sorted_out.large", "sorted_out.middle", "sorted_out.small"]
CASES: dict[str, tuple[str, list[str]]] = {
    "route": (_route(), [_output(f"out{i}", port) for i, port in enumerate(_PORTS)]),
    "mixed": (
        _route(),
        [_output(f"out{i}", port, kind) for i, (port, kind) in enumerate(zip(_PORTS, _KINDS, strict=True))],
    ),
    "copies": ("", [_transform(i) + _output(f"out{i}", f"copy{i}") for i in range(3)]),
    "plain": ("", [_output(f"out{i}", "orders") for i in range(3)]),
    "aggregates": (
        _filter(),
        [
            _output("out0", "kept"),
            _aggregate("by_city", "city", "kept") + _output("out1", "by_city"),
            _aggregate("by_customer", "customer", "kept") + _output("out2", "by_customer"),
        ],
    ),
    "totals": (
        "",
        [
            _aggregate("by_city", "city", "orders") + _output("out0", "by_city"),
            _aggregate("by_qty", "qty", "orders") + _output("out1", "by_qty"),
            _aggregate("by_customer", "customer", "orders") + _output("out2", "by_customer"),
        ],
    ),
    "shared": (
        _aggregate("by_customer", "customer", "orders").replace("[customer]", "[customer, qty]"),
        [_output(f"out{i}", "by_customer") for i in range(3)],
    ),
}
"""What all outputs share, and what each has besides."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old")
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--apart", action="store_true", help="three pipelines of this tree, too")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    folder = Path(tempfile.mkdtemp(prefix="clinker-bench-"))
    sources = {"new": str(Path(__file__).resolve().parents[1] / "src"), **({"old": given.old} if given.old else {})}
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    try:
        _generate(folder / "orders.csv", given.rows)
        print(f"{given.rows:,} rows, {(folder / 'orders.csv').stat().st_size / 1e6:.0f} MB")
        for _ in range(given.turns):
            for name, source in sources.items():
                side = Side(source)
                try:
                    for case in given.cases:
                        _measure(folder, case, name, side, given, found)
                finally:
                    side.end()
            _show(given.cases, found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(
    folder: Path,
    case: str,
    name: str,
    side: Side,
    given: argparse.Namespace,
    found: dict[tuple[str, str], list[tuple[float, float]]],
) -> None:
    shared, outputs = CASES[case]
    work = {name: [_written(folder, "together", shared + "".join(outputs))]}
    if name == "new" and given.apart:
        alone = [_alone(shared, outputs, i) for i in range(len(outputs))]
        work["apart"] = [_written(folder, f"apart{i}", text) for i, text in enumerate(alone)]
    for i in range(given.rounds + 1):
        for what, files in work.items():
            times = side.run(files)
            if i:
                found.setdefault((case, what), []).append(times)
                print(f"  {case:<10} {what:<5} {times[0]:5.2f} s CPU {times[1]:5.2f} s", flush=True)


def _show(cases: list[str], found: dict[tuple[str, str], list[tuple[float, float]]]) -> None:
    for case in cases:
        every = {what: times for (of, what), times in found.items() if of == case}
        best = {what: [min(column) for column in zip(*times, strict=True)] for what, times in every.items()}
        shown = "  ".join(f"{what} {cpu:5.2f} s CPU {clock:5.2f} s" for what, (cpu, clock) in best.items())
        ratios = [
            f"new/{what} {best['new'][0] / cpu:.2f} ({best['new'][1] / clock:.2f})"
            for what, (cpu, clock) in best.items()
            if what != "new"
        ]
        print(f"{case:<10} {shown}   {'  '.join(ratios)}", flush=True)


def _alone(shared: str, outputs: list[str], number: int) -> str:
    """The pipeline with one of the outputs; a route needs all of its ports."""
    text = shared + outputs[number]
    if "type: route" not in shared:
        return text
    port = _PORTS[number].partition(".")[2]
    wanted = {"large": "qty >= 70", "middle": "qty >= 30 and qty < 70", "small": "qty < 30"}[port]
    kept = f"  - {{ type: transform, name: kept, input: orders, config: {{ cxl: filter {wanted} }} }}\n"
    return kept + outputs[number].replace(_PORTS[number], "kept")


def _written(folder: Path, name: str, nodes: str) -> str:
    path = folder / f"{name}.yaml"
    path.write_text(f"pipeline: {{ name: {name} }}\nnodes:\n{_SOURCE}{nodes}")
    return str(path)


def _generate(path: Path, rows: int) -> None:
    random = np.random.default_rng(7)
    cities = np.array(["Paris", "London", "New York", "Tokyo", "Berlin"])
    table = pa.table(
        {
            "id": np.arange(rows),
            "customer": np.char.add("customer ", random.integers(0, 5000, rows).astype(str)),
            "city": cities[random.integers(0, len(cities), rows)],
            "qty": random.integers(1, 100, rows),
            "price": np.round(random.random(rows) * 1000, 2),
        }
    )
    pacsv.write_csv(table, path, pacsv.WriteOptions(quoting_style="none"))


class Side:
    """A process with a session, over one source tree."""

    def __init__(self, source: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source},
        )

    def run(self, files: list[str]) -> tuple[float, float]:
        """Seconds of a processor and of the clock."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(files) + "\n")
        self._process.stdin.flush()
        cpu, clock = json.loads(self._process.stdout.readline())
        return cpu, clock

    def end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def serve() -> None:
    """Run the pipelines that are asked for, and say how long each request took."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare, run, spark = _engine()
    for line in sys.stdin:
        plans = [prepare(Path(path)) for path in json.loads(line)]
        before, began = _cpu(), time.perf_counter()
        for plan in plans:
            run(plan, spark)
        print(json.dumps([_cpu() - before, time.perf_counter() - began]), file=answers, flush=True)
    spark.stop()


def _engine() -> tuple[Any, Any, Any]:
    """Of this tree, or of one in which modules were not yet in folders."""
    from clinker_spark.plan.prepare import prepare

    try:
        from clinker_spark.runtime.run.pipeline import run
        from clinker_spark.spark.session.sessions import session
    except ImportError:
        from clinker_spark.runtime.run import run  # type: ignore[attr-defined, no-redef]
        from clinker_spark.spark.session import session  # type: ignore[attr-defined, no-redef]
    return prepare, run, session("local[2]", conf={"spark.driver.memory": "600m"})


def _cpu() -> float:
    """Of all processes, those included that ended meanwhile and were waited for."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            continue
    return total


if __name__ == "__main__":
    main()
