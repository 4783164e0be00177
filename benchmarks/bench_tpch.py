"""The 22 TPC-H queries: the query language side by side with the same queries as Spark SQL, in one session.

    python benchmarks/bench_tpch.py [--scale 0.1] [--rounds 3] [--data DIR] [--check]

Each query runs in both ways, round by round, and each way is the first one in every other round; the best of the
rounds counts, for the clock and for the processor time of Spark and Python apart from each other. Both read the same
Parquet files with the same types in one session, the views of both are there after the first round, and both results
are collected as Python rows. With `--check` the answers are compared with DuckDB's first.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent.parent / "src")]

from benchmarks.tpch.suite import NUMBERS, TABLES, duckdb_runner, generate, program, rows_of, same, sql  # noqa: E402

from clinker_spark.query.prepare import prepare  # noqa: E402
from clinker_spark.query.program import compile_query, run  # noqa: E402
from clinker_spark.query.values import Dataset  # noqa: E402
from clinker_spark.runtime.query.engine import QueryEngine  # noqa: E402
from clinker_spark.spark.session.sessions import session  # noqa: E402

Way = Callable[[int], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--queries", type=int, nargs="*", default=list(NUMBERS))
    options = parser.parse_args()
    folder = generate(options.data or Path(tempfile.gettempdir()) / f"clinker-tpch-{options.scale}", options.scale)
    spark = session()
    for name in TABLES:
        spark.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(name)

    def ours(number: int) -> Any:
        engine = QueryEngine(lambda: spark)
        value = run(prepare(compile_query(program(number, folder, options.scale)), engine), engine)
        return engine.rows(value) if isinstance(value, Dataset) else value

    def theirs(number: int) -> Any:
        return spark.sql(sql(number, options.scale)).collect()

    if options.check:
        check(options, folder, ours)
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current()  # type: ignore[union-attr]

    def cpu() -> float:
        return float(java.info().totalCpuDuration().get().toMillis()) / 1000 + time.process_time()

    totals = [0.0] * 4
    print(f"{'':>5} {'clock':>26} {'processor':>26}")
    print(f"{'query':>5}" + f" {'language':>9} {'Spark SQL':>9} {'ratio':>6}" * 2)
    for number in options.queries:
        found = [measured(number, (ours, theirs), turn, cpu) for turn in range(options.rounds)]
        best = [min(times) for times in zip(*found, strict=True)]
        totals = [total + value for total, value in zip(totals, best, strict=True)]
        show(str(number), best)
    show("total", totals)


def measured(number: int, ways: tuple[Way, Way], turn: int, cpu: Callable[[], float]) -> tuple[float, ...]:
    """Clock and processor time of both ways, one after the other: (ours, theirs, ours, theirs)."""
    times = [0.0] * 4
    for i in (turn % 2, 1 - turn % 2):
        start, before = time.perf_counter(), cpu()
        ways[i](number)
        times[i], times[2 + i] = time.perf_counter() - start, cpu() - before
    return tuple(times)


def show(name: str, times: list[float]) -> None:
    pairs = (times[:2], times[2:])
    cells = [f" {a:>8.2f}s {b:>8.2f}s {a / max(b, 0.01):>6.2f}" for a, b in pairs]
    print(f"{name:>5}{''.join(cells)}", flush=True)


def check(options: argparse.Namespace, folder: Path, ours: Callable[[int], Any]) -> None:
    duckdb = duckdb_runner(folder)
    for number in options.queries:
        problem = same(rows_of(ours(number)), duckdb(sql(number, options.scale)))
        print(f"q{number}: {problem or 'agrees with DuckDB'}", flush=True)
        if problem:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
