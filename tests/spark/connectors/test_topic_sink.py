"""Batches in a topic of a real broker: once, whatever happens in between."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.core.errors import InputError
from clinker_spark.spark.connectors.kafka import client
from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.sink import TopicSink
from tests.support.services import Kafka

_NAMES = (f"sink-{os.getpid()}-{i}" for i in itertools.count())
"""The broker is shared with other processes."""


def _sink(kafka: Kafka, topic: str | None = None, stream: str = "s1", **more: Any) -> TopicSink:
    return TopicSink(Cluster(kafka.brokers), topic or kafka.create(next(_NAMES)), stream, "out", **more)


def _batches(*values: str) -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pydict({"value": [value]}) for value in values])


def _values(kafka: Kafka, sink: TopicSink, isolation: str = "read_committed") -> list[str]:
    return sorted(message.value().decode() for message in kafka.read(sink.topic, isolation))


def test_a_batch_that_comes_again_adds_nothing(kafka: Kafka) -> None:
    sink = _sink(kafka)
    assert sink.send(_batches("a", "b"), 0) == 2
    assert sink.send(_batches("b", "a"), 0) == 0
    assert sink.send(iter(()), 1) == 0
    assert sink.send(_batches("c"), 2) == 1
    assert _sink(kafka, sink.topic).send(_batches("c", "d"), 2) == 0  # another process with the same checkpoint
    assert _values(kafka, sink) == ["a", "b", "c"]


def test_messages_have_keys_headers_and_the_number_of_their_batch(kafka: Kafka) -> None:
    sink = _sink(kafka)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["v1", None]),
            pa.array(["k", None]),
            pa.array([[("trace", "7"), ("none", None)], None], pa.map_(pa.string(), pa.string())),
        ],
        ["value", "key", "headers"],
    )
    sink.send(iter([batch]), 0)
    found = sorted(((m.value(), m.key(), m.headers()) for m in kafka.read(sink.topic)), key=str)
    assert found == [
        (None, None, [("clinker-batch", b"0")]),
        (b"v1", b"k", [("trace", b"7"), ("clinker-batch", b"0")]),
    ]


_DYING = """
import os, signal, sys
import pyarrow as pa
from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.sink import TopicSink

brokers, topic, when = sys.argv[1:]
sink = TopicSink(Cluster(brokers), topic, "s1", "out")
die = lambda: os.kill(os.getpid(), signal.SIGKILL)

def batches():
    yield pa.RecordBatch.from_pydict({"value": ["a"]})
    if when == "sending":
        import time; time.sleep(0.5)  # the first one is on its way
        die()

kind = Cluster.producer
def producer(self, **settings):
    made = kind(self, **settings)
    class Dying:
        def __getattr__(self, name):
            return getattr(made, name)
        def commit_transaction(self, *given):
            if when == "before the commit":
                made.flush(); die()
            made.commit_transaction(*given)
            die()
    return Dying()
Cluster.producer = producer
sink.send(batches(), 0)
"""


@pytest.mark.parametrize("when", ["sending", "before the commit", "after the commit"])
def test_a_writer_that_is_killed_leaves_all_or_nothing(kafka: Kafka, when: str) -> None:
    sink = _sink(kafka)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_DYING), kafka.brokers, sink.topic, when],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == -9, done.stderr
    assert _values(kafka, sink, "read_uncommitted") == ["a"]  # it was there when it was killed
    sink.send(_batches("a"), 0)
    sink.send(_batches("b"), 1)
    assert _values(kafka, sink) == ["a", "b"]


def test_of_two_writers_the_older_one_stops(kafka: Kafka) -> None:
    sink = _sink(kafka)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from _batches("a")
        sink.send(_batches("a"), 0)  # a second process begins, and finishes
        yield from _batches("b")

    with pytest.raises(InputError) as error:
        sink.send(overtaken(), 0)
    assert error.value.diagnostics[0].code == "E527"
    assert _values(kafka, sink) == ["a"]


def test_a_cluster_that_has_forgotten_is_not_written_to(kafka: Kafka) -> None:
    sink = _sink(kafka)
    with pytest.raises(InputError) as error:
        sink.send(_batches("a"), 3)
    assert error.value.diagnostics[0].code == "E526"
    assert _sink(kafka, sink.topic, write_forgotten=True).send(_batches("a"), 3) == 1
    assert sink.send(_batches("a"), 3) == 0
    assert _values(kafka, sink) == ["a"]


def test_what_the_cluster_refuses_has_a_code(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "PATIENCE", 1.5)
    for cluster, topic, code, words in (
        (Cluster(kafka.brokers), "nowhere", "E524", "no such topic"),
        (Cluster("127.0.0.1:1"), "t", "E523", "127.0.0.1:1"),
        (Cluster(kafka.brokers, {"sasl.pasword": "swordfish"}), "t", "E521", "sasl.pasword"),
    ):
        with pytest.raises(InputError) as error:
            TopicSink(cluster, topic, "s", "o").prepare()
        assert error.value.diagnostics[0].code == code and words in str(error.value)
        assert "swordfish" not in str(error.value) + repr(cluster)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(InputError) as error:
        _sink(kafka, "t").prepare()
    assert (error.value.diagnostics[0].code, error.value.diagnostics[0].help) == (
        "E520",
        "pip install 'clinker-spark[kafka]'",
    )
