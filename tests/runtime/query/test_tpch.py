"""The 22 TPC-H queries at a small scale: the language on Spark against DuckDB's answers to the SQL."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.tpch.suite import NUMBERS, duckdb_runner, generate, program, rows_of, same, sql
from pyspark.sql import SparkSession

from clinker_spark.query.prepare import prepare
from clinker_spark.query.program import compile_query, run
from clinker_spark.query.values import Dataset
from clinker_spark.runtime.query.engine import QueryEngine

SCALE = 0.005
EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
CHOSEN = NUMBERS if EVERYTHING else (1, 2, 4, 7, 13, 15, 16, 18, 20, 21, 22)
"""Between them: joins of all kinds, correlated aggregates, exists, in, having, distinct, views."""


def test_queries_agree_with_duckdb(quick: SparkSession, tmp_path: Path) -> None:
    folder = generate(tmp_path / "tpch", SCALE)
    answers = {number: duckdb_runner(folder)(sql(number, SCALE)) for number in CHOSEN}

    def wrong(number: int) -> str | None:
        engine = QueryEngine(lambda: quick)
        checked = prepare(compile_query(program(number, folder, SCALE), f"q{number}"), engine)
        value = run(checked, engine)
        rows = rows_of(engine.rows(value) if isinstance(value, Dataset) else value)
        problem = same(rows, answers[number])
        return None if problem is None else f"q{number}: {problem}"

    with ThreadPoolExecutor(3) as pool:
        assert [problem for problem in pool.map(wrong, CHOSEN) if problem] == []
