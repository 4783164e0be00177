"""A topic of Kafka to a table, to another topic, and to nothing but a count: messages per second.

Needs the servers of the tests (`scripts/ensure_kafka.sh`, `scripts/ensure_postgres.sh`). Reading is measured side by
side with the bare client, which reads the same messages in this process and looks at none of them.

    python benchmarks/bench_connectors.py [--messages 1000000]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.connectors.kafka.client import Cluster
from clinker_spark.spark.connectors.kafka.fetch import fetch
from clinker_spark.spark.connectors.kafka.positions import Topic
from clinker_spark.spark.connectors.kafka.source import ranges
from clinker_spark.spark.session.sessions import session
from clinker_spark.streaming.run import StreamOptions, run_stream
from tests.support.services import Kafka, Postgres

PIPELINE = """\
pipeline: {{ name: bench }}
nodes:
  - type: source
    name: events
    config: {{ type: kafka, brokers: "{brokers}", topic: events, max_messages: 10000000,
              schema: {{ id: int, at: date_time, name: string, amount: float }} }}
  - {{ type: output, name: out, input: events, config: {{ {output} }} }}
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=1_000_000)
    count = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as folder:
        kafka, postgres = Kafka(Path(folder)), Postgres(Path(folder))
        os.environ["BENCH_PASSWORD"] = postgres.password
        kafka.create("events", 2)
        kafka.create("copy", 2)
        _fill(kafka, count)
        topic = Topic(Cluster(kafka.brokers), "events")
        start = time.perf_counter()
        first = topic.position("earliest")
        wanted = ranges(topic, first, topic.latest(first, None))
        read = sum(len(found) for each in wanted for found in fetch(topic.cluster, "events", each, 4096))
        _say("the bare client", read, time.perf_counter() - start)
        spark = session("local[2]", app_name="bench", conf={"spark.sql.shuffle.partitions": "2"})
        outputs = {
            "to JSON lines": "type: json, path: out/, options: { format: ndjson }",
            "to a table": f'type: postgres, url: "{postgres.url}", password: {{ env: BENCH_PASSWORD }}, table: events',
            "to a topic": f'type: kafka, brokers: "{kafka.brokers}", topic: copy, key: id',
        }
        for number, (name, output) in enumerate(outputs.items()):
            own = Path(folder) / str(number)
            own.mkdir()
            (own / "p.yaml").write_text(PIPELINE.format(brokers=kafka.brokers, output=output))
            start = time.perf_counter()
            run_stream(prepare(own / "p.yaml"), spark, StreamOptions(once=True), lambda event, details: None)
            _say(name, count, time.perf_counter() - start)
        assert postgres.run("SELECT count(*), count(DISTINCT id) FROM events") == [(count, count)]
        spark.stop()
        kafka.leave()
        postgres.leave()


def _fill(kafka: Kafka, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.brokers, "log_level": 0, "linger.ms": 20})
    for i in range(count):
        second = f"{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}"
        value = json.dumps({"id": i, "at": f"2026-01-01T{second}", "name": f"name {i % 1000}", "amount": i / 8})
        while True:
            try:
                producer.produce("events", value.encode(), partition=i % 2)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0


def _say(name: str, count: int, seconds: float) -> None:
    print(f"{name:20} {count:>9,} messages in {seconds:6.1f} s  {count / seconds:>10,.0f}/s", flush=True)


if __name__ == "__main__":
    main()
