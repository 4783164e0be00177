"""A real PostgreSQL server and a real Kafka broker, on loopback, private to one test process.

Nothing starts before a test asks; what cannot be had skips the test, with the reason. The servers end with the process
that started them, however that ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0
_LIBC = ctypes.CDLL(None)


def _end_with_parent() -> None:
    _LIBC.prctl(1, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _installed(script: str) -> Path:
    """What a script of the project finds or installs. Skips the test where that is not possible."""
    done = subprocess.run([str(ROOT / "scripts" / script)], capture_output=True, text=True, timeout=900)
    if done.returncode:
        pytest.skip(done.stderr.strip() or f"{script} failed")
    return Path(done.stdout.strip().splitlines()[-1])


class _Server:
    """A process that answers after a while."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def _begin(self, command: list[str], ready: Callable[[], Any], user: str | None = None) -> None:
        log = open(self.folder / "server.log", "ab")  # noqa: SIM115 - the server's
        self._process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=self.folder, user=user, preexec_fn=_end_with_parent
        )
        log.close()
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                ready()
                return
            except Exception as error:
                if self._process.poll() is not None or time.monotonic() > until:
                    text = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"the server did not start: {error}\n{text}") from error
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Away, as in a power cut. Its files stay."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres(_Server):
    """One database cluster. `dsn` is where clients connect."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="clinker-pg-", dir="/tmp")))
        self.programs = _installed("ensure_postgres.sh")
        self.port = _free_port()
        self.user: str | None = None
        if os.getuid() == 0:  # PostgreSQL does not run as root; its package has a user for it
            self.user = "postgres"
            shutil.chown(self.folder, self.user, pwd.getpwnam(self.user).pw_gid)
        settings = ["fsync=off", "max_connections=40", f"port={self.port}", "listen_addresses=127.0.0.1"]
        settings += [f"unix_socket_directories={self.folder}", "shared_buffers=32MB"]
        subprocess.run(
            [f"{self.programs}/initdb", "-D", f"{self.folder}/data", "-U", "tests", "-A", "trust", "-E", "UTF8"]
            + ["--no-sync", "--locale=C"],
            check=True,
            capture_output=True,
            user=self.user,
            cwd=self.folder,
        )
        with open(self.folder / "data" / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, _, value in (line.partition("=") for line in settings))
        self.start()

    @property
    def dsn(self) -> str:
        return f"postgresql://tests@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        self._begin([f"{self.programs}/postgres", "-D", f"{self.folder}/data"], lambda: self.run("SELECT 1"), self.user)

    def run(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True, connect_timeout=5) as connection:
            found = connection.execute(text, values or None)  # type: ignore[arg-type]
            return found.fetchall() if found.description is not None else []


class Kafka(_Server):
    """One KRaft node, broker and controller."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="clinker-kafka-")))
        self.home = _installed("ensure_kafka.sh")
        self.port, controller = _free_port(), _free_port()
        shutil.copytree(self.home / "template", self.folder / "logs")
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": self.folder / "logs",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "broker.session.timeout.ms": 1000,  # a broker that was killed is missed soon, and may come back
            "broker.heartbeat.interval.ms": 200,
            "auto.create.topics.enable": "false",
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.retention.check.interval.ms": 500,
            "log.initial.task.delay.ms": 100,
        }
        (self.folder / "server.properties").write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        self.start()

    @property
    def brokers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.brokers, "log_level": 0})

    def start(self) -> None:
        java = subprocess.run([ROOT / "scripts/ensure_java.sh"], capture_output=True, text=True, check=True).stdout
        quick = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        command = [f"{java.strip()}/bin/java", *quick, "-cp", f"{self.home}/jars/*", "kafka.Kafka", "server.properties"]
        admin = self.admin()
        self._begin(command, lambda: admin.list_topics(timeout=0.5))

    def create(self, topic: str, partitions: int = 2, **settings: str) -> str:
        from confluent_kafka.admin import NewTopic

        config = {name.replace("_", "."): value for name, value in settings.items()}
        admin = self.admin()  # lives until the answer is there
        for made in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
            made.result(30)
        return topic

    def send(self, topic: str, *values: bytes | None, partition: int | None = None, **extra: Any) -> None:
        """Messages, outside of any transaction. `partition` None: one after another over all."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.brokers, "log_level": 0, "linger.ms": 1})
        count = len(producer.list_topics(topic, timeout=10).topics[topic].partitions)
        for i, value in enumerate(values):
            producer.produce(topic, value, partition=i % count if partition is None else partition, **extra)
            producer.poll(0)
        assert producer.flush(30) == 0

    def read(self, topic: str, isolation: str = "read_committed") -> list[Any]:
        """All messages of a topic, partition by partition."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition

        settings = {"group.id": "reader", "enable.partition.eof": True, "isolation.level": isolation, "log_level": 0}
        settings |= {"enable.auto.commit": False, "auto.offset.reset": "error"}
        consumer = Consumer({"bootstrap.servers": self.brokers, **settings})
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        lows = [consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[0] for p in partitions]
        consumer.assign([TopicPartition(topic, p, low) for p, low in zip(partitions, lows, strict=True)])
        found, left = [], set(partitions)
        while left:
            for message in consumer.consume(10_000, 0.2):
                if message.error() is None:
                    found.append(message)
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise RuntimeError(message.error())
        consumer.close()
        return sorted(found, key=lambda m: (m.partition(), m.offset()))


_running: dict[type[_Server], _Server] = {}


def running(kind: type[Any]) -> Any:
    """The server of this process, started by the first test that asks."""
    if kind not in _running:
        _running[kind] = kind()
    return _running[kind]


def remove_all() -> None:
    while _running:
        _running.popitem()[1].remove()
