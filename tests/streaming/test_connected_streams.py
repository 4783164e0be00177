"""Streams from topics of a real broker to topics and tables of real servers; killed in between, nothing is lost or
written twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.plan.streams import queries
from clinker_spark.streaming.run import StreamOptions, run_stream
from tests.support.archived import archived
from tests.support.services import Kafka, Postgres

ALL = os.environ.get("CLINKER_CASES") == "all"
ROUNDS = int(os.environ.get("CLINKER_KILLS", "30"))
PASSWORD = "CLINKER_TESTS_PASSWORD"
PIPELINE = """\
pipeline: {{ name: paid }}
stream: {{ partitions: 1, trigger: 100ms }}
error_handling: {{ strategy: continue, dlq: {{ topic: {{ brokers: "{brokers}", topic: {topic}-dead }} }} }}
nodes:
  - type: source
    name: orders
    config: {{ type: kafka, brokers: "{brokers}", topic: {topic}-orders, watermark: {{ column: at, delay: 1h }},
              metadata: {{ offset: place }}, max_messages: {most},
              schema: {{ id: string, at: date_time, amount: int, place: int }} }}
  - type: source
    name: payments
    config: {{ type: kafka, brokers: "{brokers}", topic: {topic}-payments, format: csv, max_messages: {most},
              watermark: {{ column: at, delay: 1h }}, schema: {{ pid: string, id: string, at: date_time }} }}
  - type: stream_join
    name: paid
    input: {{ left: orders, right: payments }}
    config: {{ left_keys: [id], right_keys: [id], time_window: 1m }}
  - type: output
    name: table
    input: paid
    config: {{ type: postgres, url: "{url}", password: {{ env: {password} }}, table: {table},
              include_unmapped: false, mapping: [id: left_id, pid: right_pid, place: left_place] }}
  - type: output
    name: topic
    input: paid
    config: {{ type: kafka, brokers: "{brokers}", topic: {topic}-paid, key: id, include_unmapped: false,
              mapping: [id: left_id, pid: right_pid] }}
"""


class Shop:
    """Two topics that are joined into a table and a third topic."""

    def __init__(self, folder: Path, kafka: Kafka, postgres: Postgres, name: str, most: int = 1000) -> None:
        self.folder, self.kafka, self.postgres, self.name = folder, kafka, postgres, name
        for what in ("orders", "payments", "paid", "dead"):
            kafka.create(f"{name}-{what}", 2)
        given = {"brokers": kafka.brokers, "url": postgres.url, "password": PASSWORD, "table": name, "topic": name}
        (folder / "p.yaml").write_text(PIPELINE.format(most=most, **given))

    def order(self, *ids: int) -> None:
        self.kafka.send(f"{self.name}-orders", *[_order(i) for i in ids])

    def pay(self, *pairs: tuple[int, int]) -> None:
        lines = [f"{pid},{i},2026-01-01T00:00:{i % 60:02}".encode() for pid, i in pairs]
        self.kafka.send(f"{self.name}-payments", *lines)

    def run(self, spark: SparkSession) -> Any:
        plan = prepare(self.folder / "p.yaml")
        return run_stream(plan, spark, StreamOptions(once=True), lambda event, details: None)

    def table(self) -> Counter[tuple[int, int]]:
        return Counter((int(i), int(pid)) for i, pid in self.postgres.run(f'SELECT id, pid FROM "{self.name}"'))

    def topic(self) -> Counter[tuple[int, int]]:
        found = [json.loads(message.value()) for message in self.kafka.read(f"{self.name}-paid")]
        return Counter((int(record["id"]), int(record["pid"])) for record in found)


def _order(i: int) -> bytes:
    return json.dumps({"id": str(i), "at": f"2026-01-01T00:00:{i % 60:02}", "amount": i}).encode()


def test_from_topics_to_a_table_and_a_topic(
    tmp_path: Path, kafka: Kafka, postgres: Postgres, started: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, postgres.password)
    shop = Shop(tmp_path, kafka, postgres, "shop")
    shop.order(*range(10))
    shop.pay(*[(100 + i, i) for i in range(0, 10, 2)])
    kafka.send("shop-orders", b"{broken", partition=1)  # the sixth of its partition
    shop.run(started)
    expected = Counter({(i, 100 + i): 1 for i in range(0, 10, 2)})
    assert (shop.table(), shop.topic()) == (expected, expected)
    shop.pay((200, 1), (201, 2))  # their orders came in the first run
    shop.run(started)
    expected += Counter({(1, 200): 1, (2, 201): 1})
    assert (shop.table(), shop.topic()) == (expected, expected)
    messages = kafka.read("shop-paid")
    assert all(message.key() == json.loads(message.value())["id"].encode() for message in messages)
    [letter] = [json.loads(message.value()) for message in kafka.read("shop-dead")]
    assert (letter["_cxl_dlq_source_file"], letter["_cxl_dlq_source_row"]) == ("shop-orders/1", "5"), letter
    assert letter["_cxl_dlq_error_category"] == "structural_validation"
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert postgres.password.encode() not in kept
    from confluent_kafka import TopicPartition

    shop.order(11, 12)
    admin, gone = kafka.admin(), [TopicPartition("shop-orders", part, -1) for part in (0, 1)]
    for made in admin.delete_records(gone).values():
        made.result(30)
    with pytest.raises(ClinkerError) as error:
        shop.run(started)
    assert error.value.diagnostics[0].code == "E525"
    monkeypatch.delenv(PASSWORD)
    with pytest.raises(ClinkerError) as error:
        shop.run(started)
    assert error.value.diagnostics[0].code == "E522"


@pytest.mark.timeout(7200)
@pytest.mark.skipif(not ALL, reason="processes of their own for minutes; CLINKER_CASES=all")
def test_kills_lose_nothing_and_write_nothing_twice(tmp_path: Path, kafka: Kafka, postgres: Postgres) -> None:
    """kill -9 of all processes of a stream at random moments; each time one side comes first, and the other one when
    the stream is already started again."""
    choice = random.Random(16)
    shop = Shop(tmp_path, kafka, postgres, "kills", most=90)
    expected: Counter[tuple[int, int]] = Counter()
    todo: list[tuple[int, int]] = []
    # There is nothing to read yet. It leaves an archive of classes, which halves the start of those that are killed.
    assert _start(shop, once=True).wait(600) == 0, (tmp_path / "log").read_text()[-3000:]
    for number in range(ROUNDS):
        ids = range(number * 100, number * 100 + 100)
        pairs = [(1000 * i + n, i) for i in ids for n in range(choice.choice((0, 1, 1, 2)))]
        expected.update((i, pid) for pid, i in pairs)
        orders_first = number % 2 == 0
        todo += pairs
        if orders_first:
            shop.order(*ids)
        else:
            shop.pay(*todo)
            todo = []
        process = _start(shop, once=False)
        try:
            _until_a_batch_begins(shop.folder, process)
            if not orders_first:
                shop.order(*ids)
            elif choice.random() < 0.5:
                shop.pay(*todo)
                todo = []
            time.sleep(choice.uniform(0.0, 3.0))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    shop.pay(*todo)
    process = _start(shop, once=True)
    assert process.wait(1200) == 0, (tmp_path / "log").read_text()[-3000:]
    assert shop.table() == expected
    assert shop.topic() == expected


def _start(shop: Shop, *, once: bool) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "clinker_spark", "stream", str(shop.folder / "p.yaml"), "--master", "local[2]"]
    command += ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"]
    with open(shop.folder / "log", "ab") as log:
        return subprocess.Popen(
            [*command, *(["--once"] if once else [])],
            env={**os.environ, **archived(shop.folder), PASSWORD: shop.postgres.password},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _until_a_batch_begins(folder: Path, process: subprocess.Popen[bytes]) -> None:
    offsets = folder / "p.checkpoint" / "paid" / "spark" / "offsets"

    def begun() -> int:
        return max((int(path.name) for path in offsets.glob("[0-9]*")), default=-1)

    before, until = begun(), time.monotonic() + 600
    while begun() == before:
        assert process.poll() is None, (folder / "log").read_text()[-3000:]
        assert time.monotonic() < until, "the stream does not start"
        time.sleep(0.05)


def test_the_example(
    tmp_path: Path, kafka: Kafka, postgres: Postgres, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Path(__file__).parents[2] / "examples" / "61-orders-from-kafka" / "stream.yaml"
    [query] = queries(prepare(example))
    assert {source.name for source in query.sources} == {"orders", "payments"}
    if not ALL:
        return
    text = example.read_text().replace("localhost:9092", kafka.brokers)
    (tmp_path / "p.yaml").write_text(text.replace("postgresql://shop@localhost:5432/shop", postgres.url))
    for topic in ("orders", "payments", "dead-letters"):
        kafka.create(topic, 2)
    kafka.send("orders", b'{"order_id":"A-1","at":"2026-01-05T09:00:00","amount":120.0}', b"{")
    kafka.send("payments", b"P-7,A-1,2026-01-05T09:01:00,120.0", b"P-7,A-1,2026-01-05T09:01:00,120.0", b"x")
    monkeypatch.setenv("SHOP_PASSWORD", postgres.password)
    spark = request.getfixturevalue("started")
    run_stream(prepare(tmp_path / "p.yaml"), spark, StreamOptions(once=True), lambda event, details: None)
    assert postgres.run("SELECT payment, order_id, paid FROM payments_of_orders") == [("P-7", "A-1", 120.0)]
    assert len(kafka.read("dead-letters")) == 2
