"""A dataset on a web server that is slow, fails, or stops in the middle."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.files import store
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.files.store import ArrowStore, HttpStore, Retries
from clinker_spark.dataset.selection import Query
from clinker_spark.runtime.dataset import writer
from tests.dataset.model import answer, recorded, rows_of
from tests.dataset.test_semantics import INDEXES, RECORDING

QUICK = Retries(attempts=5, first_pause=0.001, longest_pause=0.01, timeout=0.5)


class Server(ThreadingHTTPServer):
    """Serves a folder; `faults` says what happens to a request, by how often its file was asked for."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.asked: Counter[str] = Counter()
        self.ranges: list[str] = []
        self.fault = lambda path, nth: ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/dataset"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked[self.path] += 1
        fault = self.server.fault(self.path, self.server.asked[self.path])
        file = self.server.folder / self.path.lstrip("/")
        if not file.exists() or fault == "gone":
            return self.send_error(404)
        if fault == "error":
            return self.send_error(503)
        if fault == "refuse":
            return self.send_error(403)
        if fault == "slow":
            time.sleep(0.8)
        content, status = file.read_bytes(), 200
        if span := self.headers.get("Range"):
            self.server.ranges.append(span)
            if fault != "whole":
                first, last = span.removeprefix("bytes=").split("-")
                content, status = content[int(first) : int(last) + 1], 206
        if fault == "damage":
            content = bytes([content[0] ^ 1]) + content[1:]
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if fault == "truncate" else content)
        return None

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(writer, "CHUNK_ROWS", 1)
    recorded(tmp_path, RECORDING, INDEXES)
    monkeypatch.setattr(store, "open_store", lambda place: HttpStore(place, QUICK))
    monkeypatch.setattr("clinker_spark.dataset.files.manifest.open_store", lambda place: HttpStore(place, QUICK))
    found = Server(tmp_path)
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()


EXPECTED = answer(RECORDING, INDEXES, Query("frame", fill=True))


def test_chunks_that_lie_together_are_fetched_together(server: Server) -> None:
    assert rows_of(Dataset.open(server.address), Query("frame", fill=True)) == EXPECTED
    assert len(server.ranges) == 1, "11 chunks, one request"


@pytest.mark.parametrize("fault", ["error", "truncate", "damage", "slow", "whole"])
def test_a_fault_is_tried_again(server: Server, fault: str) -> None:
    server.fault = lambda path, nth: fault if nth == 1 and "pack" in path else ""
    assert rows_of(Dataset.open(server.address), Query("frame", fill=True)) == EXPECTED
    assert max(server.asked.values()) == (1 if fault == "whole" else 2)


def test_random_faults_make_no_difference(server: Server) -> None:
    chance = random.Random(3)
    server.fault = lambda path, nth: chance.choice(["", "", "error", "truncate"]) if nth < 5 else ""
    for _ in range(5):
        server.asked.clear()
        assert rows_of(Dataset.open(server.address), Query("frame", fill=True)) == EXPECTED


def test_a_server_that_does_not_recover_is_an_error(server: Server) -> None:
    server.fault = lambda path, nth: "error" if "pack" in path else ""
    with pytest.raises(DatasetError, match="after 5 tries: HTTP Error 503") as caught:
        rows_of(Dataset.open(server.address), Query("frame"))
    assert (caught.value.diagnostics[0].code, caught.value.exit_code) == ("E855", 4)


@pytest.mark.parametrize(("fault", "message"), [("refuse", "answers 403"), ("gone", "is not there")])
def test_a_refusal_is_not_tried_again(server: Server, fault: str, message: str) -> None:
    server.fault = lambda path, nth: fault if "pack" in path else ""
    with pytest.raises(DatasetError, match=message):
        rows_of(Dataset.open(server.address), Query("frame"))
    assert max(server.asked.values()) == 1


def test_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("clinker_spark.dataset.files.store.time.sleep", pauses.append)

    def broken() -> bytes:
        raise TimeoutError("timed out")

    with pytest.raises(DatasetError, match="timed out"):
        Retries(attempts=6, first_pause=1.0, longest_pause=6.0).run("x", broken)
    assert len(pauses) == 5
    assert all(limit / 2 <= pause <= limit for pause, limit in zip(pauses, (1, 2, 4, 6, 6), strict=True))


def test_no_dataset_at_an_address(server: Server) -> None:
    with pytest.raises(DatasetError, match="is no dataset"):
        Dataset.open(server.address + "/packs")


def test_file_systems_of_arrow(tmp_path: Path) -> None:
    recorded(tmp_path, RECORDING, INDEXES)
    found = Dataset.open(str(tmp_path / "dataset"))
    remote = Dataset(ArrowStore(f"file://{tmp_path}/dataset", QUICK), found.catalogue)
    assert rows_of(remote, Query("frame", fill=True)) == EXPECTED
