"""How long somebody waits for messages: the time of whoever takes them does not count."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.spark.connectors.kafka import fetch as fetching
from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.fetch import Range, fetch

pytest.importorskip("confluent_kafka")


@dataclass
class Message:
    number: int

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self.number


@dataclass
class Answers:
    """What a broker gives, one poll after the other, and then nothing."""

    polls: list[list[Message]]

    def assign(self, partitions: list[Any]) -> None:
        pass

    def consume(self, most: int, seconds: float) -> list[Message]:
        if not self.polls:
            time.sleep(0.01)
        return self.polls.pop(0) if self.polls else []

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Slow(Cluster):
    polls: tuple[list[Message], ...] = field(default=())

    def consumer(self, **settings: Any) -> Answers:
        return Answers(list(self.polls))


def test_who_takes_messages_may_do_so_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PATIENCE", 0.05)
    cluster = Slow("b:1", polls=([Message(0)], [], [Message(1)]))
    found = []
    for messages in fetch(cluster, "t", Range(0, 0, 2), 10):
        found += [message.offset() for message in messages]
        time.sleep(0.06)
    assert found == [0, 1]


def test_a_broker_that_sends_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PATIENCE", 0.05)
    with pytest.raises(InputError) as caught:
        list(fetch(Slow("b:1", polls=([Message(0)],)), "t", Range(0, 0, 2), 10))
    assert caught.value.diagnostics[0].code == "E523"
