"""The 22 TPC-H queries: the query language side by side with the same queries as Spark SQL, in one session.

    python benchmarks/bench_tpch.py [--scale 0.1] [--rounds 3] [--data DIR] [--check]

Each query runs alternately in both ways; the best of the rounds counts. Both read the same Parquet files, and both
results are collected. With `--check` the answers are compared with DuckDB's first.
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

from clinker_spark.query.program import compile_query, run  # noqa: E402
from clinker_spark.query.values import Dataset  # noqa: E402
from clinker_spark.runtime.query import QueryEngine, prepare  # noqa: E402
from clinker_spark.spark.session import session  # noqa: E402


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
    totals = [0.0, 0.0]
    print(f"{'query':>5} {'language':>9} {'Spark SQL':>9} {'ratio':>6}")
    for number in options.queries:
        best = [min(times) for times in zip(*[both(number, ours, theirs) for _ in range(options.rounds)], strict=True)]
        totals = [total + value for total, value in zip(totals, best, strict=True)]
        print(f"{number:>5} {best[0]:>8.2f}s {best[1]:>8.2f}s {best[0] / best[1]:>6.2f}", flush=True)
    print(f"total {totals[0]:>8.2f}s {totals[1]:>8.2f}s {totals[0] / totals[1]:>6.2f}")


def both(number: int, ours: Callable[[int], Any], theirs: Callable[[int], Any]) -> tuple[float, float]:
    times = []
    for way in (ours, theirs):
        start = time.perf_counter()
        way(number)
        times.append(time.perf_counter() - start)
    return times[0], times[1]


def check(options: argparse.Namespace, folder: Path, ours: Callable[[int], Any]) -> None:
    duckdb = duckdb_runner(folder)
    for number in options.queries:
        problem = same(rows_of(ours(number)), duckdb(sql(number, options.scale)))
        print(f"q{number}: {problem or 'agrees with DuckDB'}", flush=True)
        if problem:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
