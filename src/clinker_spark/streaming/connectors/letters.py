"""Dead letters of a stream in a topic: each an object of JSON with the names and texts that a file would have."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from clinker_spark.plan.graph import Plan
from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.sink import VALUE, TopicSink
from clinker_spark.spark.rejects.letter_lines import LetterLines
from clinker_spark.streaming.connectors.places import of_letters, placed, resolved

if TYPE_CHECKING:
    import pyarrow as pa


def letter_topic(plan: Plan, stream: str, name: str) -> TopicSink | None:
    """Where letters go, if it is a topic. `name` tells those of one query and origin from others."""
    given = plan.file.error_handling.dlq.topic
    if given is None:
        return None
    client = resolved(of_letters(plan), "client", given.client)
    # Most batches have no letters, so that nothing is known about the last one for long: that is no reason to stop.
    cluster = Cluster(given.brokers, client)
    return TopicSink(cluster, given.topic, stream, f"letters-{name}", write_forgotten=True, any_order=True)


def check_letters(plan: Plan) -> None:
    """Before the stream starts: is the topic there? Raises `IoError`."""
    sink = letter_topic(plan, "", "")
    if sink is not None:
        with placed(of_letters(plan), "topic"):
            sink.prepare()


def send_letters(
    plan: Plan, sink: TopicSink, batch: int, lines: LetterLines, letters: Iterable[pa.RecordBatch]
) -> None:
    """The letters of a batch, once."""
    with placed(of_letters(plan), "topic"):
        sink.send(_messages(lines, letters), batch)


def _messages(lines: LetterLines, letters: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # a plan is checked without it

    names = next(csv.reader(io.StringIO(lines.header.decode(), newline="")))
    for rows in letters:
        text = "\n".join(lines.lines(rows).to_pylist())
        records = csv.reader(io.StringIO(text, newline=""))
        found = [{name: cell or None for name, cell in zip(names, cells, strict=True)} for cells in records]
        yield pa.RecordBatch.from_pydict({VALUE: [json.dumps(record, ensure_ascii=False) for record in found]})
