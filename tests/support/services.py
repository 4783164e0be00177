"""A real PostgreSQL server and a real Kafka broker, on loopback, one of each for all processes of a test run.

Nothing starts before a test asks; what cannot be had skips the test, with the reason. The servers end with the last
process that used them, however that ends (`keeper`).
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0
_INSTALLING = 900.0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _installed(script: str) -> Path:
    """What a script of the project finds or installs. Skips the test where that is not possible."""
    done = subprocess.run([str(ROOT / "scripts" / script)], capture_output=True, text=True, timeout=_INSTALLING)
    if done.returncode:
        pytest.skip(done.stderr.strip() or f"{script} failed")
    return Path(done.stdout.strip().splitlines()[-1])


class Service:
    """A server that runs for as long as this object lives, and others of its kind in other processes."""

    kind: ClassVar[str]

    def __init__(self, shared: Path) -> None:
        """`shared`: a folder that all processes of the test run know."""
        shared.mkdir(parents=True, exist_ok=True)
        mark = shared / f"{self.kind}.json"
        with open(shared / f"{self.kind}.lock", "w") as one_at_a_time:
            fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
            known = json.loads(mark.read_text()) if mark.exists() else {}
            if "skipped" in known:
                pytest.skip(known["skipped"])
            if not (known and self._joins(Path(known["folder"]))):
                try:
                    # Not below the folders of pytest: PostgreSQL runs as another user.
                    self.folder = Path(tempfile.mkdtemp(prefix=f"clinker-{self.kind}-", dir="/tmp"))
                    (self.folder / "data").mkdir()
                    known = {"folder": str(self.folder), **self._prepare()}
                except pytest.skip.Exception as skipped:
                    shutil.rmtree(self.folder)
                    mark.write_text(json.dumps({"skipped": str(skipped)}))
                    raise
                self._begin(known)
                mark.write_text(json.dumps(known))
        self.port = int(known["port"])

    def _joins(self, folder: Path) -> bool:
        """Takes part in the lease of a server that runs."""
        try:
            lease = open(folder / "lease", "r+")  # noqa: SIM115 - the lock lives as long as the object
        except FileNotFoundError:
            return False
        fcntl.flock(lease, fcntl.LOCK_SH)  # waits for a keeper that is ending its server
        if not (folder / "ready").exists():
            lease.close()
            return False
        self.folder, self._lease = folder, lease
        return True

    def _begin(self, known: dict[str, Any]) -> None:
        self.port = int(known["port"])
        (self.folder / "ready").touch()
        (self.folder / "lease").touch()
        assert self._joins(self.folder)
        keeper = [sys.executable, str(Path(__file__).with_name("keeper.py")), str(self.folder), known["user"] or ""]
        process = subprocess.Popen(
            [*keeper, *known["command"]], start_new_session=True, stdin=subprocess.DEVNULL, cwd=self.folder
        )
        ready = self._ready()
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                ready()
                return
            except Exception as error:
                if process.poll() is not None or not self._lives() or time.monotonic() > until:
                    text = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                    raise RuntimeError(f"the server did not start: {error}\n{text}") from error
                time.sleep(0.05)

    def _lives(self) -> bool:
        pid = self.folder / "pid"
        if not pid.exists() or not pid.read_text():
            return True  # not yet
        try:
            return "Z" not in Path(f"/proc/{pid.read_text()}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False

    def leave(self) -> None:
        """This process needs the server no more."""
        self._lease.close()

    def _prepare(self) -> dict[str, Any]:
        """Files in `folder`; the port, the user and the command of the server. May skip."""
        raise NotImplementedError

    def _ready(self) -> Callable[[], Any]:
        """Raises for as long as the server does not answer."""
        raise NotImplementedError


class Postgres(Service):
    """One database cluster. `dsn` is where clients connect."""

    kind = "postgres"

    def _prepare(self) -> dict[str, Any]:
        programs, port = _installed("ensure_postgres.sh"), _free_port()
        user = None
        if os.getuid() == 0:  # PostgreSQL does not run as root; its package has a user for it
            user = "postgres"
            for path in (self.folder, self.folder / "data"):
                shutil.chown(path, user, pwd.getpwnam(user).pw_gid)
        (self.folder / "password").write_text("open sesame\n")
        shutil.chown(self.folder / "password", user or os.getuid())
        more = ["-E", "UTF8", "--locale=C", "--no-sync", "--pwfile", f"{self.folder}/password"]
        subprocess.run(
            [f"{programs}/initdb", "-D", f"{self.folder}/data", "-U", "tests", "-A", "scram-sha-256", *more],
            check=True,
            capture_output=True,
            user=user,
            cwd=self.folder,
        )
        settings = {
            "fsync": "off",
            "max_connections": 60,
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "shared_buffers": "32MB",
        }
        with open(self.folder / "data" / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        return {"port": port, "user": user, "command": [f"{programs}/postgres", "-D", f"{self.folder}/data"]}

    def _ready(self) -> Callable[[], Any]:
        return lambda: self.run("SELECT 1")

    user = "tests"
    password = "open sesame"

    @property
    def url(self) -> str:
        """Without the password, which pipelines get from the environment."""
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/postgres"

    def connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.url, password=self.password, autocommit=True, connect_timeout=5)

    def run(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        with self.connect() as connection:
            found = connection.execute(text, values or None)
            return found.fetchall() if found.description is not None else []


class Kafka(Service):
    """One KRaft node, broker and controller. Clients of `secured` must say who they are."""

    kind = "kafka"
    user = "shop"
    password = "open sesame"

    def _prepare(self) -> dict[str, Any]:
        home = _installed("ensure_kafka.sh")
        port, controller, secured = _free_port(), _free_port(), _free_port()
        (self.folder / "secured").write_text(str(secured))
        shutil.copytree(home / "template", self.folder / "data", dirs_exist_ok=True)
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{secured},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain."
            f'PlainLoginModule required user_{self.user}="{self.password}";',
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.retention.check.interval.ms": 500,
            "log.initial.task.delay.ms": 100,
        }
        (self.folder / "server.properties").write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        java = subprocess.run([ROOT / "scripts/ensure_java.sh"], capture_output=True, text=True, check=True).stdout
        quick = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        command = [f"{java.strip()}/bin/java", *quick, "-cp", f"{home}/jars/*", "kafka.Kafka", "server.properties"]
        return {"port": port, "user": None, "command": command}

    def _ready(self) -> Callable[[], Any]:
        admin = self.admin()
        return lambda: admin.list_topics(timeout=0.5)

    @property
    def brokers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def secured(self) -> str:
        """The same broker, for `user` and `password` (SASL_PLAINTEXT, PLAIN)."""
        return f"127.0.0.1:{(self.folder / 'secured').read_text()}"

    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.brokers, "log_level": 0})

    def create(self, topic: str, partitions: int = 2, **settings: str) -> str:
        from confluent_kafka.admin import NewTopic

        config = {name.replace("_", "."): value for name, value in settings.items()}
        admin = self.admin()  # lives until the answer is there
        for made in admin.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
            made.result(30)
        return topic

    def delete(self, topic: str) -> None:
        admin = self.admin()
        for made in admin.delete_topics([topic]).values():
            made.result(30)

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
