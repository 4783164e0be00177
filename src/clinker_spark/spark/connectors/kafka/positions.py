"""Positions in a topic: for each partition the next message to read, and which topic it was that was read.

`{"topic": id, "offsets": {"0": 120, "1": 98}}`. A topic that is deleted and made again under its name has another id:
the same numbers would mean other messages. Partitions that are added later are read from their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clinker_spark.spark.connectors.failures import failure, package
from clinker_spark.spark.connectors.kafka.client import PATIENCE, Cluster, explained, patiently

Position = dict[str, Any]


class Topic:
    """A topic as the driver sees it, batch by batch."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self._admin: Any = None

    def position(self, start: str | Mapping[str, int]) -> Position:
        """Where a stream begins: earliest, latest, or at given offsets (of the partitions that they name; the others
        from their beginning)."""
        lows, highs = self._bounds()
        if start == "latest":
            offsets = highs
        elif isinstance(start, str):
            offsets = lows
        else:
            offsets = {**lows, **{int(partition): offset for partition, offset in start.items()}}
            self._check_there(offsets, lows, highs)
        return {"topic": self._identity(), "offsets": _texts(offsets)}

    def latest(self, start: Position, limit: int | None, until: Position | None = None) -> Position:
        """How far a batch after `start` can read: committed messages only, and about `limit` of them."""
        self._check_same(start)
        lows, highs = self._bounds()
        if until is not None:
            last = {int(partition): offset for partition, offset in until["offsets"].items()}
            highs = {p: min(high, last[p]) for p, high in highs.items() if p in last}
        before = {p: start["offsets"].get(str(p), lows[p]) for p in highs}
        self._check_there(before, lows, highs, bounded=until is not None)
        after = {p: max(high, before[p]) for p, high in highs.items()}
        return {"topic": start["topic"], "offsets": _texts(_limited(before, after, limit))}

    def lows(self) -> dict[int, int]:
        """The oldest messages that are still there."""
        return self._bounds()[0]

    # ------------------------------------------------------------ what the broker knows

    def _client(self) -> Any:
        if self._admin is None:
            self._admin = self.cluster.admin()
        return self._admin

    def _ask(self, doing: str, question: Callable[[Any], Any]) -> Any:
        try:
            return patiently(lambda: question(self._client()))
        except Exception as error:
            raise explained(error, f"{doing} of topic '{self.name}'", self.cluster.brokers, self._admin) from None

    def _bounds(self) -> tuple[dict[int, int], dict[int, int]]:
        """The first message of each partition, and the one after the last that is committed."""
        kafka = package("confluent_kafka", "kafka")
        admin_module = package("confluent_kafka.admin", "kafka")
        topics = self._ask("asking for the partitions", lambda c: c.list_topics(self.name, timeout=PATIENCE)).topics
        found = topics[self.name]
        if found.error is not None:
            raise explained(kafka.KafkaException(found.error), f"reading topic '{self.name}'", self.cluster.brokers)
        places = [kafka.TopicPartition(self.name, p) for p in sorted(found.partitions)]
        specs = (admin_module.OffsetSpec.earliest(), admin_module.OffsetSpec.latest())
        answers = [self._offsets(kafka, dict.fromkeys(places, spec)) for spec in specs]
        return answers[0], answers[1]

    def _offsets(self, kafka: Any, asked: dict[Any, Any]) -> dict[int, int]:
        """By partition: the offset that is asked for."""
        doing = "asking for the offsets"
        level = kafka.IsolationLevel.READ_COMMITTED

        def ask(client: Any) -> dict[int, int]:
            futures = client.list_offsets(asked, isolation_level=level, request_timeout=PATIENCE)
            return {place.partition: future.result(PATIENCE).offset for place, future in futures.items()}

        found: dict[int, int] = self._ask(doing, ask)
        return found

    def _identity(self) -> str:
        kafka = package("confluent_kafka", "kafka")
        futures = self._ask(
            "asking for the identity",
            lambda c: c.describe_topics(kafka.TopicCollection([self.name]), request_timeout=PATIENCE),
        )
        described = self._ask("asking for the identity", lambda _: futures[self.name].result(PATIENCE))
        return str(described.topic_id)

    # ------------------------------------------------------------ what must not go unnoticed

    def _check_same(self, start: Position) -> None:
        found = self._identity()
        if found != start["topic"]:
            message = f"topic '{self.name}' was deleted and made again since the last batch: its offsets begin anew"
            raise failure("E525", message)

    def _check_there(
        self, offsets: Mapping[int, int], lows: Mapping[int, int], highs: Mapping[int, int], *, bounded: bool = False
    ) -> None:
        for partition, offset in offsets.items():
            where = f"partition {partition} of topic '{self.name}'"
            if partition not in lows:
                raise failure("E524", f"there is no {where}")
            if offset < lows[partition]:
                begins = lows[partition]
                message = f"{where} begins at offset {begins}; the {begins - offset} from {offset} on are gone"
                raise failure("E525", message)
            if offset > highs[partition] and not bounded:
                message = f"{where} ends at offset {highs[partition]}, and the stream has read up to {offset}"
                raise failure("E525", message)


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offsets[partition] for partition in sorted(offsets)}


def _limited(before: Mapping[int, int], after: Mapping[int, int], limit: int | None) -> dict[int, int]:
    """At most about `limit` messages, from each partition in proportion to what it has: none is left behind for ever.

    >>> _limited({0: 0, 1: 5}, {0: 90, 1: 15}, 10)
    {0: 9, 1: 6}
    >>> _limited({0: 0, 1: 5}, {0: 1, 1: 5}, 10), _limited({0: 0}, {0: 1000}, 1)
    ({0: 1, 1: 5}, {0: 1})
    """
    waiting = {p: after[p] - before[p] for p in after}
    total = sum(waiting.values())
    if limit is None or total <= limit:
        return dict(after)
    return {p: before[p] + min(waiting[p], -(-waiting[p] * limit // total)) for p in after}
