"""The arbitrator of a run: told of every sample of memory, it applies the policy, and ends a run that cannot be helped.

It works in the thread that takes the samples. Jobs run one after another in the thread of the run, which tells it when
one begins: while memory is short, the next one waits for a while.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.arbitrate.failures import Spent, over_disk_cap, over_limit
from clinker_spark.runtime.arbitrate.policy import LESS, PATIENCE, Action, Policy, Regulator
from clinker_spark.runtime.arbitrate.registry import Held, Registry, victims
from clinker_spark.runtime.measure.processes import Sample, take_sample
from clinker_spark.spark.measure.steering import bytes_below
from clinker_spark.spark.scan import gate

_LOOK = 0.3
_DISK_EVERY = 1.0


class Levers(Protocol):
    """What can be asked of Spark; `spark.measure.steering` does it."""

    def execution_bytes(self) -> int: ...
    def kept(self) -> dict[str, int]: ...
    def put_on_disk(self, node: str, size: int) -> int: ...
    def collect_garbage(self) -> None: ...
    def begin(self, group: str) -> None: ...
    def end(self) -> None: ...
    def cancel(self, group: str) -> None: ...
    def folders(self) -> list[str]: ...


@dataclass
class Arbitration:
    """What was done about memory in a run."""

    limit_bytes: int
    policy: str
    pauses: int = 0
    paused_seconds: float = 0.0
    held_back_jobs: int = 0
    held_back_seconds: float = 0.0
    spilled_slots: int = 0
    spilled_slot_bytes: int = 0
    collections: int = 0
    peak_spill_bytes: int = 0
    """The most that lay in Spark's folders for shuffles and spills at once, where there is a cap."""

    def as_dict(self) -> dict[str, Any]:
        return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Limits:
    """What a run may use."""

    policy: Policy
    disk_cap: int | None = None
    """Bytes of shuffles and spills on disk, at once."""


class _Readers:
    """The readers of a run, which can be made to wait. Before its folder is known there are none."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._since: float | None = None

    def begin(self, folder: str) -> None:
        self._folder = folder

    def end(self) -> None:
        self.resume()
        self._folder = None

    def pause(self) -> bool:
        if self._folder is None or self._since is not None:
            return False
        gate.close(self._folder)
        self._since = time.monotonic()
        return True

    def resume(self) -> float:
        """Gives how long they waited."""
        if self._folder is None or self._since is None:
            return 0.0
        gate.open_again(self._folder)
        waited, self._since = time.monotonic() - self._since, None
        return waited


class _Disk:
    """What lies in Spark's folders for shuffles and spills, where there is a cap on it."""

    def __init__(self, levers: Levers, cap: int | None) -> None:
        self._levers = levers
        self.cap = cap
        self._looked = float("-inf")

    def used(self, now: float) -> int:
        """How many bytes; 0 when nobody needs to know, or when it was told a moment ago."""
        if self.cap is None or now - self._looked < _DISK_EVERY:
            return 0
        self._looked = now
        return bytes_below(self._levers.folders())


class Arbitrator:
    """Of one run."""

    def __init__(self, plan: Plan, limits: Limits, levers: Levers, group: str) -> None:
        self.done = Arbitration(limits.policy.limit, limits.policy.backpressure)
        self.stopped: Diagnostic | None = None
        """Why the run was ended."""
        self._registry = Registry(plan)
        self._regulator = Regulator(limits.policy)
        self._levers = levers
        self._group = group
        self._readers = _Readers()
        self._running: Sequence[str] = ()
        self._before: Sequence[str] = ()
        self._last: Sample | None = None
        self._disk = _Disk(levers, limits.disk_cap)
        self._lock = threading.RLock()

    @contextmanager
    def over(self, folder: str) -> Iterator[None]:
        """Around a run whose readers say in `folder` how far they are. At its end nobody waits any more."""
        self._readers.begin(folder)
        self._levers.begin(self._group)
        try:
            yield
        finally:
            with self._lock:
                self.done.paused_seconds += self._readers.resume()
                self._readers.end()
            self._levers.end()

    @contextmanager
    def job(self, nodes: Sequence[str]) -> Iterator[None]:
        """Around a job; it waits before it begins while memory is short."""
        self._hold_back()
        self._running = nodes
        try:
            yield
        finally:
            self._before, self._running = self._running, ()

    @property
    def policy(self) -> Policy:
        """How much memory there is, and what is done when it runs short."""
        return self._regulator.policy

    @property
    def failed(self) -> Sequence[str]:
        """The nodes of the job that runs, or of the one that ended last."""
        return self._running or self._before

    @property
    def spill_folder(self) -> str:
        """Where Spark puts shuffles and spills."""
        return os.path.dirname(next(iter(self._levers.folders()), "")) or tempfile.gettempdir()

    def _hold_back(self) -> None:
        """Before a job, while memory is short: what the one before it held is garbage. It waits as long as that helps;
        nothing else runs, so that what is held then will not become less by itself."""
        began, last = time.monotonic(), self._last
        if last is None or last.total < self.policy.soft or self.stopped:
            return
        collect = self._regulator.job_begins(began)
        if not collect:
            return  # it was done a moment ago
        self._do(collect, last)
        while time.monotonic() - began < PATIENCE and not self.stopped:
            before = self._last
            time.sleep(_LOOK)
            self.look(take_sample(last.at))
            if before is None or self._last is None or self._last.total < self.policy.soft:
                break
            if self._last.total > before.total - LESS * self.policy.limit:
                break
        self.done.held_back_jobs += 1
        self.done.held_back_seconds += time.monotonic() - began

    def look(self, sample: Sample, now: float | None = None) -> None:
        """A sample was taken."""
        with self._lock:
            if self.stopped is not None:
                return
            now = time.monotonic() if now is None else now
            self._last = sample
            self._look_at_disk(now)
            short = sample.total >= self.policy.resume
            kept = sum(self._levers.kept().values()) if short and self._registry.slots else 0
            self._do(self._regulator.look(now, sample.total, kept), sample)

    def _look_at_disk(self, now: float) -> None:
        used = self._disk.used(now)
        self.done.peak_spill_bytes = max(self.done.peak_spill_bytes, used)
        if self._disk.cap is not None and used > self._disk.cap:
            self._stop(over_disk_cap(self._registry.plan, self._running, used, self._disk.cap))

    def _do(self, actions: Sequence[Action], sample: Sample) -> None:
        does: dict[Action, Callable[[Sample], None]] = {
            Action.PAUSE: self._pause,
            Action.RESUME: self._resume,
            Action.SPILL: self._spill,
            Action.COLLECT: self._collect,
            Action.STOP: self._end,
        }
        for action in actions:
            does[action](sample)

    def _pause(self, sample: Sample) -> None:
        self.done.pauses += self._readers.pause()

    def _resume(self, sample: Sample) -> None:
        self.done.paused_seconds += self._readers.resume()

    def _spill(self, sample: Sample) -> None:
        """As much as is needed to get to where readers go on, from those who can, in the order of the policy."""
        policy = self.policy
        held = Held(sample.workers, self._levers.execution_bytes(), self._levers.kept())
        order = victims(self._registry.consumers(held, self._running), largest_first=policy.backpressure == "both")
        wanted = sample.total - policy.resume
        for victim in order:
            if wanted <= 0 or not victim.steered:
                continue
            freed = self._levers.put_on_disk(victim.node, min(wanted, victim.held))
            wanted -= freed
            self.done.spilled_slot_bytes += freed
            self.done.spilled_slots += freed > 0

    def _collect(self, sample: Sample) -> None:
        self._levers.collect_garbage()
        self.done.collections += 1

    def _end(self, sample: Sample) -> None:
        spent = Spent(sample.total, sample.jvm, sample.workers, sample.driver)
        self._stop(over_limit(self._registry.plan, self._running, self.policy.limit, spent))

    def _stop(self, why: Diagnostic) -> None:
        self.stopped = why
        self.done.paused_seconds += self._readers.resume()
        self._levers.cancel(self._group)
