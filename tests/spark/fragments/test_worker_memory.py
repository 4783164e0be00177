"""What a worker holds follows from its split, and not from the file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from tests.support.shell import Shell

pytestmark = pytest.mark.skipif(os.environ.get("CLINKER_CASES") != "all", reason="reads 400 MB: CLINKER_CASES=all")

PIPELINE = """
pipeline: { name: p, engine: ENGINE }
nodes:
  - type: source
    name: s
    config: { type: csv, path: in.csv, schema: { id: int, city: string, qty: int, price: float, note: string } }
  - { type: transform, name: t, input: s, config: { cxl: "filter qty > 3\\nemit gross = price * 1.5" } }
"""
WRITTEN = """
  - { type: output, name: out, input: t, config: { type: csv, path: out.csv } }
"""
ADDED = """
  - type: aggregate
    name: a
    input: t
    config: { group_by: [city], cxl: "emit n = count(*)\\nemit total = sum(gross)" }
  - { type: output, name: out, input: a, config: { type: csv, path: out.csv } }
"""
WORKER = "clinker_spark.spark.session.worker_daemon"
SPLITS_OF = 40 << 20
"""Each file has several splits (32 MiB each) for each of two cores."""
ROOM = 64 << 20
"""What two runs of the same may differ by."""


def _write(path: Path, size: int) -> None:
    block = "".join(f"{i},city {i % 700},{i % 50},{i % 9973 / 7!r},{'note ' * 8}\n" for i in range(20_000)).encode()
    with path.open("wb") as file:
        file.write(b"id,city,qty,price,note\n")
        for _ in range(size // len(block)):
            file.write(block)


def peak_of_workers(shell: Shell) -> int:
    """The most memory of its own that a worker had while a command ran: pages of files are the system's."""
    process = shell.start("run", "p.yaml", "--master", "local[2]", "-q")
    peak = 0
    while process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            try:
                if WORKER in child.cmdline():  # the JVM has it as a part of a setting
                    memory = child.memory_info()
                    peak = max(peak, memory.rss - memory.shared)
            except psutil.Error:
                continue
        time.sleep(0.02)
    _, err = process.communicate()
    assert process.returncode == 0 and peak, err
    return peak


@pytest.mark.parametrize(
    ("nodes", "engine"), [(WRITTEN, "vector"), (ADDED, "vector"), (WRITTEN, "spark")], ids=["lines", "totals", "spark"]
)
def test_memory_of_workers_does_not_grow_with_the_file(nodes: str, engine: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("ENGINE", engine) + nodes)
    shell = Shell(tmp_path, tmp_path / "c")
    found = []
    for size in (SPLITS_OF * 4, SPLITS_OF * 10):
        _write(tmp_path / "in.csv", size)
        found.append(peak_of_workers(shell))
    print([f"{peak >> 20} MiB" for peak in found])
    assert found[1] < found[0] + ROOM
