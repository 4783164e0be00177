"""One streaming query of Spark: a frame, what is done with its batches, and where it is."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame

__all__ = ["DataFrame", "RunningQuery"]

_NO_WORKER = "Python worker failed to connect back"
Each = Callable[[DataFrame, int], None]


def _causes(error: BaseException) -> str:
    """What Spark says, with the causes that it keeps behind it: the last of them is what happened."""
    texts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(texts) < 20:
        texts.append(str(cause).split("=== Streaming Query ===")[0].strip())
        cause = getattr(cause, "_cause", None)
    return "\nCaused by: ".join(texts)


def _told(progress: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(progress.json) if hasattr(progress, "json") else dict(progress)
    return found


class RunningQuery:
    """A query that was started."""

    def __init__(self, frame: DataFrame, name: str, checkpoint: Path, each: Each, *, once: bool, every: float) -> None:
        self.name = name
        self.failure: BaseException | None = None
        self._each = each
        self._seen = -1
        self._heard = 0
        self.batches = 0
        """So many were finished."""
        writer = (
            frame.writeStream.foreachBatch(self._batch).option("checkpointLocation", str(checkpoint)).queryName(name)
        )
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{every} seconds")
        self.query = writer.start()

    def _batch(self, batch: DataFrame, number: int) -> None:
        try:
            self._each(batch, number)
            self.batches += 1
        except BaseException as error:  # Spark makes a text of it
            self.failure = error
            raise

    @property
    def begins(self) -> bool:
        """Has it not come to its first batch yet?"""
        return self.active and "nitializing" in str(self.query.status["message"])

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    def progress(self) -> list[dict[str, Any]]:
        """What Spark says about the batches since the last time it was asked, in their order. Batches that only asked
        for records say nothing.

        Spark keeps a thousand of these texts, and hands them out all or none: they are asked for when there is more
        than the last one to hear, and not at all while no batch was finished."""
        if self._heard == self.batches:
            return []
        last = self.query.lastProgress
        if last is None:
            return []
        told = [_told(last)]
        if told[0]["batchId"] > self._seen + 1:
            told = [_told(item) for item in self.query.recentProgress]
        found = []
        for each in told:
            if each["batchId"] > self._seen and "addBatch" in each.get("durationMs", {}):
                self._seen = each["batchId"]
                found.append(each)
        self._heard += len(found)
        return found

    def error(self) -> BaseException | None:
        """Why it stopped, if it failed."""
        failed = self.query.exception()
        if failed is None:
            return None
        return self.failure or PySparkException(message=_causes(failed))

    def lost_process(self) -> bool:
        """Did it fail because a process of Python was not there after the ten seconds that Spark waits for it? It can
        go on from its checkpoint, as after any failure."""
        failed = self.query.exception()
        return failed is not None and _NO_WORKER in _causes(failed)

    def stop(self, patience: float) -> None:
        """Let the batch that is running come to its end, if that does not take too long; then stop."""
        until, running = time.monotonic() + patience, self.batches
        while self.active and self.query.status["isTriggerActive"] and self.batches == running:
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        with contextlib.suppress(StreamingQueryException):
            self.query.stop()
