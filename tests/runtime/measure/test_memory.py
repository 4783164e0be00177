"""Memory is looked at in a thread of its own, which must go on whatever goes away meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from clinker_spark.runtime.measure import processes
from clinker_spark.runtime.measure.memory import MemorySampler
from clinker_spark.runtime.measure.processes import ProcessTree, Sample
from clinker_spark.spark.measure import steering
from clinker_spark.spark.measure.steering import bytes_below
from clinker_spark.spark.session.jvm import while_it_lives


def test_a_look_that_fails_does_not_end_the_watch() -> None:
    told: list[Sample] = []
    enough = threading.Event()

    def tell(sample: Sample) -> None:
        told.append(sample)
        if len(told) == 3:
            enough.set()
        raise psutil.NoSuchProcess(1)

    with MemorySampler(every=0.01, tell=tell) as use:
        assert enough.wait(10)
    assert use.peak is not None and use.peak.total > 0


def test_a_process_that_is_gone_when_its_children_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ProcessTree()
    before = tree.sample(0.0)
    monkeypatch.setattr(processes, "root", 2**30)  # no process has this number
    tree._found = float("-inf")
    assert before.driver > 0 and tree.sample(1.0).driver > 0


def test_a_session_that_was_stopped_says_nothing() -> None:
    context: Any = None  # what PySpark has in its place then
    with while_it_lives():
        context.sc()
    with pytest.raises(AttributeError), while_it_lives():
        os.nothing_like_that  # type: ignore[attr-defined]  # noqa: B018


def test_a_file_that_vanishes_takes_no_others_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("a", "b", "c", "folder/d"):
        (tmp_path / name).write_bytes(b"12345")
    scan = os.scandir

    @contextmanager
    def while_one_goes(place: str) -> Iterator[list[os.DirEntry[str]]]:
        with scan(place) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        (tmp_path / "a").unlink(missing_ok=True)
        yield found

    monkeypatch.setattr(steering.os, "scandir", while_one_goes)
    assert bytes_below([str(tmp_path), str(tmp_path / "gone")]) == 15
