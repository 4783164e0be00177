"""Beats: who says that a source has nothing older to give (`spark.streaming.reader`), and when.

At the end of a stream that is drained, all sources say so, and everything that waits for a partner comes out. While it
runs, a source that has been silent for its `idle_timeout` says so in the name of those that are not.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.plan.streams import StreamQuery
from clinker_spark.spark.streaming.reader import BeatFile
from clinker_spark.streaming.checkpoint import Checkpoint

_MS = dt.timedelta(milliseconds=1)
Clock = Callable[[], float]


def beat_file(checkpoint: Checkpoint, query: StreamQuery, source: str) -> BeatFile:
    return BeatFile(str(checkpoint.source(query, source) / "beat"))


def flush_beat(query: StreamQuery, newest: int) -> int:
    """The time that lets everything out that waits, given the newest of it: what any join or delay may add to it. What
    Spark gives on to the next join of a chain is a millisecond behind what the join itself has reached."""
    spans = sum((node.reach for node in query.stateful), start=dt.timedelta(0))
    delays = max((query.delay(node) for node in query.sources), default=dt.timedelta(0))
    return newest + (spans + delays) // _MS + 1 + len(query.stateful)


@dataclass
class Idleness:
    """Which sources of a query are silent, and how far the others are."""

    query: StreamQuery
    clock: Clock = time.monotonic
    heard: dict[str, float] = field(default_factory=dict)
    """By source: when records came last."""
    newest: dict[str, int] = field(default_factory=dict)
    """By source: the newest time of its records."""

    def __post_init__(self) -> None:
        self.heard = {node.name: self.clock() for node in self.query.sources}

    def note(self, source: str, newest: int | None) -> None:
        """A batch brought records of a source."""
        self.heard[source] = self.clock()
        if newest is not None:
            self.newest[source] = max(newest, self.newest.get(source, newest))

    def beats(self) -> dict[str, int]:
        """By silent source: what it has to say. Nothing, when all are silent or nobody has been heard.

        A silent source has no watermark of its own then, but that of the slowest source that is not silent."""
        now = self.clock()
        silent = set()
        for node in self.query.sources:
            mark = node.config.watermark
            limit = None if mark is None else mark.idle_timeout
            if limit is not None and now - self.heard[node.name] >= limit.total_seconds():
                silent.add(node.name)
        awake = [node for node in self.query.sources if node.name not in silent]
        if not silent or not awake or any(node.name not in self.newest for node in awake):
            return {}
        reached = min(self.newest[node.name] - self.query.delay(node) // _MS for node in awake)
        return {
            node.name: reached + self.query.delay(node) // _MS for node in self.query.sources if node.name in silent
        }


def newest_times(progress: dict[str, Any], prefix: str) -> dict[str, int]:
    """By source: the newest time of a batch, as its progress says."""
    counts = progress.get("observedMetrics", {})
    return {
        name.removeprefix(prefix): int(row["time"])
        for name, row in counts.items()
        if name.startswith(prefix) and row.get("time") is not None
    }
