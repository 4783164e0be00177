"""The memory of all processes of a run, over time: this one, the JVM, and the Python workers.

Workers are forked and share pages, so theirs is the proportional share (PSS). To ask for that of a large JVM costs some
hundredths of a second of its time, and it shares next to nothing: its resident size is taken.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import psutil

EVERY = 0.5
"""Seconds between two samples."""
root: int | None = None
"""The process whose children the JVM and the workers are, if that is not this one."""
MOST_SAMPLES = 600
"""When there are more, every second one is left out: a long run has as many as a short one."""


@dataclass(frozen=True)
class Sample:
    """Bytes at one moment, `at` seconds after the beginning."""

    at: float
    driver: int
    jvm: int
    workers: int

    @property
    def total(self) -> int:
        return self.driver + self.jvm + self.workers


@dataclass
class MemoryUse:
    """What a run used. `peak` is the largest sample of all, also of those that are left out of `samples`."""

    samples: list[Sample] = field(default_factory=list)
    peak: Sample | None = None
    every: float = EVERY

    def add(self, sample: Sample) -> None:
        if self.peak is None or sample.total > self.peak.total:
            self.peak = sample
        self.samples.append(sample)
        if len(self.samples) > MOST_SAMPLES:
            self.samples = self.samples[::2]
            self.every *= 2

    def as_dict(self) -> dict[str, Any]:
        rows = [[round(s.at, 2), s.driver, s.jvm, s.workers] for s in self.samples]
        return {"peak_bytes": None if self.peak is None else self.peak.total, "samples": rows}


class MemorySampler:
    """Takes samples in a thread of its own, while the block runs.

    >>> with MemorySampler(every=0.01) as use:
    ...     _ = sum(range(1000))
    >>> use.peak.total > 0
    True
    """

    def __init__(self, every: float = EVERY) -> None:
        self.use = MemoryUse(every=every)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory samples", daemon=True)

    def __enter__(self) -> MemoryUse:
        self._began = time.monotonic()
        self.use.add(take_sample(0.0))
        self._thread.start()
        return self.use

    def _watch(self) -> None:
        while not self._done.wait(self.use.every):
            self.use.add(take_sample(time.monotonic() - self._began))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()


def take_sample(at: float) -> Sample:
    """What all processes of this run have now."""
    here = psutil.Process()
    above = here if root is None else psutil.Process(root)
    jvm = workers = 0
    for child in above.children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):  # it ended meanwhile
            if child.pid == here.pid:
                continue
            if child.name().startswith("java"):
                jvm += child.memory_info().rss
            else:
                workers += _share(child.pid)
    return Sample(at, here.memory_info().rss, jvm, workers)


def _share(pid: int) -> int:
    """The proportional share of a process, where the system tells it."""
    path = f"/proc/{pid}/smaps_rollup"
    if not os.path.exists(path):
        return int(psutil.Process(pid).memory_info().rss)
    with open(path) as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:")), 0)
