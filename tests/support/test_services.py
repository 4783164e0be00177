"""The servers for tests: started by the first who asks, shared, gone with the last."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.support.services import Kafka, Postgres


def test_a_table_keeps_what_was_written(postgres: Postgres) -> None:
    postgres.run("CREATE TABLE kept AS SELECT 7 AS n")
    assert postgres.run("SELECT n FROM kept") == [(7,)]


def test_a_topic_keeps_what_was_sent(kafka: Kafka) -> None:
    topic = kafka.create("kept", partitions=2)
    kafka.send(topic, b"a", b"b", None)
    assert [(m.partition(), m.value()) for m in kafka.read(topic)] == [(0, b"a"), (0, None), (1, b"b")]


def test_one_server_for_all_who_share_a_folder(tmp_path: Path) -> None:
    first = Postgres(tmp_path)
    second = Postgres(tmp_path)
    pid = int((first.folder / "pid").read_text())
    assert (second.port, second.folder) == (first.port, first.folder)
    first.leave()
    assert second.run("SELECT 1") == [(1,)]
    second.leave()
    until = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < until, "the server outlived its users"
        time.sleep(0.02)
    third = Postgres(tmp_path)
    assert third.folder != first.folder
    third.leave()


def test_what_cannot_be_had_skips_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import services

    script = tmp_path / "scripts" / "ensure_postgres.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho 'No PostgreSQL server: not here' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(services, "ROOT", tmp_path)
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="not here"):
            Postgres(tmp_path / "shared")
        script.unlink(missing_ok=True)  # the second time nobody looks again
