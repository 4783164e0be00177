"""Folders of parts: nothing in them but parts, and those of the last job only."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from clinker_spark.spark.parts import part_writer


@pytest.mark.parametrize("kind", ["text", "parquet"])
def test_a_second_job_replaces_the_parts_of_the_first(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "made" / "parts"
    folder.parent.mkdir()
    for tasks in (3, 2):
        frame = spark.range(0, 6, 1, tasks).selectExpr("CAST(id AS STRING) AS value")
        part_writer(frame, str(folder)).format(kind).save(str(folder))
        names = sorted(path.name for path in folder.iterdir())
        assert len(names) == tasks and all(name.startswith("part-") for name in names), names
        read = spark.read.format(kind).load(str(folder)).collect()
        assert sorted(row.value for row in read) == list("012345")


def test_a_job_that_fails_leaves_nothing_that_looks_like_a_part(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    frame = spark.range(0, 2, 1, 2).selectExpr("IF(id = 1, raise_error('no'), 'yes') AS value")
    with pytest.raises(Exception, match="no"):
        part_writer(frame, str(folder)).text(str(folder))
    assert not list(folder.glob("part-*"))
