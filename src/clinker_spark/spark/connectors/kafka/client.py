"""Clients of a broker, and what they say when something is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from clinker_spark.core.errors import InputError
from clinker_spark.spark.connectors.failures import failure, package

Answer = TypeVar("Answer")
PATIENCE = 20.0
"""So many seconds may pass before a broker that does not answer counts as gone."""

_READING = {
    "group.id": "clinker",  # the client wants one; nothing is ever committed to it
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "allow.auto.create.topics": False,
    # Waiting for a full answer would delay the last messages of every batch.
    "fetch.wait.max.ms": 20,
}


@dataclass(frozen=True)
class Cluster:
    """Where brokers are, and how they are talked to. It goes to tasks, with secrets: nothing prints it."""

    brokers: str
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Settings of the client by its own names."""

    def consumer(self, **settings: Any) -> Any:
        kafka = package("confluent_kafka", "kafka")
        return self._made(kafka.Consumer, {**_READING, **settings})

    def producer(self, **settings: Any) -> Any:
        kafka = package("confluent_kafka", "kafka")
        return self._made(kafka.Producer, settings)

    def admin(self) -> Any:
        package("confluent_kafka", "kafka")
        return self._made(package("confluent_kafka.admin", "kafka").AdminClient, {})

    def _made(self, kind: Any, settings: Mapping[str, Any]) -> Any:
        quiet = {"bootstrap.servers": self.brokers, "log_level": 0, "error_cb": _noticing(self.brokers)}
        try:
            return kind({**quiet, **self.client, **settings})
        except Exception as error:
            raise refused(error) from None

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic, in order."""
        return partitions_of(self.admin(), self.brokers, topic)


_noticed: dict[str, str] = {}
"""By brokers: what stands between a client and them, as it noticed last."""


def _noticing(brokers: str) -> Callable[[Any], None]:
    """What the client notices by itself, such as a broker that is away for a moment, is no news; calls fail later. But
    they only say that nobody answered: that a password is wrong is said here."""

    def notice(error: Any) -> None:
        known = package("confluent_kafka", "kafka").KafkaError
        if error.code() in (known._AUTHENTICATION, known._SSL, known.SASL_AUTHENTICATION_FAILED):
            _noticed[brokers] = error.str()

    return notice


def partitions_of(client: Any, brokers: str, topic: str) -> list[int]:
    """The partitions that a client finds."""
    try:
        found = client.list_topics(topic, timeout=PATIENCE).topics[topic]
    except Exception as error:
        raise explained(error, f"asking for topic '{topic}'", brokers, client) from None
    if found.error is not None:
        raise explained_code(found.error, f"asking for topic '{topic}'", brokers)
    return sorted(found.partitions)


def patiently(question: Callable[[], Answer]) -> Answer:
    """The answer of a cluster that may be electing leaders or moving its coordinators: asked again for a while."""
    known = package("confluent_kafka", "kafka").KafkaError
    passing = {
        known.NOT_COORDINATOR,
        known.COORDINATOR_LOAD_IN_PROGRESS,
        known.COORDINATOR_NOT_AVAILABLE,
        known.NOT_LEADER_FOR_PARTITION,
        known.LEADER_NOT_AVAILABLE,
        known.REPLICA_NOT_AVAILABLE,
    }
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return question()
        except Exception as error:
            cause: Any = error.args[0] if error.args else None
            code = cause.code() if hasattr(cause, "code") else None
            if code not in passing or time.monotonic() > until:
                raise
            time.sleep(0.1)


def refused(error: Exception) -> InputError:
    """The client does not take its settings."""
    kafka_error = error.args[0] if error.args else error
    text = kafka_error.str() if hasattr(kafka_error, "str") else str(error)
    return failure("E521", f"the Kafka client does not take its settings: {text}")


def explained(error: Exception, doing: str, brokers: str, client: Any = None) -> InputError:
    """What a call of the client raised."""
    if isinstance(error, InputError):
        return error
    if client is not None:
        client.poll(0)  # it tells then what it noticed
    cause = error.args[0] if error.args else None
    if hasattr(cause, "code") and hasattr(cause, "str"):
        return explained_code(cause, doing, brokers)
    return failure("E523", f"{doing} failed: {error}")


def explained_code(error: Any, doing: str, brokers: str) -> InputError:
    """An error of the client in words."""
    known = package("confluent_kafka", "kafka").KafkaError
    code, text = error.code(), error.str()
    if code in (known.UNKNOWN_TOPIC_OR_PART, known._UNKNOWN_TOPIC, known._UNKNOWN_PARTITION):
        return failure("E524", f"{doing} failed: there is no such topic or partition on {brokers}")
    if code in (known.TOPIC_AUTHORIZATION_FAILED, known.GROUP_AUTHORIZATION_FAILED, known.CLUSTER_AUTHORIZATION_FAILED):
        return failure("E524", f"{doing} failed: {text}", "give the user of the client the rights for the topic")
    if code in (known.OFFSET_OUT_OF_RANGE, known._AUTO_OFFSET_RESET):
        return failure("E525", f"{doing} failed: the messages of the batch are gone: {text}")
    if code in (known._FENCED, known.PRODUCER_FENCED, known.INVALID_PRODUCER_EPOCH):
        return failure("E527", f"{doing} failed: another process writes for the same pipeline")
    if brokers in _noticed:
        text = f"{text}: {_noticed[brokers]}"
        help_text = "see 'client:' of the source or output: security.protocol, sasl.mechanism, user, password and keys"
        return failure("E523", f"{doing} failed on {brokers}: {text}", help_text)
    return failure("E523", f"{doing} failed on {brokers}: {text}")
