"""Imports of Rerun recordings, where rerun-sdk is installed."""

from __future__ import annotations

import importlib
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.selection import Query
from clinker_spark.runtime.dataset.imports import import_events
from tests.dataset.model import rows_of


def test_without_the_package_there_is_a_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rerun.chunk", None)
    (tmp_path / "run.rrd").write_bytes(b"")
    with pytest.raises(DatasetError, match="not installed") as caught:
        import_events(str(tmp_path / "dataset"), [str(tmp_path / "run.rrd")])
    assert caught.value.diagnostics[0].code == "E857"
    assert not (tmp_path / "dataset").exists()


@pytest.fixture
def rerun() -> Any:
    return pytest.importorskip("rerun")


def recording(rerun: Any, path: Path, name: str = "run1") -> Any:
    found = rerun.RecordingStream("test", recording_id=name, send_properties=False)
    found.save(path)
    return found


def imported(tmp_path: Path, *paths: Path) -> Dataset:
    import_events(str(tmp_path / "dataset"), [str(path) for path in paths])
    return Dataset.open(str(tmp_path / "dataset"))


def test_values_times_and_types(rerun: Any, tmp_path: Path) -> None:
    stream = recording(rerun, tmp_path / "a.rrd")
    stream.set_time("frame", sequence=3)
    stream.set_time("stamp", timestamp=1_700_000_000)
    stream.set_time("since", duration=2.5)
    stream.log("/p", rerun.Points3D([[1, 2, 3], [4, 5, 6]], colors=[0xFF0000FF]))
    stream.log("/still", rerun.AnyValues(name="x"), static=True)
    stream.flush()
    del stream
    [row] = rows_of(imported(tmp_path, tmp_path / "a.rrd"), Query("frame"))
    assert row.pop("log_time") and row.pop("stamp").isoformat() == "2023-11-14T22:13:20+00:00"
    assert row == {
        "segment": "run1",
        "since": 2_500_000_000,
        "frame": 3,
        "/p:Points3D:colors": [0xFF0000FF],
        "/p:Points3D:positions": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        "/still:name": ["x"],
    }


def test_the_last_row_id_wins_whatever_the_order_of_chunks(rerun: Any, tmp_path: Path) -> None:
    """Chunks lie in the file in any order, and their row ids may even overlap: what was logged last counts."""
    chunks_of = importlib.import_module("rerun.chunk")
    stream = recording(rerun, tmp_path / "a.rrd")
    for value in range(6):
        stream.reset_time()
        stream.set_time("frame", sequence=10)
        stream.log("/a", rerun.AnyValues(v=value))
    stream.flush()
    del stream
    batches = [chunk.to_record_batch() for chunk in chunks_of.RrdReader(tmp_path / "a.rrd").stream()]
    [whole] = [batch for batch in batches if batch.num_rows == 6] or [None]
    assert whole is not None, "the batcher makes one chunk of quick events"
    rows = [[0, 1], [2, 4], [3, 5]]  # the second and the third overlap
    for number, order in enumerate(itertools.permutations(rows)):
        chunks = []
        for i, picked in enumerate(order):
            metadata = {**whole.schema.metadata, b"rerun:id": b"chunk_%032X" % (i + 1)}
            chunks += chunks_of.Chunk.from_record_batch(whole.take(picked).replace_schema_metadata(metadata))
        path = tmp_path / f"{number}.rrd"
        stream = chunks_of.LazyChunkStream.from_iter(chunks)
        stream.write_rrd(path, application_id="test", recording_id=f"run{number}")
        import_events(str(tmp_path / "dataset"), [str(path)])
    found = rows_of(Dataset.open(str(tmp_path / "dataset")), Query("frame", row_ids=True, all_values=True))
    assert [row["/a:v"] for row in found] == [[[0], [1], [2], [3], [4], [5]]] * 6
    assert [row["/a:v@row_id"] for row in found] == [[0, 1, 2, 3, 4, 5]] * 6


def test_times_in_one_microsecond_are_told(rerun: Any, tmp_path: Path) -> None:
    import numpy as np

    stream = recording(rerun, tmp_path / "a.rrd")
    times = np.array([1_000, 1_001, 2_500], dtype="datetime64[ns]")
    stream.send_columns(
        "/a", indexes=[rerun.TimeColumn("at", timestamp=times)], columns=rerun.AnyValues.columns(v=[1, 2, 3])
    )
    stream.flush()
    del stream
    done = import_events(str(tmp_path / "dataset"), [str(tmp_path / "a.rrd")])
    assert [(note.code, note.message.partition(": ")[2]) for note in done.notes] == [
        ("W852", "1 time lies within the same microsecond of index 'at' as another")
    ]
    found = rows_of(Dataset.open(str(tmp_path / "dataset")), Query("at", all_values=True))
    assert [row["/a:v"] for row in found] == [[[1], [2]], [[3]]]


@pytest.mark.parametrize("content", [b"", b"hello world" * 9, b"RRF2" + b"\0" * 99])
def test_damaged_recordings_have_a_code(rerun: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.rrd").write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        import_events(str(tmp_path / "dataset"), [str(tmp_path / "run.rrd")])
    assert caught.value.diagnostics[0].code == "E852"
    assert not (tmp_path / "dataset").exists()
