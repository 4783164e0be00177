"""A batch of records in a topic, exactly once.

All messages of a batch are one transaction of one producer, which also commits the number of the batch: as the offset
of a consumer group of the stream's own. So messages and number are there together or not at all. The producer's name is
that of the output: when a new one begins, the cluster aborts what an older one left open, and lets it write no more;
only then is the number read that decides whether the batch is written already.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from clinker_spark.spark.arrow_batches import over_batches
from clinker_spark.spark.connectors.failures import carried, failure, package
from clinker_spark.spark.connectors.kafka.client import PATIENCE, Cluster, explained, patiently

BATCH_HEADER = "clinker-batch"
KEY, VALUE, HEADERS = "key", "value", "headers"
_PRODUCING = {
    "linger.ms": 20,
    "compression.type": "lz4",
    # A batch may take as long as brokers allow by default; one whose writer is gone is aborted after this time, or as
    # soon as the stream is started again.
    "transaction.timeout.ms": 900_000,
    "queue.buffering.max.kbytes": 262_144,
}
_COMMITTING = 120.0
_RECENT = 300


@dataclass(frozen=True)
class TopicSink:
    """What one output of one stream does with its topic. It goes to tasks."""

    cluster: Cluster
    topic: str
    stream: str
    output: str
    write_forgotten: bool = False
    any_order: bool = False
    """Batches may come in another order than that of their numbers, somewhat: the last of them are known by number."""

    @property
    def name(self) -> str:
        """Of the producer and of the group that holds the number of the last batch."""
        return f"clinker-{self.stream}-{self.output}"

    def prepare(self) -> None:
        """Before the first batch: is the topic there?"""
        self.cluster.partitions(self.topic)

    def write(self, batch: DataFrame, number: int) -> None:
        """The records of a batch: columns value, and key and headers where the output has them."""
        # One task, behind a shuffle: the records are computed by all of them, and a transaction has one producer.
        try:
            done = over_batches(batch.repartition(1), _sender(self, number), "rows BIGINT").collect()
        except Exception as error:
            raise carried(error) from error
        if not done:  # Spark runs no task where it knows that there are no records
            self.send(iter(()), number)

    def send(self, batches: Iterator[pa.RecordBatch], number: int) -> int:
        """The transaction. Gives how many messages were sent; none when they are there already. A batch without records
        is noted too, so that a cluster which knows of no batch has forgotten them."""
        doing = f"writing batch {number} to topic '{self.topic}'"
        producer = self.cluster.producer(**_PRODUCING, **{"transactional.id": self.name})
        try:
            producer.init_transactions(_COMMITTING)
            last, recent = self._last(number)
            if number in recent if self.any_order else last >= number:
                return 0
            producer.begin_transaction()
            sent = sum(self._produce(producer, batch, number) for batch in batches)
            # Outside of a poll the consumer is no member of its group: the offset is that of nobody's reading.
            reader = self.cluster.consumer(**{"group.id": self.name})
            kafka = package("confluent_kafka", "kafka")
            recent = [*recent, number][-_RECENT:] if self.any_order else []
            mark = kafka.TopicPartition(self.topic, 0, max(last, number) + 1, " ".join(map(str, recent)))
            producer.send_offsets_to_transaction([mark], reader.consumer_group_metadata(), _COMMITTING)
            producer.commit_transaction(_COMMITTING)
            reader.close()
            return sent
        except Exception as error:
            with contextlib.suppress(Exception):  # the next producer of this name does it otherwise
                producer.abort_transaction(PATIENCE)
            raise explained(error, doing, self.cluster.brokers) from None

    def _last(self, number: int) -> tuple[int, list[int]]:
        """The number of the last batch that is in the topic, -1 for none; and those of some before it."""
        kafka = package("confluent_kafka", "kafka")
        reader = self.cluster.consumer(**{"group.id": self.name})
        try:
            place = kafka.TopicPartition(self.topic, 0)
            [found] = patiently(lambda: reader.committed([place], timeout=PATIENCE))
        except Exception as error:
            raise explained(error, "asking for the last batch", self.cluster.brokers) from None
        finally:
            reader.close()
        if found.error is not None:
            raise explained(kafka.KafkaException(found.error), "asking for the last batch", self.cluster.brokers)
        if found.offset >= 0:
            return int(found.offset) - 1, [int(word) for word in (found.metadata or "").split()]
        if number > 0 and not self.write_forgotten:
            message = f"the cluster does not know which batches of '{self.output}' it has; {number} is not the first"
            help_text = f"if the topic '{self.topic}' does not have that batch, write on_forgotten: write for one start"
            raise failure("E526", message, help_text)
        return -1, []

    def _produce(self, producer: Any, batch: pa.RecordBatch, number: int) -> int:
        names = batch.schema.names
        values = batch.column(names.index(VALUE)).to_pylist()
        keys = batch.column(names.index(KEY)).to_pylist() if KEY in names else [None] * len(values)
        headers = batch.column(names.index(HEADERS)).to_pylist() if HEADERS in names else [None] * len(values)
        mark = (BATCH_HEADER, str(number).encode())
        plain = [mark]
        topic, produce = self.topic, producer.produce
        for value, key, header in zip(values, keys, headers, strict=True):
            given = plain if not header else [*((name, text) for name, text in header if text is not None), mark]
            while True:
                try:
                    produce(topic, value, key, headers=given, on_delivery=_delivered)
                    break
                except BufferError:  # its queue is full
                    producer.poll(0.1)
        producer.poll(0)
        return len(values)


def _delivered(error: Any, _: Any) -> None:
    """A message that cannot be delivered fails the transaction, which says so."""


def _sender(sink: TopicSink, number: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"rows": pa.array([sink.send(batches, number)], pa.int64())})

    return send
