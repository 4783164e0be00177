"""Queries as DataFrames: the same rows as without Spark, in order, also when long segments are cut."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import clinker_spark
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.selection import Query, select, split
from clinker_spark.runtime.dataset import writer
from clinker_spark.spark.dataset import partitions
from tests.dataset.model import Event, answer, recorded, rows_of
from tests.dataset.test_semantics import CELLS, FILLED, INDEXES, RECORDING


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Event], str]:
    chance = random.Random(7)
    events = [
        Event(f"s{chance.randint(1, 2)}", f"/e{chance.randint(1, 4)}", {"frame": chance.randint(0, 500)}, {"v": n})
        for n in range(1500)
    ]
    events += [Event("s1", "/rare", {"frame": 3}, {"v": 1}), Event("s2", "/still", {}, {"v": 2})]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "CHUNK_ROWS", 20)
        folder = tmp_path_factory.mktemp("long")
        recorded(folder, events, INDEXES)
    return events, str(folder / "dataset")


@pytest.mark.parametrize("pieces", [1, 2, 7, 50])
@pytest.mark.parametrize("asked", [Query("frame", fill=True), Query("frame", range=(100, 300), fill=True)])
def test_parts_of_segments_make_the_same_rows(long: tuple[list[Event], str], asked: Query, pieces: int) -> None:
    from clinker_spark.dataset.flow.budget import PipelineBudget
    from clinker_spark.dataset.query import run

    events, place = long
    dataset = Dataset.open(place)
    selection = select(dataset, asked)
    groups = split(dataset, selection, pieces, 1)
    assert pieces == 1 or len(groups) > 1
    found = [
        row
        for group in groups
        for batch in run(dataset.store, selection.layout, group, PipelineBudget(10_000))
        for row in batch.to_pylist()
    ]
    assert found == answer(events, INDEXES, asked)


def test_a_query_is_a_data_frame(tmp_path: Path, quick: SparkSession) -> None:
    recorded(tmp_path, RECORDING, INDEXES)
    data = clinker_spark.dataset(str(tmp_path / "dataset"))  # type: ignore[operator]
    frame = data.reader(index="frame", fill_latest_at=True, spark=quick)
    assert [tuple(row[name] for name in ("segment", "frame", *CELLS)) for row in frame.collect()] == FILLED
    # Filters act on filled rows: the original gives other rows for these.
    assert [row["frame"] for row in frame.where("`/b:v` IS NOT NULL").collect()] == [20, 30, 35, 40, 50]
    both = data.reader(index="frame", spark=quick).where("`/a:v` IS NOT NULL AND `/b:v` IS NOT NULL")
    assert both.count() == 0
    sampled = data.reader(
        index="frame", using_index_values=[10, 12, 45], fill_latest_at=True, columns=["/b:v"], spark=quick
    )
    assert sampled.columns == ["/b:v"] and sampled.where("`/b:v` IS NOT NULL").count() == 1


def test_partitions_have_the_rows_in_order(
    long: tuple[list[Event], str], quick: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, place = long
    monkeypatch.setattr(partitions, "LEAST", 1)
    frame = clinker_spark.dataset(place).reader("frame", fill_latest_at=True, spark=quick)  # type: ignore[operator]
    assert frame.rdd.getNumPartitions() > 1
    assert [row.asDict() for row in frame.collect()] == answer(events, INDEXES, Query("frame", fill=True))
    assert len(frame.limit(3).collect()) == 3


def test_values_of_all_types(tmp_path: Path, quick: SparkSession) -> None:
    events = [Event("s", "/a", {}, {"b": True, "f": 1.5, "t": "x", "l": [], "s": {"x": [1]}})]
    recorded(tmp_path, events, ("log_time",))
    time = Event("s", "/c", {"log_time": "2026-01-01T00:00:00Z"}, {"v": 1})  # type: ignore[dict-item]
    recorded(tmp_path, [time], ())
    [row] = clinker_spark.dataset(str(tmp_path / "dataset")).reader("log_time", spark=quick).collect()  # type: ignore[operator]
    assert (row["/a:b"], row["/a:f"], row["/a:t"], row["/a:l"], row["/a:s"]["x"]) == (True, 1.5, "x", [], [1])
    assert row["log_time"].astimezone(dt.UTC).isoformat() == "2026-01-01T00:00:00+00:00"
    assert len(rows_of(Dataset.open(str(tmp_path / "dataset")), Query("log_time"))) == 1


def test_odd_names_and_mixed_values(tmp_path: Path, quick: SparkSession) -> None:
    """Fields of structs have any name; what was logged as single values and as lists is a list on Spark."""
    events = [
        Event("run `1`", "/ä ö/x:y", {"frame": 1}, {"s t": {"a b": 1, "c:d`": [{"e,f": "x"}]}, "both": 1, "none": []}),
        Event("run `1`", "/ä ö/x:y", {"frame": 2}, {"both": []}),
        Event("run `1`", "/ä ö/x:y", {"frame": 3}, {"both": [2, 3]}),
    ]
    recorded(tmp_path, events, ("frame",))
    data = clinker_spark.dataset(str(tmp_path / "dataset"))  # type: ignore[operator]
    rows = data.reader("frame", spark=quick).collect()
    assert [row["/ä ö/x:y:both"] for row in rows] == [[1], [], [2, 3]]
    assert rows[0]["/ä ö/x:y:s t"].asDict(recursive=True) == {"a b": 1, "c:d`": [{"e,f": "x"}]}
    [row] = data.reader("frame", all_values=True, row_ids=True, origin_time=True, range=(1, 1), spark=quick).collect()
    assert (row["/ä ö/x:y:both"], row["/ä ö/x:y:both@row_id"], row["/ä ö/x:y:both@origin_time"]) == ([[1]], [0], 1)
