"""The memory of all processes of a run, over time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from clinker_spark.runtime.measure.processes import ProcessTree, Sample

EVERY = 0.5
"""Seconds between two samples."""
MOST_SAMPLES = 600
"""When there are more, every second one is left out: a long run has as many as a short one."""


@dataclass
class MemoryUse:
    """What a run used. `peak` is the largest sample of all, also of those that are left out of `samples`."""

    samples: list[Sample] = field(default_factory=list)
    peak: Sample | None = None
    every: float = EVERY
    """Seconds between two samples that are kept."""
    seconds: float = 0.0
    """The time of a processor that it took to look, and to act on it."""

    def add(self, sample: Sample) -> None:
        if self.peak is None or sample.total > self.peak.total:
            self.peak = sample
        if self.samples and sample.at < self.samples[-1].at + self.every * 0.9:
            return
        self.samples.append(sample)
        if len(self.samples) > MOST_SAMPLES:
            self.samples = self.samples[::2]
            self.every *= 2

    def as_dict(self) -> dict[str, Any]:
        rows = [[round(s.at, 2), s.driver, s.jvm, s.workers] for s in self.samples]
        peak = None if self.peak is None else self.peak.total
        return {"peak_bytes": peak, "samples": rows, "seconds_sampling": round(self.seconds, 3)}


class MemorySampler:
    """Takes samples in a thread of its own, while the block runs; `tell` gets each of them.

    >>> with MemorySampler(every=0.01) as use:
    ...     _ = sum(range(1000))
    >>> use.peak.total > 0
    True
    """

    def __init__(self, every: float = EVERY, tell: Callable[[Sample], None] | None = None) -> None:
        self.use = MemoryUse(every=every)
        self._every = every
        self._tell = tell
        self._tree = ProcessTree()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory samples", daemon=True)

    def __enter__(self) -> MemoryUse:
        self._began = time.monotonic()
        self.use.add(self._tree.sample(0.0))
        self._thread.start()
        return self.use

    def _watch(self) -> None:
        while not self._done.wait(self._every):
            # Processes and the session of Spark may be gone at any moment: one look that fails is left out. A thread
            # that ended with it would watch no limit any more.
            with contextlib.suppress(Exception):
                self._look()
            self.use.seconds = time.thread_time()

    def _look(self) -> None:
        sample = self._tree.sample(time.monotonic() - self._began)
        self.use.add(sample)
        if self._tell is not None:
            self._tell(sample)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
