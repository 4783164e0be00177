"""How much memory a run uses: this process and all that it started, looked at now and then.

Pages that several processes share are counted once (PSS). To find that out the kernel walks through all pages of a
process, so it is only asked when the simple sum, which counts them for each, comes near the limit or is a new peak.
"""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

import psutil

_EVERY = 0.5
"""Seconds from one look to the next."""
_FAMILY = 4
"""After so many looks the processes are listed anew, for which the system lists all that it has."""
_NEWS = 1.05
"""A simple sum that is so much larger than those before may be a new peak."""


class Monitor:
    """Looks at the process tree while it is entered, in a thread of its own."""

    def __init__(self) -> None:
        self.peak = 0
        """The most bytes that were seen in use."""
        self._simple = 0.0
        self._looks = 0
        self._family: list[psutil.Process] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="clinker-memory", daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(timeout=5.0)

    def _watch(self) -> None:
        root = psutil.Process()
        while not self._ended.wait(_EVERY):
            self.look(root)

    def look(self, root: psutil.Process) -> None:
        """Once."""
        if self._looks % _FAMILY == 0:
            self._family = tree(root)
        self._looks += 1
        simple = sum(_resident(process) for process in self._family)
        if simple > self._simple * _NEWS:
            self._simple = simple
            self.peak = max(self.peak, sum(_proportional(process) for process in self._family))


def tree(root: psutil.Process) -> list[psutil.Process]:
    """A process and all that it started, directly or not."""
    try:
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return [root]


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # it is gone
        return 0


def _proportional(process: psutil.Process) -> int:
    """What a process uses, its share of common pages included; all of it, where the system does not say."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration, ValueError):
        return _resident(process)
