"""The example of a stream join: the stream gives the records of the run, and its dead letter."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from clinker_spark.plan.prepare import prepare
from clinker_spark.streaming.run import StreamOptions, run_stream
from tests.scenarios.test_examples import EXAMPLES, without_marks

EXAMPLE = EXAMPLES / "60-paid-orders"


def test_the_stream_gives_what_the_run_gives(tmp_path: Path, quick: SparkSession) -> None:
    copy = tmp_path / "example"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("out", "expected"))
    run_stream(
        prepare(copy / "pipeline.yaml"), quick, StreamOptions(once=True, flush=True), lambda event, details: None
    )
    lines = [line for path in sorted((copy / "out").glob("paid-*.json")) for line in path.read_bytes().splitlines()]
    assert sorted(lines) == sorted((EXAMPLE / "expected" / "paid.json").read_bytes().splitlines())
    (letters,) = (copy / "out").glob("dead-letters-*.csv")
    assert without_marks(letters.read_bytes()) == without_marks(
        (EXAMPLE / "expected" / "dead-letters.csv").read_bytes()
    )
