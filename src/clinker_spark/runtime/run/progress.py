"""How far a run is: readers write it into a folder while they work, and a thread of the driver looks there.

A run reads its files in passes: one for each output, and others when records failed. Progress is the share of bytes
over all passes that are known so far. A pass that nobody expected makes the whole larger, so the share that is told
never falls, and it stays below all until the run is done.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinker_spark.spark.scan.scans import metered_bytes, progress_counts, reset_meter

FINDING = "finding the failed records"
"""What the pass is called that finds out why records failed."""
_EVERY = 0.5
_PATIENCE = (0.05, 0.2, 0.5)
"""Seconds between the tries to remove a folder in which somebody still writes."""
_ALMOST = 99.0
"""Reading is not all: records are sorted, written and published after it."""


def writing(output: str) -> str:
    """What the pass of an output is called."""
    return f"writing {output}"


def records_read(folder: Path, source: str) -> int | None:
    """The records that the readers of a source have given so far; None when they do not say."""
    counts = progress_counts(folder, source)
    return sum(counts) if counts else None


@dataclass(frozen=True)
class Share:
    """How much of a run is done: a percentage that never falls, and how long the rest will take at this rate.

    Once everything is read there is no rate, and no telling how long sorting and writing will take.
    """

    percent: float
    bytes_read: int
    bytes_total: int
    bytes_per_second: float
    seconds_left: float | None


class Passes:
    """The passes of one run over its files.

    >>> passes = Passes({"one": 100, "two": 100}, clock=iter(range(9)).__next__)
    >>> passes.begin("one", 100); [passes.share(read).percent for read in (50, 20, 100)]
    [25.0, 25.0, 50.0]
    >>> passes.end(); passes.begin("two", 100); passes.share(100).percent
    99.0
    >>> passes.end(); passes.begin("nobody expected it", 200); passes.share(0).percent, passes.number, passes.count
    (99.0, 3, 3)
    """

    def __init__(self, expected: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expected = dict(expected)
        self._began = clock()
        self._done = 0
        self._current: int | None = None
        self._told = 0.0
        self.number = 0
        """Which pass is going on, from 1."""

    @property
    def count(self) -> int:
        """How many passes there are, as far as is known."""
        return self.number + len(self._expected)

    def begin(self, name: str, size: int) -> None:
        """A pass over so many bytes begins."""
        self._current = size
        self.number += 1
        self._expected.pop(name, None)

    def expect(self, name: str, size: int) -> None:
        """There will be one more pass."""
        self._expected.setdefault(name, size)

    def skip(self, name: str) -> None:
        """An expected pass is not needed."""
        self._expected.pop(name, None)

    def end(self) -> None:
        self._done += self._current or 0
        self._current = None

    def share(self, read: int) -> Share:
        """Where the run is when the pass that goes on has read so many bytes."""
        current = self._current or 0
        total = self._done + current + sum(self._expected.values())
        done = self._done + min(read, current)
        seconds = max(self._clock() - self._began, 0.001)
        percent = 100.0 * done / total if total else 0.0
        # Readers need not look at the last bytes. What goes on then is computed and written: nobody knows how long.
        rate = done / seconds if percent < _ALMOST and done < total else 0.0
        self._told = max(self._told, min(percent, _ALMOST))
        left = (total - done) / rate if rate else None
        return Share(self._told, done, total, rate, left)


@contextmanager
def progress_folder() -> Iterator[str]:
    """Where readers say how far they are. A reader of a cancelled job may still write there while it is removed, which
    is no reason to say anything."""
    folder = Path(tempfile.mkdtemp(prefix="clinker-progress-"))
    try:
        yield str(folder)
    finally:
        for pause in _PATIENCE:
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(pause)


class Watch:
    """Tells a listener how far a run is, while its passes go on."""

    def __init__(
        self, folder: Path, sizes: Mapping[str, int], passes: Passes, tell: Callable[[dict[str, Any]], None]
    ) -> None:
        self.folder = folder
        self.sizes = sizes
        self.passes = passes
        self.tell = tell
        self._active = False
        self._records: Counter[str] = Counter()
        """The records of each source that were read by some pass."""

    @contextmanager
    def over(self, name: str, sources: Sequence[str], done_tasks: Callable[[], float] = lambda: 0.0) -> Iterator[None]:
        """A pass with a name, over some sources. `done_tasks` is the share of its tasks that are done: files that
        Spark reads itself have no readers that would say how far they are. A pass inside another is part of it."""
        if self._active:
            yield
            return
        self._active = True
        for source in sources:
            reset_meter(self.folder, source)
        self.passes.begin(name, sum(self.sizes[source] for source in sources))
        stop = threading.Event()
        thread = threading.Thread(target=self._watch, args=(stop, name, sources, done_tasks), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            self.passes.end()
            self._active = False

    def _watch(self, stop: threading.Event, name: str, sources: Sequence[str], done_tasks: Callable[[], float]) -> None:
        while not stop.wait(_EVERY):
            read = 0
            for source in sources:
                metered = metered_bytes(self.folder, source)
                read += min(metered or int(self.sizes[source] * done_tasks()), self.sizes[source])
            share = self.passes.share(read)
            for source in sources:
                self._records[source] = max(self._records[source], records_read(self.folder, source) or 0)
            self.tell(
                {
                    "pass": name,
                    "pass_number": self.passes.number,
                    "passes": self.passes.count,
                    "percent": round(share.percent, 1),
                    "bytes_read": share.bytes_read,
                    "bytes_total": share.bytes_total,
                    "bytes_per_second": round(share.bytes_per_second),
                    "seconds_left": None if share.seconds_left is None else round(share.seconds_left, 1),
                    "records": {source: count for source, count in self._records.items() if count},
                }
            )
