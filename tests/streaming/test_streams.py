"""Streams over files: what comes out, and when; what is late, what fails, and what goes on after a stop."""

from __future__ import annotations

import csv
import errno
import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.page.stream import page
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.build import metrics
from clinker_spark.spark.session import sessions
from clinker_spark.spark.streaming.query import RunningQuery
from clinker_spark.streaming.api import start_stream
from clinker_spark.streaming.checkpoint import Checkpoint
from clinker_spark.streaming.letters import BatchLetters
from clinker_spark.streaming.run import StreamOptions, StreamRun, run_stream
from clinker_spark.streaming.watch.hot_keys import Waiting
from clinker_spark.streaming.watch.progress import StreamReport

PIPELINE = """\
pipeline: {{ name: paid }}
stream: {{ max_files: 1, partitions: 1, hot_key: 3 }}
error_handling: {{ strategy: {strategy} }}
nodes:
  - type: source
    name: orders
    config: {{ type: json, glob: orders/*.jsonl, options: {{ format: ndjson }}, watermark: {{ column: at, delay: 10s }},
              schema: {{ id: nullable(string), at: date_time, amount: int }} }}
  - {{ type: transform, name: share, input: orders, config: {{ cxl: "emit part = 100 / amount" }} }}
  - type: source
    name: payments
    config: {{ type: {kind}, glob: "payments/*.{kind}", watermark: {{ column: at, delay: 10s }},
              schema: {{ id: nullable(string), at: date_time, paid: int }} }}
  - type: stream_join
    name: paid
    input: {{ left: share, right: payments }}
    config: {{ left_keys: id, right_keys: id, time_window: 1m, kind: {join}{more} }}
  - {{ type: transform, name: rest, input: paid, config: {{ cxl: "emit rate = 10 / (right_paid ?? 1)" }} }}
  - type: output
    name: out
    input: rest
    config: {{ type: csv, path: out/, include_unmapped: false, mapping: [left_id, left_part, right_id, rate] }}
"""
further = pytest.mark.skipif(os.environ.get("CLINKER_CASES") != "all", reason="half a minute; CLINKER_CASES=all")
LETTERS = "continue, dlq: { path: dead.csv }"


class Stream:
    """A pipeline in a folder, run again and again."""

    def __init__(self, folder: Path, spark: SparkSession, join: str = "left", **settings: str) -> None:
        self.folder = folder
        self.spark = spark
        given = {"strategy": "fail_fast", "kind": "csv", "more": "", **settings}
        (folder / "p.yaml").write_text(PIPELINE.format(join=join, **given))

    def orders(self, name: str, *rows: tuple[str | None, str, int]) -> None:
        lines = [json.dumps({"id": i, "at": f"2026-01-01T{at}", "amount": amount}) + "\n" for i, at, amount in rows]
        self._write(f"orders/{name}.jsonl", "".join(lines))

    def payments(self, name: str, *rows: tuple[str, str, Any]) -> None:
        lines = ["id,at,paid\n", *(f"{i},2026-01-01T{at},{paid}\n" for i, at, paid in rows)]
        self._write(f"payments/{name}.csv", "".join(lines))

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, *, flush: bool = False, sides: bool = False) -> StreamReport:
        options = StreamOptions(once=True, flush=flush, sides=sides)
        return run_stream(prepare(self.folder / "p.yaml"), self.spark, options, lambda event, details: None)

    def out(self) -> Counter[tuple[str, ...]]:
        return Counter(tuple(row.values()) for row in read_csv(sorted((self.folder / "out").glob("*.csv"))))

    def letters(self) -> list[tuple[str, ...]]:
        names = ("source_name", "source_row", "stage", "error_category")
        rows = read_csv(sorted(self.folder.glob("dead-*.csv")))
        return [tuple(row[f"_cxl_dlq_{name}"] for name in names) for row in rows]


def read_csv(paths: Sequence[Path]) -> list[dict[str, str]]:
    found = []
    for path in paths:
        with open(path, newline="") as file:
            found += list(csv.DictReader(file))
    return found


def test_a_stream_goes_on_where_it_was(tmp_path: Path, started: SparkSession) -> None:
    stream = Stream(tmp_path, started)
    stream.orders("1", ("a", "10:00:00", 5), ("b", "10:00:01", 4), (None, "10:00:02", 2))
    report = stream.run()  # one side alone: nothing to join with, and nothing lost
    assert report.records == {"orders": 3, "payments": 0} and stream.out() == {}

    stream.payments("1", ("a", "10:01:00", 2), ("b", "10:01:01.001", 2), ("", "10:00:02", 2))
    stream.orders("0-late-name", ("c", "10:05:00", 10))  # a name before those that were read
    stream.payments("2", ("c", "10:05:30", 5))
    report = stream.run()
    assert report.records == {"orders": 1, "payments": 4}
    out = {("a", "20", "a", "5"): 1, ("c", "10", "c", "2"): 1, ("b", "25", "", "10"): 1, ("", "50", "", "10"): 1}
    assert stream.out() == out

    stream.orders("3", ("d", "10:05:31", 1))
    assert stream.run(flush=True).records == {"orders": 1, "payments": 0}
    assert stream.out() == {**out, ("d", "100", "", "10"): 1}
    stream.orders("4", ("e", "10:05:40", 1))  # the flush closed these windows
    report = stream.run(flush=True)
    assert report.late == 1 and [warning.code for warning in report.warnings] == ["W501"]
    assert stream.out() == {**out, ("d", "100", "", "10"): 1}
    assert not [path.name for path in (tmp_path / "out").iterdir() if path.is_dir()]


def test_what_fails_is_a_letter_wherever_it_fails(
    tmp_path: Path, started: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_observed", lambda *asked, **more: None)  # what is counted comes too late
    monkeypatch.setattr(Checkpoint, "positions", lambda *asked: pytest.fail("Spark has told it"))
    stream = Stream(tmp_path, started, strategy=LETTERS)
    stream.orders("1", ("a", "10:00:00", 5), ("b", "10:00:01", 0), ("c", "10:00:02", 1))
    stream.payments("1", ("a", "10:01:00", "0"), ("c", "10:00:02", "many"), ("c", "10:00:03", "2"))
    report = stream.run(flush=True)
    assert stream.out() == {("c", "100", "c", "5"): 1}
    assert sorted(stream.letters()) == [
        ("<merged>", "", "transform:rest", "type_coercion_failure"),
        ("orders", "2", "transform:share", "type_coercion_failure"),
        ("payments", "2", "source", "type_coercion_failure"),
    ]
    assert report.letters == 3 and len(report.letter_paths) == 2
    merged = next(row for row in read_csv(sorted(tmp_path.glob("dead-*-paid.csv"))))
    assert merged["left_id"] == "a" and merged["right_paid"] == "0"

    monkeypatch.undo()
    checkpoint = Checkpoint(tmp_path / "p.checkpoint")  # as if killed between a batch and its letters
    (checkpoint.folder / "paid" / "letters.json").unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("dead-*.csv")}
    (tmp_path / "dead-000000.csv").unlink()
    stream.run()
    after = {path.name: path.read_bytes() for path in tmp_path.glob("dead-*.csv")}
    assert set(after) == set(before) and len(stream.letters()) == 3

    (checkpoint.folder / "paid" / "letters.json").unlink()
    (checkpoint.spark_of("paid") / "offsets" / "0").unlink()  # Spark keeps the last ones
    with pytest.raises(ClinkerError) as caught:
        stream.run()
    assert [found.code for found in caught.value.diagnostics] == ["E512"]


TWO = """\
pipeline: { name: two }
stream: { max_files: 1, partitions: 1, checkpoint: state/ }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
nodes:
  - { type: source, name: s, config: { type: csv, glob: in/*.csv, schema: { n: int } } }
  - { type: transform, name: first, input: s, config: { cxl: "emit v = n + 1" } }
  - { type: output, name: one, input: first, config: { type: csv, path: one/ } }
  - { type: transform, name: second, input: s, config: { cxl: "emit v = 10 / n" } }
  - { type: output, name: two, input: second, config: { type: csv, path: two/ } }
  - { type: output, name: screen, input: second, config: { type: console, format: json } }
"""


def test_letters_are_written_whatever_comes_between(
    tmp_path: Path, started: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error behind the outputs of a batch and before its letters, and a batch that Spark does not tell of."""
    monkeypatch.setattr(sessions, "session", lambda *given, **settings: started)
    (tmp_path / "p.yaml").write_text(TWO)
    (tmp_path / "in").mkdir()

    def call(*rows: str) -> Result:
        for row in rows:
            (tmp_path / "in" / f"{len(list(tmp_path.glob('in/*')))}.csv").write_text(f"n\n{row}\n5\n")
        given = ["stream", str(tmp_path / "p.yaml"), "--once"]
        return CliRunner().invoke(clinker, given, standalone_mode=False)

    def dead() -> list[str]:
        return [row["_cxl_dlq_stage"] for row in read_csv(sorted(tmp_path.glob("dead-*.csv")))]

    with monkeypatch.context() as patch:
        patch.setattr(BatchLetters, "publish", _no_space)
        with pytest.raises(ClinkerError) as caught:
            raise call("0").exception or AssertionError
    assert [found.code for found in caught.value.diagnostics] == ["E405"]
    assert sorted(path.name for path in tmp_path.glob("*/*-0*.csv")) == ["one-000000.csv", "two-000000.csv"]
    assert dead() == []

    told = RunningQuery.progress
    monkeypatch.setattr(RunningQuery, "progress", lambda query: [t for t in told(query) if t["batchId"] != 1])
    result = call("many", "2")
    assert result.return_value == 2 and "2 dead letters" in result.stderr, result.output
    assert dead() == ["transform:second", "source"]
    for name, values in (("one", ["1", "6", "6", "3", "6"]), ("two", ["2", "2", "5", "2"])):
        assert [row["v"] for row in read_csv(sorted((tmp_path / name).glob("*.csv")))] == values
    assert list((tmp_path / "state" / "found").glob("*")) == []
    assert call().return_value == 0

    (tmp_path / "gone").symlink_to(tmp_path / "nowhere" / "state")
    with pytest.raises(ClinkerError) as caught:
        StreamRun(prepare(tmp_path / "p.yaml"), started, StreamOptions(checkpoint="gone"), lambda event, details: None)
    assert [found.code for found in caught.value.diagnostics] == ["E401"]


def test_no_output_shows_a_batch_that_fails_at_another(tmp_path: Path, started: SparkSession) -> None:
    text = TWO.replace("continue, dlq: { path: dead.csv }", "fail_fast")
    (tmp_path / "p.yaml").write_text(text)
    (tmp_path / "in").mkdir()
    for name, n in (("0", 1), ("1", 0)):
        (tmp_path / "in" / f"{name}.csv").write_text(f"n\n{n}\n")

    def stream() -> StreamReport:
        return run_stream(prepare(tmp_path / "p.yaml"), started, StreamOptions(once=True), lambda event, details: None)

    def seen() -> list[str]:
        return sorted(path.name for path in tmp_path.glob("*/*.csv") if path.parent.name != "in")

    with pytest.raises(ClinkerError) as caught:
        stream()
    assert [found.code for found in caught.value.diagnostics] == ["E409"]
    assert seen() == ["one-000000.csv", "two-000000.csv"]
    assert not [path.name for path in tmp_path.glob("*/.*") if path.is_dir()]
    (tmp_path / "in" / "1.csv").write_text("n\n2\n")  # corrected
    stream()
    assert seen() == ["one-000000.csv", "one-000001.csv", "two-000000.csv", "two-000001.csv"]


def _no_space(*given: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_fail_fast_writes_nothing_of_the_batch(tmp_path: Path, started: SparkSession) -> None:
    stream = Stream(tmp_path, started, join="inner", kind="parquet")
    stream.orders("1", ("a", "10:00:00", 5))
    stream.orders("2", ("b", "10:00:01", 0))
    times = pa.array(["2026-01-01T10:00:00", "2026-01-01T10:00:01"]).cast(pa.timestamp("us"))
    table = pa.table({"id": ["a", "b"], "at": times, "paid": pa.array([1, 1], pa.int64())})
    (tmp_path / "payments").mkdir()
    pq.write_table(table, tmp_path / "payments" / "1.parquet")
    for _ in range(2):
        with pytest.raises(ClinkerError) as caught:
            stream.run()
        (found,) = caught.value.diagnostics
        assert found.code == "E409" and "orders/2.jsonl, row 1" in found.message
        assert stream.out() == {("a", "20", "a", "10"): 1}
    stream.orders("2", ("b", "10:00:01", 4))  # corrected
    stream.run()
    assert stream.out() == {("a", "20", "a", "10"): 1, ("b", "25", "b", "10"): 1}


@pytest.mark.parametrize(
    ("more", "joined"),
    [
        pytest.param("", 0, marks=further),
        (", late_rule: window", 1),
        pytest.param(", late_data: reopen, allowed_lateness: 1m", 1, marks=further),
    ],
)
def test_late_rules(tmp_path: Path, started: SparkSession, more: str, joined: int) -> None:
    stream = Stream(tmp_path, started, join="inner", more=more)
    stream.orders("1", ("a", "10:00:00", 5), ("z", "10:00:50", 5))
    stream.payments("1", ("z", "10:00:50", 5))
    stream.run()
    stream.orders("2", ("y", "10:00:51", 5))
    stream.payments("2", ("a", "10:00:30", 1))  # behind 10:00:40, and within a minute of its order
    report = stream.run()
    assert report.late == 1 - joined
    assert ("a", "20", "a", "10") in stream.out() if joined else ("a", "20", "a", "10") not in stream.out()


def test_hot_keys_and_another_shape(tmp_path: Path, started: SparkSession) -> None:
    stream = Stream(tmp_path, started, join="inner")
    stream.orders("1", *[("a", f"10:00:{i:02}", 1) for i in range(5)])
    stream.payments("1", ("b", "10:00:00", 1))
    report = stream.run(sides=True)
    (warning,) = report.warnings
    assert warning.code == "W500" and "5 records with the key a wait on the left side of 'paid'" in warning.message
    waiting = [
        Waiting("paid", "paid", side, n, (((key,), n),)) for side, key, n in (("left", "a", 5), ("right", "b", 1))
    ]
    assert report.waiting == waiting
    assert [(side.node, side.rows) for side in report.batches[-1].state] == [("paid", 6)]
    shown = page(prepare(tmp_path / "p.yaml"), report)
    assert "What waits" in shown and "<td>a: 5</td>" in shown
    text = (tmp_path / "p.yaml").read_text()
    (tmp_path / "p.yaml").write_text(text.replace("amount: int }", "amount: int, x: int }").replace("1m", "2m"))
    with pytest.raises(ClinkerError) as caught:
        stream.run()
    assert [found.code for found in caught.value.diagnostics] == ["E505"]
    assert "window" in caught.value.diagnostics[0].message


THREE = """\
pipeline: { name: three }
stream: { partitions: 1 }
nodes:
  - { type: source, name: a, config: { type: csv, glob: a.csv, watermark: { column: at, delay: 1s },
      schema: { k: string, at: date_time, x: int } } }
  - { type: source, name: b, config: { type: csv, glob: b.csv, watermark: { column: at, delay: 1s },
      schema: { k: string, at: date_time, y: int } } }
  - { type: source, name: c, config: { type: csv, glob: c.csv, watermark: { column: at, delay: 1s },
      schema: { k: string, at: date_time, z: int } } }
  - { type: stream_join, name: ab, input: { left: a, right: b },
      config: { left_keys: k, right_keys: k, time_window: 5s, kind: left, left_prefix: "", right_columns: [y] } }
  - { type: stream_join, name: abc, input: { left: ab, right: c },
      config: { left_keys: k, right_keys: k, time_window: 5s, kind: left, left_prefix: "", right_columns: [z] } }
  - { type: output, name: out, input: abc, config: { type: csv, path: %s } }
"""


def test_joins_can_be_chained(tmp_path: Path, started: SparkSession) -> None:
    rows = {
        "a": ["k,at,x", "p,2026-01-01T10:00:00,1", "q,2026-01-01T10:00:10,2", "r,2026-01-01T10:00:20,3"],
        "b": ["k,at,y", "p,2026-01-01T10:00:05,10", "r,2026-01-01T10:00:21,30", "r,2026-01-01T10:00:22,31"],
        "c": ["k,at,z", "q,2026-01-01T10:00:14,200", "r,2026-01-01T10:00:25,300"],
    }
    for name, lines in rows.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    for place in ("finite.csv", "out/"):
        (tmp_path / "p.yaml").write_text(THREE % place)
        plan = prepare(tmp_path / "p.yaml")
        if place == "out/":
            run_stream(plan, started, StreamOptions(once=True, flush=True), lambda event, details: None)
        else:
            run(plan, started)
    found = [tuple(row.values()) for row in read_csv([tmp_path / "finite.csv"])]
    assert sorted((k, x, y, z) for k, _, x, y, z in found) == [
        ("p", "1", "10", ""),
        ("q", "2", "", "200"),
        ("r", "3", "30", "300"),
        ("r", "3", "31", "300"),
    ]
    assert Counter(tuple(row.values()) for row in read_csv(sorted((tmp_path / "out").glob("*.csv")))) == Counter(found)


@further
def test_a_silent_source_does_not_hold_back_the_others(tmp_path: Path, started: SparkSession) -> None:
    stream = Stream(tmp_path, started)
    path = tmp_path / "p.yaml"
    before, payments, after = path.read_text().partition("payments/")
    path.write_text(before + payments + after.replace("delay: 10s", "delay: 10s, idle_timeout: 1s", 1))
    stream.payments("1", ("a", "10:00:00", 2))
    stream.orders("1", ("a", "10:00:00", 5), ("b", "10:00:01", 4))
    stream.orders("2", ("c", "10:30:00", 4))
    running = start_stream(path, started)
    until = time.monotonic() + 120
    while ("b", "25", "", "10") not in stream.out() and time.monotonic() < until:
        time.sleep(0.2)
    assert len(running.queries) == 1 and running.queries[0].isActive
    report = running.stop()
    assert report.interrupted and not running.queries[0].isActive
    assert stream.out() == {("a", "20", "a", "5"): 1, ("b", "25", "", "10"): 1}


@further
def test_a_process_that_does_not_come_up_is_started_again(
    tmp_path: Path, started: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark waits ten seconds for a process of Python, which is little on a machine that is busy."""
    python = tmp_path / "python"
    hangs = f'*python_streaming_source_runner*) if mkdir "{tmp_path}/once" 2>/dev/null; then exec sleep 30; fi ;;'
    python.write_text(f'#!/bin/sh\ncase "$*" in {hangs} esac\nexec "{started.sparkContext.pythonExec}" "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(started.sparkContext, "pythonExec", str(python))
    stream = Stream(tmp_path, started, join="inner")
    stream.orders("1", ("a", "10:00:00", 5))
    stream.payments("1", ("a", "10:00:00", 1))
    report = stream.run()
    assert (tmp_path / "once").exists()
    assert report.records == {"orders": 1, "payments": 1}
    assert stream.out() == {("a", "20", "a", "10"): 1}
