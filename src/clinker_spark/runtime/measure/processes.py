"""The processes of a run, and the memory of each: this one, the JVM, and the Python workers.

Python processes are forked and share pages and libraries, so theirs is the proportional share (PSS). The system counts
all pages of a process to tell that, which takes milliseconds; its resident size takes none. So the difference of the
two is asked for now and then, and subtracted from resident sizes in between. JVMs share libraries and archives of
classes, too: 20 MB where several run. With a large heap that is nothing, and to count its pages takes too long.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field

import psutil

FIND_EVERY = 2.0
"""Seconds after which processes are looked for again: that goes through all of the machine."""
EXACT_EVERY = 4.0
"""Seconds after which shared pages are counted again."""
_LARGE = 4 << 30
"""The pages of a larger JVM are not counted."""
root: int | None = None
"""The process whose children the JVM and the workers are, if that is not this one."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


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
class _Member:
    """A process. `shared` is what its resident size counts and its share does not."""

    pid: int
    is_jvm: bool = False
    shared: int = 0
    counted: float = float("-inf")

    def held(self, now: float) -> int:
        if self.is_jvm and _resident(self.pid) > _LARGE:
            return _resident(self.pid)
        if now - self.counted >= EXACT_EVERY:
            self.counted = now
            share = _share(self.pid)
            self.shared = max(_resident(self.pid) - share, 0)
            return share
        return max(_resident(self.pid) - self.shared, 0)


@dataclass
class ProcessTree:
    """This process and all that it started, as far as they were found.

    >>> ProcessTree().sample(0.0).driver > 0
    True
    """

    _members: dict[int, _Member] = field(default_factory=dict)
    _found: float = float("-inf")

    def sample(self, at: float) -> Sample:
        """What all of them hold now; `at` is when that is."""
        now = time.monotonic()
        if now - self._found >= FIND_EVERY:
            self._find()
            self._found = now
        sizes = {"driver": 0, "jvm": 0, "workers": 0}
        for pid, member in list(self._members.items()):
            kind = "driver" if pid == os.getpid() else "jvm" if member.is_jvm else "workers"
            try:
                sizes[kind] += member.held(now)
            except OSError:  # it ended meanwhile
                del self._members[pid]
        return Sample(at, **sizes)

    def _find(self) -> None:
        there = {os.getpid(): False}
        try:
            children = psutil.Process(root).children(recursive=True)
        except psutil.Error:  # one of them ended meanwhile: looked for again next time
            return
        for child in children:
            with contextlib.suppress(psutil.Error, OSError):
                there[child.pid] = child.name().startswith("java")
        self._members = {
            pid: member
            if (member := self._members.get(pid)) is not None and member.is_jvm == is_jvm
            else _Member(pid, is_jvm)
            for pid, is_jvm in there.items()
        }


def take_sample(at: float) -> Sample:
    """What all processes of this run have now, exactly."""
    return ProcessTree().sample(at)


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except FileNotFoundError:
        if os.path.exists("/proc/self/statm"):
            raise
    return _asked(pid)


def _share(pid: int) -> int:
    """The proportional share of a process, where the system tells it."""
    if not os.path.exists("/proc/self/smaps_rollup"):
        return _resident(pid)
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next((int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:")), 0)


def _asked(pid: int) -> int:
    """The resident size of a process on a system without /proc."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error as error:
        raise OSError(str(error)) from None
