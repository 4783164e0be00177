"""How far a run is: the share of bytes over all passes never falls, and each pass has its name."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run import progress
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.runtime.run.progress import Passes, progress_folder
from clinker_spark.spark.scan import scans
from clinker_spark.spark.scan.meter import read_so_far
from clinker_spark.spark.scan.text.streams import open_binary

CONTENT = b"id,name\n" * 20_000
COMPRESSED = {
    "none": lambda data: data,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
}


@pytest.mark.parametrize("compression", COMPRESSED)
def test_bytes_are_counted_as_they_lie_on_the_disk(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "data"
    path.write_bytes(COMPRESSED[compression](CONTENT))
    before = read_so_far()
    with open_binary(str(path), compression) as file:
        while file.read(1000):
            pass
    assert read_so_far() - before == path.stat().st_size


def test_the_share_never_falls_and_ends_with_the_run() -> None:
    passes = Passes({"first": 1000, "second": 3000})
    told = []
    for name, size in (("first", 1000), ("unexpected", 6000), ("second", 3000), ("last", 50)):
        passes.begin(name, size)
        told += [passes.share(size * step // 4).percent for step in (0, 1, 4, 2)]
        passes.end()
    assert told == sorted(told)
    assert told[0] == 0 and told[-1] == 99


def test_sources_without_bytes_have_no_share() -> None:
    passes = Passes({"empty": 0})
    passes.begin("empty", 0)
    assert passes.share(0).percent == 0 and passes.share(0).seconds_left is None


PIPELINE = """
pipeline: { name: told }
nodes:
  - type: source
    name: orders
    config: { type: csv, path: orders.csv, correlation_key: customer, schema: { customer: string, amount: string } }
  - type: transform
    name: numbers
    input: orders
    config: { cxl: emit amount = amount.to_int() }
  - type: aggregate
    name: totals
    input: numbers
    config: { group_by: [customer], cxl: emit total = sum(amount) }
  - { type: output, name: lines, input: numbers, config: { type: csv, path: lines.csv } }
  - { type: output, name: report, input: totals, config: { type: csv, path: totals.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def test_a_run_with_failures_tells_its_passes(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_EVERY", 0.01)
    monkeypatch.setattr(scans, "_EVERY", 0.0)
    rows = "".join(f"c{i % 50},{'many' if i == 70 else i}\n" for i in range(2000))
    bench.file("orders.csv", "customer,amount\n" + rows)
    path = bench.file("p.yaml", PIPELINE)
    heard: list[dict[str, Any]] = []
    run(
        prepare(path),
        bench.spark,
        Options(),
        lambda event, details: heard.append(details) if event == "progress" else 0,
    )
    percents = [told["percent"] for told in heard]
    assert percents == sorted(percents) and percents[-1] <= 99
    assert [told["pass_number"] for told in heard] == sorted(told["pass_number"] for told in heard)
    assert all(told["bytes_read"] <= told["bytes_total"] for told in heard)
    names = list(dict.fromkeys(told["pass"] for told in heard))
    assert names[0] == "writing lines"
    assert "finding the failed records" in names and "writing report, without what is withheld" in names


def test_a_folder_in_which_somebody_still_writes_is_removed_without_a_word() -> None:
    """A reader of a cancelled job may write while the folder is removed: that was E401 in place of the real reason."""
    with progress_folder() as folder:
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                with contextlib.suppress(OSError):
                    Path(folder, f"s.{number}").write_text("1")

        writer = threading.Thread(target=write)
        writer.start()
        threading.Timer(0.1, stop.set).start()
    writer.join()
    assert not Path(folder).exists()


def test_nothing_is_said_of_the_time_left_once_all_is_read() -> None:
    passes = Passes({"one": 100}, clock=iter(range(9)).__next__)
    passes.begin("one", 100)
    assert passes.share(50).seconds_left == 1.0
    assert passes.share(98).seconds_left is not None
    assert passes.share(99).seconds_left is None  # readers need not look at the last bytes
    assert passes.share(100).seconds_left is None and passes.share(100).bytes_per_second == 0
