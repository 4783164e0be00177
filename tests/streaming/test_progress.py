"""What is remembered of batches: all of the last ones, fewer of those before, and the sums of all."""

from __future__ import annotations

from pathlib import Path

from clinker_spark.streaming.progress import KEPT, Batch, StreamReport


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
