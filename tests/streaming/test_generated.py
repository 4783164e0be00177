"""Made-up pipelines: the run and the drained, flushed stream give the same. One here (joins of all four kinds, in two
calls: what waits is found again after a restart), dozens with CLINKER_CASES=all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.streaming.generated import difference, finite, streamed
from tests.streaming.makers import made

ALL = os.environ.get("CLINKER_CASES") == "all"
WIDE = range(20) if ALL else range(20, 21)
DEEP = range(40) if ALL else range(0)


@pytest.mark.parametrize(
    ("wide", "seed"), [*((True, seed) for seed in WIDE), *((False, seed) for seed in DEEP)], ids=str
)
def test_run_and_stream_agree(tmp_path: Path, started: SparkSession, wide: bool, seed: int) -> None:
    case = made(seed, wide=wide, joins=12 if ALL else 4)
    expected = finite(case, tmp_path, started)
    assert difference(expected, streamed(case, tmp_path, started)) == ""
