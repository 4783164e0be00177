"""What is remembered of batches: all of the last ones, fewer of those before, and the sums of all."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.prepare import prepare
from clinker_spark.report.page.stream import page
from clinker_spark.runtime.errors import IoError
from clinker_spark.streaming.watch.progress import KEPT, Batch, StreamReport, positions, spooled


def test_positions_are_those_of_a_batch() -> None:
    """Sources that several joins read are told several times; as text or as what is in it."""
    one = {"startOffset": None, "endOffset": '{"source": "a", "at": {"0": 5}, "beat": null}'}
    two = {"startOffset": {"source": "b", "at": 1, "beat": 3}, "endOffset": {"source": "b", "at": 2, "beat": 3}}
    starts, ends = positions({"sources": [one, two, two, {"startOffset": None, "endOffset": None}]})
    assert starts == {"b": {"source": "b", "at": 1, "beat": 3}}
    assert {name: end["at"] for name, end in ends.items()} == {"a": {"0": 5}, "b": 2}


def test_a_stream_that_goes_on_for_long_remembers_no_more() -> None:
    report = StreamReport()
    count = 20 * KEPT
    for i in range(count):
        report.note(Batch(("one", "two")[i % 2], i // 2, "", 1, {"s": 2}, 1.0, None))
        report.note_letters(1, [Path(f"dead-{i}.csv")])
    assert (report.finished, report.records["s"], report.letters) == (count, 2 * count, count)
    assert len(report.batches) <= KEPT and len(report.letter_paths) == 100
    assert report.letter_paths[-1] == f"dead-{count - 1}.csv"
    for query in ("one", "two"):
        numbers = [batch.number for batch in report.batches if batch.query == query]
        assert numbers == sorted(numbers) and numbers[0] == 0
        assert numbers[-KEPT // 4 :] == list(range(count // 2 - KEPT // 4, count // 2))


PIPELINE = """\
pipeline: { name: p, metrics: { spool_dir: numbers } }
nodes:
  - { type: source, name: s, config: { type: csv, name: orders, path: s.csv, schema: { k: string } } }
  - { type: output, name: out, input: s, config: { type: csv, path: out/ } }
"""


def test_every_call_leaves_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    plan = prepare(tmp_path / "p.yaml")
    report = StreamReport(records=Counter({"s": 3}), letters=1)
    report.note(Batch("out", 0, "2026-01-01T10:00:00.000Z", 50, {"s": 2}, 40.0, None))
    with spooled(plan, "one", report):
        pass
    with pytest.raises(IoError), spooled(plan, "one", report):
        raise IoError([Diagnostic("E401", "no room")])
    records = [json.loads(path.read_text()) for path in (tmp_path / "numbers").iterdir()]
    found = {record["error"]: record for record in records}
    assert set(found) == {None, "E401: no room"} and len({record["execution_id"] for record in records}) == 2
    for record in records:
        assert record["stream"] == {"id": "one", "batches": 1, "late": 0, "waiting": {"out": 0}, "interrupted": False}
        assert record["per_source_record_counts"] == {"orders": 5} and record["records_dlq"] == 1
        assert record["records_ok"] is record["records_written"] is None


def test_numbers_that_cannot_be_kept_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "numbers").write_text("a file")
    report = StreamReport()
    with spooled(prepare(tmp_path / "p.yaml"), "one", report):
        pass
    assert [warning.code for warning in report.warnings] == ["W440"]


def test_a_page_draws_the_rate_of_each_source_and_the_watermark(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    report = StreamReport()
    marks = (None, "1970-01-01T00:00:00.000Z", "2026-01-05T09:00:00.000Z", "2026-01-05T10:00:00.000Z")
    for i, mark in enumerate(marks):
        report.note(Batch("q", i, f"2026-02-01T10:00:0{i}.000Z", 500, {"a": 10 * i, "b": 1}, 1.0, mark))
    shown = page(prepare(tmp_path / "p.yaml"), report)
    figures = dict(re.findall(r"<figure><figcaption>(.*?)</figcaption>(.*?)</figure>", shown))
    assert ">64.8<" in figures["records per second of a"]  # 60 and some room above
    assert {"records per second of a", "records per second of b"} < set(figures)
    watermark = figures["watermark, as it was before the batch"]
    assert ">01-05 10:04:48<" in watermark and ">01-05 09:32:24<" in watermark  # an hour from the bottom, and some room
    [points] = re.findall(r'points="(.*?)"', watermark)
    assert len(points.split()) == 2  # those that are known
