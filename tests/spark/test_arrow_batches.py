"""Pandas takes 50 MB of each process, and nothing here needs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas import functions

from clinker_spark.spark.arrow_batches import over_batches


def test_nothing_that_a_run_or_a_worker_loads_loads_pandas() -> None:
    program = """
import sys
import clinker_spark.runtime.run.pipeline
from clinker_spark.spark.arrow_batches import load_converters
from clinker_spark.spark.session.worker_daemon import load

load_converters()
load()
assert {"pyspark.testing.utils", "pyarrow", "polars"} <= set(sys.modules)
print("pandas" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def test_a_function_over_batches(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> None:
        raise AssertionError("asked for pandas")

    def doubled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([2 * n for n in batch.column(0).to_pylist()])], ["n"])

    monkeypatch.setattr(functions, "require_minimum_pandas_version", never)
    with pytest.raises(AssertionError, match="pandas"):
        spark.range(3).mapInArrow(doubled, "n BIGINT")
    found = over_batches(spark.range(3), doubled, "n BIGINT")
    assert sorted(row.n for row in found.collect()) == [0, 2, 4]
