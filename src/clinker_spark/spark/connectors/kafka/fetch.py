"""The messages between two offsets of a partition, all of them or an error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clinker_spark.spark.connectors.failures import failure, package
from clinker_spark.spark.connectors.kafka.client import PATIENCE, Cluster, explained_code

_WAIT = 0.05
"""Marks of transactions count as messages here: waiting for as many as there are offsets could be in vain."""


@dataclass(frozen=True)
class Range:
    """Offsets `start` to `end`, the last one not included, of one partition."""

    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"Range({self.partition}, {self.start}, {self.end})"


def cut(ranges: list[Range], tasks: int, smallest: int = 50_000) -> list[Range]:
    """The ranges in about as many parts as there are tasks, none much smaller than `smallest`.

    >>> cut([Range(0, 0, 100_000), Range(1, 5, 9)], 4)
    [Range(0, 0, 50000), Range(0, 50000, 100000), Range(1, 5, 9)]
    """
    most = max(smallest, -(-sum(each.size for each in ranges) // max(tasks, 1)))
    found = []
    for each in ranges:
        parts = max(1, round(each.size / most))
        edges = [each.start + each.size * i // parts for i in range(parts + 1)]
        found += [Range(each.partition, edges[i], edges[i + 1]) for i in range(parts)]
    return found


def fetch(cluster: Cluster, topic: str, wanted: Range, together: int) -> Iterator[list[Any]]:
    """The committed messages of a range, some at a time.

    Offsets are no numbering of messages: the marks of transactions have some, and so have messages that were aborted or
    compacted away. The range is done when something behind it comes, or when the partition has no more; the latter is
    told by the client, which knows how far committed messages go.
    """
    kafka = package("confluent_kafka", "kafka")
    consumer = cluster.consumer()
    doing = f"reading partition {wanted.partition} of topic '{topic}' from offset {wanted.start}"
    try:
        consumer.assign([kafka.TopicPartition(topic, wanted.partition, wanted.start)])
        heard = time.monotonic()
        at, done = wanted.start, wanted.size <= 0
        while not done:
            found = []
            for message in consumer.consume(min(together, wanted.end - at), _WAIT):
                error = message.error()
                if error is None:
                    if message.offset() >= wanted.end:
                        done = True
                        break
                    found.append(message)
                elif error.code() == kafka.KafkaError._PARTITION_EOF:
                    done = done or message.offset() >= wanted.end
                elif error.code() not in _PASSING and (error.fatal() or not error.retriable()):
                    raise explained_code(error, doing, cluster.brokers)
            if found:
                at = found[-1].offset() + 1
                done = done or at >= wanted.end
                yield found
                heard = time.monotonic()  # whoever takes the messages may do so slowly
            elif not done and time.monotonic() - heard > PATIENCE:
                raise failure("E523", f"{doing} failed: {cluster.brokers} sent nothing for {PATIENCE:.0f} seconds")
    finally:
        consumer.close()


_PASSING: frozenset[int] = frozenset({-195, -187})
"""Errors after which the client tries again by itself: a broken connection, no broker that answers."""
