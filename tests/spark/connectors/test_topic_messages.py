"""Positions in topics of a real broker, the messages between them, and the records that these are."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import time
from typing import Any

import pytest

from clinker_spark.config.model.schema import Column
from clinker_spark.core.errors import InputError
from clinker_spark.spark.connectors.kafka import client
from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.fetch import Range, fetch
from clinker_spark.spark.connectors.kafka.messages import Envelope, message_batches, message_plan
from clinker_spark.spark.connectors.kafka.positions import Topic
from clinker_spark.spark.connectors.kafka.source import ranges
from clinker_spark.spark.scan.request import Conventions, ReadRequest
from tests.support.services import Kafka

_NAMES = (f"read-{os.getpid()}-{i}" for i in itertools.count())
"""The broker is shared with other processes."""


def _topic(kafka: Kafka, partitions: int = 1, **settings: str) -> Topic:
    return Topic(Cluster(kafka.brokers), kafka.create(next(_NAMES), partitions, **settings))


def _between(topic: Topic, start: Any, end: Any) -> list[bytes]:
    wanted = ranges(topic, start, end)
    return [m.value() for each in wanted for found in fetch(topic.cluster, topic.name, each, 100) for m in found]


def _code(error: pytest.ExceptionInfo[InputError]) -> str:
    return error.value.diagnostics[0].code


def test_messages_between_positions_are_all_read_once(kafka: Kafka) -> None:
    topic = _topic(kafka, 2)
    at = topic.position("earliest")
    assert topic.latest(at, None) == at
    sent, seen = [], []
    for size in (1, 250, 0, 3):
        values = [f"{len(sent) + i}".encode() for i in range(size)]
        sent += values
        kafka.send(topic.name, *values)
        until = topic.latest(at, 100)
        while until != at:
            found = _between(topic, at, until)
            assert 0 < len(found) <= 101
            assert sorted(_between(topic, at, until)) == sorted(found)  # a batch that is repeated has the same
            seen += found
            at, until = until, topic.latest(until, 100)
    assert sorted(seen) == sorted(sent)


def test_only_committed_messages_are_read(kafka: Kafka) -> None:
    from confluent_kafka import Producer

    topic = _topic(kafka)
    start = topic.position("earliest")
    kafka.send(topic.name, b"plain")
    producer = Producer({"bootstrap.servers": kafka.brokers, "transactional.id": topic.name, "log_level": 0})
    producer.init_transactions(30)
    for value, commits in ((b"one", True), (b"aborted", False), (b"two", True)):
        producer.begin_transaction()
        producer.produce(topic.name, value)
        producer.flush(10)
        # What is open is not there yet, nor is anything behind it.
        assert value not in _between(topic, start, topic.latest(start, None))
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
    end = topic.latest(start, None)
    assert end["offsets"] == {"0": 7}  # four messages, three marks
    assert _between(topic, start, end) == [b"plain", b"one", b"two"]
    # Ranges that end in marks, or consist of them, end too.
    assert [[m.value() for part in fetch(topic.cluster, topic.name, Range(0, *edges), 10) for m in part]
            for edges in ((1, 3), (2, 3), (3, 5), (6, 7))] == [[b"one"], [], [], []]  # fmt: skip


def test_partitions_that_are_added_are_read_from_their_beginning(kafka: Kafka) -> None:
    from confluent_kafka.admin import NewPartitions

    topic = _topic(kafka)
    kafka.send(topic.name, b"a")
    at = topic.latest(topic.position("earliest"), None)
    admin = kafka.admin()
    for made in admin.create_partitions([NewPartitions(topic.name, 3)]).values():
        made.result(30)
    for _ in range(100):
        if len(topic.lows()) == 3:
            break
        time.sleep(0.1)
    kafka.send(topic.name, b"b", partition=2)
    after = topic.latest(at, None)
    assert after["offsets"] == {"0": 1, "1": 0, "2": 1}
    assert _between(topic, at, after) == [b"b"]


def test_a_client_says_who_it_is(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    name, settings = kafka.create(next(_NAMES), 1), {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    settings |= {"sasl.username": kafka.user, "sasl.password": kafka.password}
    topic = Topic(Cluster(kafka.secured, settings), name)
    start = topic.position("earliest")
    kafka.send(name, b"x")
    assert _between(topic, start, topic.latest(start, None)) == [b"x"]
    assert kafka.password not in repr(topic)
    monkeypatch.setattr(client, "PATIENCE", 3.0)
    with pytest.raises(InputError) as error:
        Topic(Cluster(kafka.secured, {**settings, "sasl.password": "sesam"}), name).lows()
    [found] = error.value.diagnostics
    assert found.code == "E523" and "uthentication failed" in found.message and "sasl.mechanism" in str(found.help)
    assert "sesam" not in found.message


def test_where_a_stream_starts(kafka: Kafka) -> None:
    topic = _topic(kafka, 2)
    kafka.send(topic.name, *[b"x"] * 10)
    assert topic.position("earliest")["offsets"] == {"0": 0, "1": 0}
    assert topic.position("latest")["offsets"] == {"0": 5, "1": 5}
    assert topic.position({"1": 3})["offsets"] == {"0": 0, "1": 3}
    for start, code in (({"7": 0}, "E524"), ({"0": 6}, "E525")):
        with pytest.raises(InputError) as error:
            topic.position(start)
        assert _code(error) == code


def test_messages_that_are_gone_are_an_error(kafka: Kafka) -> None:
    from confluent_kafka import TopicPartition

    topic = _topic(kafka)
    start = topic.position("earliest")
    kafka.send(topic.name, *[b"x"] * 10)
    end = topic.latest(start, 5)
    admin = kafka.admin()  # lives until the answer is there
    for made in admin.delete_records([TopicPartition(topic.name, 0, 7)]).values():
        made.result(30)
    for read in (lambda: topic.latest(end, None), lambda: _between(topic, start, end)):
        with pytest.raises(InputError) as error:
            read()
        assert _code(error) == "E525" and "gone" in str(error.value)
    kafka.delete(topic.name)
    for _ in range(50):
        try:
            kafka.create(topic.name, 1)
            break
        except Exception:
            time.sleep(0.1)
    for _ in range(50):
        with pytest.raises(InputError) as error:
            topic.latest(start, None)
        if _code(error) != "E524":  # not known everywhere yet
            break
        time.sleep(0.1)
    assert _code(error) == "E525" and "made again" in str(error.value)


# ---------------------------------------------------------------- records


def _records(
    kafka: Kafka, values: list[bytes | None], columns: dict[str, str], how: Envelope, **asked: bool
) -> list[dict[str, Any]]:
    topic = _topic(kafka)
    kafka.send(topic.name, *values, key=b"k", headers=[("h", b"1"), ("h", b"2")], timestamp=1_767_225_600_123)
    declared = tuple(Column(name=name, type=kind) for name, kind in columns.items())
    how_much = Conventions(on_unmapped="reject" if asked.pop("rejects", False) else "auto_widen")
    plan = message_plan(ReadRequest("s", (), declared, None, how_much, **asked), how)
    found = fetch(topic.cluster, topic.name, Range(0, 0, len(values)), 3)
    return [row for batch in message_batches(plan, found) for row in batch.to_pylist()]


def test_messages_of_json(kafka: Kafka) -> None:
    columns = {"id": "int", "at": "date_time", "note": "nullable(string)", "price": "decimal(2)"}
    good = {"id": 1, "at": "2026-01-01T00:00:00", "note": "é\n", "price": 1.25, "other": [1]}
    values = [json.dumps(good, indent=1).encode(), b"", b"{", b"[1]", None, b'{"id":"1"}', b"\xff", b'{"id":7,"x":']
    found = _records(kafka, values, columns, Envelope("json", {}))
    assert [row["id"] for row in found] == [1, None, None, None, None, None, None, 7]
    assert found[0]["note"] == "é\n" and str(found[0]["price"]) == "1.25" and found[0]["$error"] is None
    kinds = [row["$error"]["kind"] for row in found[1:]]
    assert kinds == ["structural_validation"] * 4 + ["type_coercion_failure"] + ["structural_validation"] * 2
    words = [row["$error"]["message"] if row["$error"] else "" for row in found]
    assert "the message is not JSON" in words[2] and words[4] == "the message has no value"
    assert "not UTF-8" in words[6]
    strict = _records(kafka, [b'{"id":1,"in":{"x":2}}', b'{"id":1}'], {"id": "int"}, Envelope("json", {}), rejects=True)
    assert [row["$error"] and row["$error"]["field"] for row in strict] == ["in.x", None]


def test_messages_of_csv_and_of_text(kafka: Kafka) -> None:
    how = Envelope("csv", {"o": "offset"}, delimiter=";")
    values = [b'1;"a;b"', b'2;"x\ny"\n', b"3", b"four;z", b'5;"open', b"6;a\n7;b", None, b"\xff;c"]
    found = _records(kafka, values, {"id": "int", "o": "int", "s": "string"}, how)
    assert [(row["id"], row["s"]) for row in found[:2]] == [(1, "a;b"), (2, "x\ny")]
    assert [row["o"] for row in found] == list(range(8))
    words = ["" if row["$error"] is None else row["$error"]["message"] for row in found]
    assert words[:2] == ["", ""]
    for message, part in zip(
        words[2:], ["has 1 value", "cannot convert", "not closed", "one line", "no value", "not UTF-8"], strict=True
    ):
        assert part in message
    texts = _records(kafka, [b"a,b", None, b"\xff"], {"text": "nullable(string)"}, Envelope("raw", {}))
    assert [row["text"] for row in texts] == ["a,b", None, None]
    assert [row["$error"] is None for row in texts] == [True, True, False]


def test_what_stands_around_a_message(kafka: Kafka) -> None:
    about = {"k": "key", "h": "headers", "t": "topic", "p": "partition", "o": "offset", "at": "timestamp"}
    types = {"k": "string", "h": "map(string)", "t": "string", "p": "int", "o": "int", "at": "date_time", "v": "string"}
    found = _records(kafka, [b"x", b"\xff"], types, Envelope("raw", about), positions=True, record=True)
    assert found[0].pop("t").startswith("read-")
    record = found[0].pop("$record")
    assert found[0] == {
        "k": "k",
        "h": [("h", "2")],
        "p": 0,
        "o": 0,
        "at": dt.datetime(2026, 1, 1, 0, 0, 0, 123000),
        "v": "x",
        "$error": None,
        "$file": 0,
        "$row": 0,
        "$line": "x",
    }
    assert (record["v"], record["o"], record["h"]) == ("x", "0", '{"h":"2"}')
    assert (found[1]["$row"], found[1]["$line"], found[1]["v"]) == (1, "\0/w==", None)
