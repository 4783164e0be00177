"""The memory of a process and all that it started. No Spark."""

from __future__ import annotations

import subprocess
import sys

import psutil

from clinker_spark.runtime.run.monitor import Monitor

CHILD = "import sys; held = bytearray(64 << 20); print('ready', flush=True); sys.stdin.read()"


def test_children_count() -> None:
    monitor = Monitor()
    monitor.look(psutil.Process())
    before = monitor.peak
    assert before > 0
    with subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        later = Monitor()
        later.look(psutil.Process())
        child.communicate()
    assert later.peak - before > 60 << 20
    later.look(psutil.Process())
    assert later.peak - before > 60 << 20  # what was seen once


def test_it_looks_by_itself_and_ends() -> None:
    with Monitor() as monitor:
        pass
    assert not monitor._thread.is_alive()
