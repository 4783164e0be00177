"""Readers wait between batches while a mark is there, but not for ever."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa

from clinker_spark.spark.scan import gate
from clinker_spark.spark.scan.scans import sliced

BATCH = pa.record_batch([pa.array([1, 2])], ["id"])


def test_without_a_mark_nobody_waits(tmp_path: Path) -> None:
    began = time.monotonic()
    assert len(list(gate.gated([BATCH] * 1000, str(tmp_path)))) == 1000
    assert time.monotonic() - began < 5


def test_they_wait_until_the_mark_is_gone(tmp_path: Path) -> None:
    gate.close(tmp_path)
    timer = threading.Timer(0.3, gate.open_again, [tmp_path])
    began = time.monotonic()
    timer.start()
    assert list(gate.gated([BATCH], str(tmp_path))) == [BATCH]
    assert time.monotonic() - began >= 0.3
    timer.join()
    gate.open_again(tmp_path)  # nothing to do is no error


def test_a_mark_that_nobody_removes_holds_no_reader_for_ever(tmp_path: Path) -> None:
    gate.close(tmp_path)
    assert len(list(gate.gated([BATCH, BATCH], str(tmp_path), longest=0.1))) == 2


def test_a_folder_that_is_gone_is_no_reason_to_wait(tmp_path: Path) -> None:
    gate.close(tmp_path / "gone")
    assert list(gate.gated([BATCH], str(tmp_path / "gone"))) == [BATCH]


def test_batches_hold_at_most_as_many_records_as_the_pipeline_says() -> None:
    large = pa.record_batch([pa.array(range(5))], ["id"])
    empty = large.slice(0, 0)
    found = [batch.column(0).to_pylist() for batch in sliced([large, empty, large.slice(0, 2)], 2)]
    assert found == [[0, 1], [2, 3], [4], [], [0, 1]]
