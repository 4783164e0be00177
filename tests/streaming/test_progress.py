"""What is remembered of batches: all of the last ones, fewer of those before, and the sums of all."""

from __future__ import annotations

from pathlib import Path

from clinker_spark.streaming.progress import KEPT, Batch, StreamReport, positions


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
