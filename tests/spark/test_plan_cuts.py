"""Rows that several readers of a job share, and plans that run more than once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from clinker_spark.spark.plan_cuts import Shared, counted_behind, is_repeatable, united
from clinker_spark.spark.scan import scans
from clinker_spark.spark.scan.request import Readers
from clinker_spark.spark.session.small_inputs import SMALL, settings


class Numbers:
    """A source that gives as many numbers as a file says, and notes each time that it is read."""

    def __init__(self, folder: Path) -> None:
        self.most, self.reads = folder / "most", folder / "reads"
        self.reads.write_text("")

    def frame(self, spark: SparkSession) -> DataFrame:
        most, reads = str(self.most), str(self.reads)

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                with open(reads, "a") as file:
                    file.write("x")
                yield pa.record_batch([pa.array(range(int(Path(most).read_text())))], ["n"])

        return spark.range(0, 1, 1, 1).mapInArrow(read, "n BIGINT")


def test_shared_rows_are_computed_once_for_each_job(spark: SparkSession, tmp_path: Path) -> None:
    numbers = Numbers(tmp_path)
    numbers.most.write_text("3")
    with settings(spark, SMALL):
        rows = Shared(numbers.frame(spark).coalesce(1))
        totals = rows.frame.groupBy().agg(F.sum("n").alias("n"))
        twice: Any = rows.frame.unionByName(totals).unionByName(rows.frame.where("n > 1"))
        assert is_repeatable(twice)
        assert twice.toArrow()["n"].to_pylist() == [0, 1, 2, 3, 2]
        assert numbers.reads.read_text() == "x"
        numbers.most.write_text("2")
        assert twice.toArrow().num_rows == 5, "what is kept stays"
        rows.forget()
        assert twice.toArrow()["n"].to_pylist() == [0, 1, 1]
        assert twice.toArrow().num_rows == 3 and numbers.reads.read_text() == "xx", "and is kept again"
        rows.unpersist()


def test_what_is_counted_behind_shared_rows_is_known(spark: SparkSession, tmp_path: Path) -> None:
    numbers = Numbers(tmp_path)
    numbers.most.write_text("7")
    with settings(spark, SMALL):
        counted = numbers.frame(spark).coalesce(1).observe(Observation("behind shared rows"), F.count("n").alias("n"))
        rows = Shared(counted)
        both: Any = rows.frame.where("n < 2").unionByName(rows.frame.where("n > 4"))
        assert both.toArrow().num_rows == 4
        assert counted_behind("behind shared rows") == {"n": 7}
        rows.unpersist()


@pytest.mark.parametrize("step", ["exchange", "broadcast"])
def test_plans_that_remember_are_not_repeated(spark: SparkSession, tmp_path: Path, step: str) -> None:
    numbers = Numbers(tmp_path)
    frame = numbers.frame(spark)
    with settings(spark, SMALL):
        other = (
            frame.repartition(2, "n") if step == "exchange" else frame.join(F.broadcast(frame.toDF("m")), F.expr("m=n"))
        )
        assert is_repeatable(frame) and not is_repeatable(other)


def _scanned(spark: SparkSession, batches: list[Any]) -> tuple[DataFrame, bool]:
    def read(split: int) -> Iterator[pa.RecordBatch]:
        for values in batches:
            if values is None:
                raise ValueError("a damaged file")
            yield pa.record_batch([pa.array(values, pa.int64())], ["n"])

    return scans.scan(spark, 1, [("n", "BIGINT")], read, Readers(here=True))


def test_small_inputs_are_read_by_the_driver(spark: SparkSession) -> None:
    frame, here = _scanned(spark, [[1, 2], [3, None]])
    assert here and frame.schema.simpleString() == "struct<n:bigint>"
    assert [row.n for row in frame.collect()] == [1, 2, 3, None]


def test_what_cannot_be_read_there_is_left_to_the_job(spark: SparkSession) -> None:
    """It is the job that says what is wrong with a file."""
    frame, here = _scanned(spark, [[1], None])
    assert not here
    with pytest.raises(Exception, match="a damaged file"):
        frame.collect()


def test_no_more_is_read_there_than_files_of_this_size_hold(spark: SparkSession, monkeypatch: Any) -> None:
    monkeypatch.setattr(scans, "_MOST_HERE", 15)
    frame, here = _scanned(spark, [[1], [2]])
    assert not here and frame.count() == 2


def test_many_frames_are_one(spark: SparkSession) -> None:
    """One after the other, by name, also when they are made of the same rows or count these."""
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "n INT, t STRING")
    turned = rows.select("t", "n").where("n = 2")
    renamed = rows.selectExpr("n + 10 AS n", "t")
    found = united([rows, turned, renamed, rows])
    assert [tuple(row) for row in found.collect()] == [
        *[(1, "a"), (2, "b")],
        (2, "b"),
        *[(11, "a"), (12, "b")],
        *[(1, "a"), (2, "b")],
    ]
    assert [tuple(row) for row in united([found, rows.limit(1), rows.where("n > 1")]).where("n = 1").collect()] == [
        (1, "a"),
        (1, "a"),
        (1, "a"),
    ]
