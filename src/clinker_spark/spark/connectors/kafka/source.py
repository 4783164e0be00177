"""A topic as a stream, and once more from position to position."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.fetch import Range, cut, fetch
from clinker_spark.spark.connectors.kafka.messages import TOGETHER, Envelope, message_batches, message_plan
from clinker_spark.spark.connectors.kafka.positions import Position, Topic
from clinker_spark.spark.connectors.message_streams import open_messages, read_messages
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.scan.record_plan import RecordPlan
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.streaming.reader import SourceReader


@dataclass(frozen=True)
class Feed:
    """Everything that the reader of a topic must know. It goes to other processes, with secrets; never to a file."""

    source: str
    cluster: Cluster
    topic: str
    start: str | Mapping[str, int]
    first: str
    """A file that keeps where the stream began: Spark asks again when it repeats the first batch, and `latest` would be
    another place by then."""
    envelope: Envelope
    max_messages: int
    beats: str
    tasks: int


@dataclass
class MessagePartition(InputPartition):
    """A task: messages of one partition of the topic."""

    wanted: Range


class TopicReader(SourceReader):
    """Positions are those of `positions`: the next message of each partition."""

    def __init__(self, feed: Feed, plan: RecordPlan, schema: StructType) -> None:
        super().__init__(feed.source, feed.beats, to_arrow_schema(schema, timezone="UTC"))
        self.feed = feed
        self.plan = plan
        self.until: Position | None = None
        self._topic: Topic | None = None

    @property
    def topic(self) -> Topic:
        """Of the process that plans; tasks have none."""
        if self._topic is None:
            self._topic = Topic(self.feed.cluster, self.feed.topic)
        return self._topic

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_topic": None}

    def first(self) -> Position:
        found = first_position(self.feed)
        if found is None:
            found = self.topic.position(self.feed.start)
            keep_position(self.feed.first, found)
        return found

    def latest(self, start: Position) -> Position:
        return self.topic.latest(start, self.feed.max_messages, self.until)

    def drain(self) -> None:
        self.until = self.topic.position("latest")

    def parts(self, start: Position, end: Position) -> Sequence[InputPartition]:
        return [MessagePartition(part) for part in cut(ranges(self.topic, start, end), self.feed.tasks)]

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(part, MessagePartition)
        return message_batches(self.plan, fetch(self.feed.cluster, self.feed.topic, part.wanted, TOGETHER))


def first_position(feed: Feed) -> Position | None:
    """Where the stream began; None if it did not yet."""
    found: Position | None = kept_position(feed.first)
    return found


def kept_position(path: str) -> Any:
    """What was kept in a file; None if nothing was yet."""
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def keep_position(path: str, position: Any) -> None:
    """Durably, and whole or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as file:
        json.dump(position, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def ranges(topic: Topic, start: Position, end: Position) -> list[Range]:
    """What lies between two positions. A partition that the first does not know is read from its beginning."""
    new = [partition for partition in end["offsets"] if partition not in start["offsets"]]
    lows = topic.lows() if new else {}
    found = []
    for partition, last in end["offsets"].items():
        first = start["offsets"].get(partition, lows.get(int(partition), 0))
        if first < last:
            found.append(Range(int(partition), first, last))
    return found


def open_topic(spark: SparkSession, feed: Feed, request: ReadRequest) -> Scan:
    """The records of a topic as they come, `$beat` last."""
    plan = message_plan(request, feed.envelope)
    return open_messages(spark, "kafka", plan, lambda schema: TopicReader(feed, plan, schema))


def read_topic(
    spark: SparkSession, feed: Feed, request: ReadRequest, start: Position | None, end: Position
) -> tuple[Scan, tuple[SourceFile, ...]]:
    """The records between two positions once more, the first being None where the stream began. A partition counts as a
    file, and an offset as a row of it."""
    began = start or first_position(feed)
    assert began is not None
    wanted = ranges(Topic(feed.cluster, feed.topic), began, end)
    plan = message_plan(request, feed.envelope)
    partitions = sorted({each.partition for each in wanted})
    files = tuple(SourceFile(f"kafka:{feed.topic}/{number}", f"{feed.topic}/{number}") for number in partitions)
    places = {number: i for i, number in enumerate(partitions)}

    def read(i: int) -> Iterator[pa.RecordBatch]:
        fetched = fetch(feed.cluster, feed.topic, wanted[i], TOGETHER)
        return message_batches(plan, fetched, places[wanted[i].partition])

    return read_messages(spark, plan, len(wanted), read), files
