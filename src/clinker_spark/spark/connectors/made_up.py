"""Records that are made up, so many in a second, as if they were messages of JSON: number, at, key and value.

A record follows from its number: a batch that is repeated has the same ones. Its time is that of the first one and as
many seconds as its number divided by the rate."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from clinker_spark.spark.connectors.kafka.messages import TOGETHER, Envelope, message_batches, message_plan
from clinker_spark.spark.connectors.kafka.source import keep_position, kept_position
from clinker_spark.spark.connectors.message_streams import open_messages, read_messages
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.scan.record_plan import RecordPlan
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.streaming.reader import SourceReader

_ENVELOPE = Envelope("json", {})
_BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
"""When the records begin of which there are only so many."""
_SPREAD = 2_654_435_761


@dataclass(frozen=True)
class Rate:
    """Everything that the reader must know; it goes to other processes."""

    source: str
    rows_per_second: int
    rows: int | None
    keys: int
    most: int
    first: str
    """A file that keeps when the stream began."""
    beats: str
    tasks: int

    def began(self) -> float:
        """When the first record was made, in seconds since 1970."""
        if self.rows is not None:
            return _BEGIN.timestamp()
        found = kept_position(self.first)
        if found is None:
            found = {"began": time.time()}
            keep_position(self.first, found)
        return float(found["began"])

    def there(self) -> int:
        """How many records there are now."""
        return self.rows if self.rows is not None else int((time.time() - self.began()) * self.rows_per_second)


@dataclass(frozen=True)
class Message:
    """A record as a message: only what a reader of messages asks for."""

    number: int
    text: str

    def value(self) -> bytes:
        return self.text.encode()

    def offset(self) -> int:
        return self.number


@dataclass
class Made(InputPartition):
    """A task: records `start` to `end`, the last one not included."""

    start: int
    end: int


def messages(rate: Rate, began: float, part: Made) -> Iterator[list[Message]]:
    """The records of a task, some at a time."""
    for first in range(part.start, part.end, TOGETHER):
        yield [_message(rate, began, number) for number in range(first, min(first + TOGETHER, part.end))]


def _message(rate: Rate, began: float, number: int) -> Message:
    at = dt.datetime.fromtimestamp(began + number / rate.rows_per_second, dt.UTC).replace(tzinfo=None)
    mixed = number * _SPREAD % 2**32
    record = {
        "number": number,
        "at": at.isoformat(timespec="milliseconds"),
        "key": f"k{mixed % rate.keys}",
        "value": mixed // rate.keys % 1000,
    }
    return Message(number, json.dumps(record))


class RateReader(SourceReader):
    """Positions are numbers of records."""

    def __init__(self, rate: Rate, plan: RecordPlan, schema: StructType) -> None:
        super().__init__(rate.source, rate.beats, to_arrow_schema(schema, timezone="UTC"))
        self.rate = rate
        self.plan = plan
        self.last: int | None = None
        self.began = rate.began()

    def first(self) -> int:
        return 0

    def latest(self, start: int) -> int:
        there = self.rate.there() if self.last is None else self.last
        return max(start, min(start + self.rate.most, there))

    def drain(self) -> None:
        self.last = self.rate.there()

    def parts(self, start: int, end: int) -> Sequence[InputPartition]:
        return cut(start, end, self.rate.tasks)

    def batches(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(part, Made)
        return message_batches(self.plan, messages(self.rate, self.began, part))


def cut(start: int, end: int, tasks: int) -> list[Made]:
    """In about as many parts as there are tasks."""
    size = max(TOGETHER, -(-(end - start) // tasks))
    return [Made(first, min(first + size, end)) for first in range(start, end, size)]


def open_made_up(spark: SparkSession, rate: Rate, request: ReadRequest) -> Scan:
    """The records as they come, `$beat` last."""
    plan = message_plan(request, _ENVELOPE)
    return open_messages(spark, "rate", plan, lambda schema: RateReader(rate, plan, schema))


def read_made_up(
    spark: SparkSession, rate: Rate, request: ReadRequest, start: int, end: int
) -> tuple[Scan, tuple[SourceFile, ...]]:
    """The records between two positions once more."""
    plan = message_plan(request, _ENVELOPE)
    parts, began = cut(start, end, rate.tasks), rate.began()

    def read(i: int) -> Iterator[pa.RecordBatch]:
        return message_batches(plan, messages(rate, began, parts[i]))

    return read_messages(spark, plan, len(parts), read), (SourceFile("rate", "rate"),)
