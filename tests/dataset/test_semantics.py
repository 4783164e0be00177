"""What a query means: the tables that were confirmed on the original, and generated recordings against the model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from clinker_spark.core.errors import ClinkerError
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.selection import Query
from clinker_spark.runtime.dataset import writer
from clinker_spark.runtime.dataset.imports import compact
from tests.dataset.model import Event, Unsynced, answer, recorded, rows_of

INDEXES = ("frame", "other")
RECORDING = [
    Event("seg1", "/a", {"frame": 10}, {"v": 100}),
    Event("seg1", "/a", {"frame": 30}, {"v": 300}),
    Event("seg1", "/a", {"frame": 30}, {"v": 301}),
    Event("seg1", "/a", {"frame": 35}, {"w": 9}),
    Event("seg1", "/b", {"frame": 20}, {"v": [1]}),
    Event("seg1", "/b", {"frame": 40}, {"v": [2]}),
    Event("seg1", "/b", {"frame": 50}, {"v": []}),
    Event("seg1", "/static_e", {}, {"cal": 7}),
    Event("seg1", "/c", {"other": 3}, {"v": 5}),
    Event("seg2", "/a", {"frame": 5}, {"v": 1000}),
    Event("seg2", "/a", {"frame": 15}, {"v": 1001}),
]
CELLS = ("/a:v", "/a:w", "/b:v", "/c:v", "/static_e:cal")
FILLED = [
    ("seg1", 10, 100, None, None, None, 7),
    ("seg1", 20, 100, None, [1], None, 7),
    ("seg1", 30, 301, None, [1], None, 7),
    ("seg1", 35, 301, 9, [1], None, 7),
    ("seg1", 40, 301, 9, [2], None, 7),
    ("seg1", 50, 301, 9, [], None, 7),
    ("seg2", 5, 1000, None, None, None, None),
    ("seg2", 15, 1001, None, None, None, None),
]
SPARSE = [
    ("seg1", 10, 100, None, None, None, 7),
    ("seg1", 20, None, None, [1], None, 7),
    ("seg1", 30, 301, None, None, None, 7),
    ("seg1", 35, None, 9, None, None, 7),
    ("seg1", 40, None, None, [2], None, 7),
    ("seg1", 50, None, None, [], None, 7),
    ("seg2", 5, 1000, None, None, None, None),
    ("seg2", 15, 1001, None, None, None, None),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return recorded(tmp_path_factory.mktemp("recording"), RECORDING, INDEXES)


def table(dataset: Dataset, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    rows = rows_of(dataset, Query(options.pop("index", "frame"), **options))
    return [tuple(row[name] for name in ("segment", "frame", *(columns or CELLS))) for row in rows]


def test_the_table_of_the_reference_with_fill(dataset: Dataset) -> None:
    assert table(dataset, fill=True) == FILLED


def test_the_table_of_the_reference_without_fill(dataset: Dataset) -> None:
    assert table(dataset) == SPARSE


def test_columns_are_segment_other_indexes_the_index_and_components(dataset: Dataset) -> None:
    [first, *_] = rows_of(dataset, Query("frame"))
    assert list(first) == ["segment", "other", "frame", *CELLS]


def test_given_values_are_taken_inside_of_each_segment(dataset: Dataset) -> None:
    rows = table(dataset, fill=True, values=[60, 33, 0, 10, 12, 30, 45])
    assert [row[:2] for row in rows] == [
        *(("seg1", frame) for frame in (10, 12, 30, 33, 45)),
        *(("seg2", frame) for frame in (10, 12)),
    ]
    assert rows[4] == ("seg1", 45, 301, 9, [2], None, 7)


def test_values_by_segment_are_all_taken(dataset: Dataset) -> None:
    rows = table(dataset, fill=True, values={"seg1": [99, 0], "unknown": [1]})
    assert rows == [("seg1", 0, None, None, None, None, 7), ("seg1", 99, 301, 9, [], None, 7)]


def test_rows_at_a_steady_pace(dataset: Dataset) -> None:
    rows = table(dataset, "/a:v", fill=True, every="20", range=(15, None))
    assert rows == [("seg1", 20, 100), ("seg1", 40, 301)]
    with pytest.raises(ClinkerError, match="cannot both be given"):
        table(dataset, every="20", values=[1])


def test_values_without_fill_are_the_values_of_exactly_that_time(dataset: Dataset) -> None:
    rows = table(dataset, values=[12, 30])
    assert rows[:2] == [("seg1", 12, None, None, None, None, 7), ("seg1", 30, 301, None, None, None, 7)]


def test_values_that_are_given_twice_are_refused(dataset: Dataset) -> None:
    with pytest.raises(ClinkerError, match="must be unique: 10 is given twice"):
        rows_of(dataset, Query("frame", values=[10, 20, 10]))


def test_a_range_is_filled_from_before_it(dataset: Dataset) -> None:
    assert table(dataset, fill=True, range=(35, 40), segments=("seg1",)) == FILLED[3:5]


def test_contents_change_the_rows_and_columns_do_not(dataset: Dataset) -> None:
    assert table(dataset, "/b:v", entities=("/b",)) == [("seg1", 20, [1]), ("seg1", 40, [2]), ("seg1", 50, [])]
    rows = rows_of(dataset, Query("frame", columns=("frame", "/b:v"), fill=True))
    assert [tuple(row.values()) for row in rows] == [(row[1], row[4]) for row in FILLED]


def test_static_values_make_no_row_and_hide_others() -> None:
    events = [*RECORDING[:2], Event("seg1", "/a", {}, {"v": 99}), Event("seg1", "/b", {"frame": 1}, {"v": 1})]
    with tempfile.TemporaryDirectory() as folder:
        found = rows_of(recorded(Path(folder), events, INDEXES), Query("frame"))
    assert [(row["frame"], row["/a:v"], row["/b:v"]) for row in found] == [(1, 99, 1)]


def test_without_an_index_there_is_a_row_for_each_segment_with_static_values(dataset: Dataset) -> None:
    rows = rows_of(dataset, Query(None))
    assert [(row["segment"], row["/static_e:cal"], row["/a:v"]) for row in rows] == [("seg1", 7, None)]


def test_no_rows_for_static_values_or_other_indexes_alone(dataset: Dataset) -> None:
    assert rows_of(dataset, Query("frame", entities=("/static_e",))) == []
    assert rows_of(dataset, Query("frame", entities=("/c",), fill=True)) == []


def test_other_indexes_are_the_greatest_of_the_cells() -> None:
    """As observed on the original: cells that were filled in count."""
    events = [
        Event("s", "/a", {"frame": 10, "log": 1000}, {"v": 100}),
        Event("s", "/a", {"frame": 30, "log": 900}, {"v": 300}),
        Event("s", "/b", {"frame": 20, "log": 5000}, {"v": 1}),
        Event("s", "/b", {"frame": 40}, {"v": 2}),
    ]
    with tempfile.TemporaryDirectory() as folder:
        dataset = recorded(Path(folder), events, ("frame", "log"))
        assert [row["log"] for row in rows_of(dataset, Query("frame"))] == [1000, 5000, 900, None]
        assert [row["log"] for row in rows_of(dataset, Query("frame", fill=True))] == [1000, 5000, 5000, 900]
        found = [(row["log"], row["frame"]) for row in rows_of(dataset, Query("log", fill=True))]
        assert found == [(900, 30), (1000, 10), (5000, 20)]


def test_origin_times_row_ids_and_all_values(dataset: Dataset) -> None:
    rows = rows_of(dataset, Query("frame", ("/a",), ("seg1",), fill=True, origin_time=True, row_ids=True))
    assert [(r["frame"], r["/a:v"], r["/a:v@origin_time"], r["/a:v@row_id"]) for r in rows] == [
        (10, 100, 10, 0),
        (30, 301, 30, 2),
        (35, 301, 30, 2),
    ]
    rows = rows_of(dataset, Query("frame", ("/a",), ("seg1",), fill=True, all_values=True, row_ids=True))
    assert [(r["/a:v"], r["/a:v@row_id"]) for r in rows] == [([100], [0]), ([300, 301], [1, 2]), ([300, 301], [1, 2])]


def test_a_single_value_and_an_empty_list_stay_what_they_are(tmp_path: Path) -> None:
    events = [
        Event("s", "/b", {"frame": 20}, {"v": 1}),
        Event("s", "/b", {"frame": 40}, {"v": 2.5}),
        Event("s", "/b", {"frame": 50}, {"v": []}),
        Event("s", "/b", {"frame": 60}, {"v": [3]}),
        Event("s", "/a", {"frame": 70}, {"v": "x"}),
    ]
    found = recorded(tmp_path, events, ("frame",))
    assert [row["/b:v"] for row in rows_of(found, Query("frame", fill=True))] == [1, 2.5, [], [3], [3]]
    assert [row["/b:v"] for row in rows_of(found, Query("frame", all_values=True))] == [[1], [2.5], [[]], [[3]], None]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Query("fame"), "no index 'fame'"),
        (Query("frame", entities=("/arm",)), "no entity '/arm'"),
        (Query("frame", segments=("seg3",)), "no segment 'seg3'"),
        (Query("frame", columns=("/a:x",)), "no column '/a:x'"),
        (Query("frame", range=(50, 30)), "ends before it begins"),
        (Query("frame", values=["x"]), "'x' is no value of index 'frame'"),
        (Query(None, range=(1, 2)), "a range needs an index"),
    ],
)
def test_what_does_not_fit_is_said(dataset: Dataset, asked: Query, message: str) -> None:
    with pytest.raises(ClinkerError, match=message):
        rows_of(dataset, asked)


# ----------------------------------------------------------------------- generated

times = st.integers(0, 12)
values = st.one_of(st.none(), st.integers(0, 99))
lists = st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=2))
events = st.builds(
    Event,
    st.sampled_from(["s1", "s2", "s3"]),
    st.sampled_from(["/a", "/a/b", "/c"]),
    st.one_of(
        st.fixed_dictionaries({"frame": times}),
        st.fixed_dictionaries({"frame": times, "other": times}),
        st.fixed_dictionaries({"other": times}),
        st.just({}),
    ),
    st.fixed_dictionaries({"v": values}, optional={"w": values, "list": lists, "both": st.one_of(values, lists)}),
)


@st.composite
def recordings(draw: st.DrawFn) -> list[Event]:
    found = draw(st.lists(events, min_size=1, max_size=40))
    # Most events belong in time; one static event would hide all others of its component.
    return [
        event if event.indexes or i % 4 == 0 else Event(event.segment, "/still", {}, event.components)
        for i, event in enumerate(found)
    ]


@st.composite
def queries(draw: st.DrawFn) -> Query:
    index = draw(st.sampled_from(["frame", "frame", "other", None]))
    span = draw(st.one_of(st.none(), st.tuples(st.integers(0, 6), st.integers(6, 12)))) if index else None
    some = st.lists(st.integers(-2, 15), unique=True, max_size=6)
    chosen = draw(st.one_of(st.none(), st.none(), some, st.dictionaries(st.sampled_from(["s1", "s3", "x"]), some)))
    return Query(
        index,
        range=span,
        values=chosen if index else None,
        fill=draw(st.booleans()),
        origin_time=draw(st.booleans()),
        row_ids=draw(st.booleans()),
        all_values=draw(st.booleans()),
    )


@settings(
    max_examples=120, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(recordings(), st.lists(queries(), min_size=3, max_size=3), st.integers(1, 40), st.integers(1, 5))
def test_generated_recordings(found: list[Event], asked: list[Query], cut: int, chunk_rows: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        place = str(Path(name) / "dataset")
        patch.setattr(writer, "CHUNK_ROWS", chunk_rows)
        recorded(Path(name), found[:cut], INDEXES)
        if found[cut:]:  # imported later, into the same segments
            recorded(Path(name), found[cut:], ())
        for query in asked:
            assert rows_of(Dataset.open(place), query) == answer(found, INDEXES, query)
        patch.setattr(writer, "CHUNK_ROWS", 1000)
        compact(place, Unsynced())
        assert rows_of(Dataset.open(place), asked[0]) == answer(found, INDEXES, asked[0])
