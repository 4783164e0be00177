"""Streams that are killed, or whose outputs fail, at any moment: what comes out in the end is what a stream without
trouble gives, each record once. With CLINKER_CASES=all, a real process is killed thirty times while it reads, and some
more times while it closes its windows: a left join, a full join and a chain of two joins, in one query."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.commit.seam import PosixFiles
from clinker_spark.streaming import run as stream_run
from clinker_spark.streaming.file_sink import FileSink
from clinker_spark.streaming.run import StreamOptions, run_stream
from tests.streaming.model import Event, joined, read_pairs, write_files
from tests.support.archived import archived

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
KILLS = int(os.environ.get("CLINKER_KILLS", "30"))
WINDOW = dt.timedelta(seconds=5)
START = dt.datetime(2026, 1, 1)
PIPELINE = """\
pipeline: { name: killed }
stream: { max_files: 1, partitions: 1 }
nodes:
  - type: source
    name: l
    config: { type: json, glob: l/*.jsonl, options: { format: ndjson }, watermark: { column: at, delay: 0s },
              schema: { id: int, k: nullable(string), at: date_time, n: int } }
  - type: source
    name: r
    config: { type: json, glob: r/*.jsonl, options: { format: ndjson }, watermark: { column: at, delay: 0s },
              schema: { id: int, k: nullable(string), at: date_time, n: int } }
  - type: stream_join
    name: j
    input: { left: l, right: r }
    config: { left_keys: [k], right_keys: [k], time_window: 5s, kind: left }
  - { type: output, name: out, input: j, config: { type: json, path: out/, options: { format: ndjson } } }
"""
MANY = """\
pipeline: { name: killed }
stream: { max_files: 1, partitions: 1 }
nodes:
  - type: source
    name: l
    config: { type: json, glob: l/*.jsonl, options: { format: ndjson }, watermark: { column: at, delay: 0s },
              schema: { id: int, k: nullable(string), at: date_time, n: int } }
  - type: source
    name: r
    config: { type: json, glob: r/*.jsonl, options: { format: ndjson }, watermark: { column: at, delay: 0s },
              schema: { id: int, k: nullable(string), at: date_time, n: int } }
  - type: stream_join
    name: one
    input: { left: l, right: r }
    config: { left_keys: [k], right_keys: [k], time_window: 5s, kind: left }
  - type: stream_join
    name: whole
    input: { left: l, right: r }
    config: { left_keys: [k], right_keys: [k], time_window: { min: 0s, max: 2s }, kind: full }
  - type: stream_join
    name: chain
    input: { left: one, right: r }
    config: { left_keys: [left_k], right_keys: [k], time_window: { min: -1s, max: 0s }, kind: left, left_prefix: "",
              right_columns: [id], right_prefix: third_ }
  - { type: transform, name: t0, input: one, config: { cxl: "emit case = 0\nemit third_id = right_id" } }
  - { type: transform, name: t1, input: whole, config: { cxl: "emit case = 1\nemit third_id = right_id" } }
  - { type: transform, name: t2, input: chain, config: { cxl: "emit case = 2" } }
  - { type: merge, name: j, inputs: [t0, t1, t2] }
  - { type: output, name: out, input: j, config: { type: json, path: out/, options: { format: ndjson } } }
"""
FLUSHES = int(os.environ.get("CLINKER_FLUSHES", "5"))


def ordered_backlog(folder: Path, files: int, each: int) -> tuple[list[Event], list[Event]]:
    """Two sides in the order of their times, with a delay of nothing; files are cut between records of one moment."""
    rng = random.Random(7)
    sides = []
    for name in ("l", "r"):
        side: list[Event] = []
        at = START
        for i in range(files * each):
            at += rng.choice((0, 0, 200, 900)) * dt.timedelta(milliseconds=1)
            side.append(Event(i, rng.choice([*"abcd", None]), at))
        write_files(folder / name, side, files)
        sides.append(side)
    (folder / "p.yaml").write_text(PIPELINE)
    return sides[0], sides[1]


class Failing(PosixFiles):
    """Files of which one rename fails, before it is done or after."""

    def __init__(self) -> None:
        self.renames = 0
        self.at: int | None = None
        self.after = False

    def rename(self, old: Path, new: Path) -> None:
        self.renames += 1
        here = self.renames == self.at
        if here and not self.after:
            raise OSError(5, "no rename today")
        super().rename(old, new)
        if here:
            raise OSError(5, "renamed, and then gone")


def test_an_output_that_fails_is_written_once(
    tmp_path: Path, started: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, right = ordered_backlog(tmp_path, 3, 12)
    files = Failing()

    def sink_of(node: OutputPlan, base: Path) -> Any:
        return FileSink(node, base, files)

    monkeypatch.setattr(stream_run, "sink_of", sink_of)
    for at, after in ((1, False), (2, True)):
        files.renames, files.at, files.after = 0, at, after
        with pytest.raises((ClinkerError, OSError)):
            run_stream(prepare(tmp_path / "p.yaml"), started, StreamOptions(once=True), lambda event, details: None)
    files.at = None
    report = run_stream(
        prepare(tmp_path / "p.yaml"), started, StreamOptions(once=True, flush=True), lambda event, details: None
    )
    assert report.late == 0  # an ordered backlog with a delay of nothing loses nothing
    assert read_pairs(sorted((tmp_path / "out").glob("out-*.json")))[0] == joined(left, right, "left", -WINDOW, WINDOW)


def start(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "clinker_spark", "stream", str(folder / "p.yaml"), *options, "-q"]
    command += ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"]
    log = open(folder / "log", "ab")  # noqa: SIM115 - the process writes it
    env = {**os.environ, **archived(folder)}
    return subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)


def batches(folder: Path, what: str) -> int:
    try:
        return len([name for name in os.listdir(folder / "p.checkpoint" / "j" / "spark" / what) if name.isdigit()])
    except FileNotFoundError:
        return 0


def outcome(folder: Path) -> dict[str, Counter[Any]]:
    """What the joins of `MANY` gave, as ids."""
    found: dict[str, Counter[Any]] = {"one": Counter(), "whole": Counter(), "chain": Counter()}
    for path in sorted((folder / "out").glob("out-*.json")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            ids = [record.get("left_id"), record.get("right_id")]
            name = ("one", "whole", "chain")[record["case"]]
            found[name][(*ids, record.get("third_id")) if name == "chain" else tuple(ids)] += 1
    return found


def wanted(left: list[Event], right: list[Event]) -> dict[str, Counter[Any]]:
    """The same in plain Python."""
    second = dt.timedelta(seconds=1)
    one = joined(left, right, "left", -WINDOW, WINDOW)
    events = {event.id: event for event in left}
    ids = list(one.elements())
    pairs = [Event(i, events[a].key, events[a].at) for i, (a, _) in enumerate(ids) if a is not None]
    chain = joined(pairs, right, "left", -second, 0 * second)
    return {
        "one": one,
        "whole": joined(left, right, "full", 0 * second, 2 * second),
        "chain": Counter({(*ids[a], b): n for (a, b), n in chain.items() if a is not None}),
    }


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not EVERYTHING, reason="dozens of processes of their own; CLINKER_CASES=all")
def test_a_killed_stream_goes_on(tmp_path: Path) -> None:
    rng = random.Random(os.environ.get("CLINKER_SEED", "1"))
    count = KILLS + 10
    left, right = ordered_backlog(tmp_path, count, 30)
    (tmp_path / "p.yaml").write_text(MANY)
    hidden = tmp_path / "r-later"  # the first run sees one side alone
    (tmp_path / "r").rename(hidden)
    visible = tmp_path / "l"
    visible.rename(tmp_path / "l-later")
    # There is nothing to read yet. It leaves an archive of classes, which halves the start of those that are killed.
    assert start(tmp_path, "--once").wait(timeout=1200) == 0, (tmp_path / "log").read_text()
    (tmp_path / "l-later").rename(visible)
    for kill in range(KILLS):
        process = start(tmp_path, "--once")
        before = batches(tmp_path, "offsets")
        while process.poll() is None and batches(tmp_path, "offsets") == before:
            time.sleep(0.02)
        time.sleep(rng.random() * 1.5)
        kill_all(process)
        if kill == 0:
            hidden.rename(tmp_path / "r")
    process = start(tmp_path, "--once")
    assert process.wait(timeout=1200) == 0, (tmp_path / "log").read_text()
    for _ in range(FLUSHES):  # while the windows are closed
        before = batches(tmp_path, "offsets")
        process = start(tmp_path, "--once", "--flush-at-end")
        while process.poll() is None and batches(tmp_path, "offsets") == before:
            time.sleep(0.02)
        time.sleep(rng.random())
        kill_all(process)
    process = start(tmp_path, "--once", "--flush-at-end")
    assert process.wait(timeout=1200) == 0, (tmp_path / "log").read_text()
    found, expected = outcome(tmp_path), wanted(left, right)
    for name, pairs in expected.items():
        assert found[name] == pairs, name
    assert batches(tmp_path, "commits") >= count


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """All processes of a stream at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.skipif(not EVERYTHING, reason="a process of its own for half a minute; CLINKER_CASES=all")
def test_sigterm_ends_a_stream_after_its_batch(tmp_path: Path) -> None:
    left, right = ordered_backlog(tmp_path, 3, 20)
    process = start(tmp_path)
    until = time.monotonic() + 240
    while batches(tmp_path, "commits") < 3 and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 0, (tmp_path / "log").read_text()
    process = start(tmp_path, "--once", "--flush-at-end")
    assert process.wait(timeout=300) == 0, (tmp_path / "log").read_text()
    assert read_pairs(sorted((tmp_path / "out").glob("out-*.json")))[0] == joined(left, right, "left", -WINDOW, WINDOW)
