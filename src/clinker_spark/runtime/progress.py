"""How far readers are: they write it into a folder while they work, and a thread of the driver looks there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clinker_spark.spark.sources.scans import progress_counts

_EVERY = 0.5


def records_read(folder: Path, source: str) -> int | None:
    """The records that the readers of a source have given so far; None when they do not say."""
    counts = progress_counts(folder, source)
    return sum(counts) if counts else None


class Watch:
    """Tells a listener how far the sources are while a block runs."""

    def __init__(self, folder: Path, sources: list[str], tell: Callable[[dict[str, Any]], None]) -> None:
        self.folder = folder
        self.sources = sources
        self.tell = tell
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY):
            found = {name: records_read(self.folder, name) for name in self.sources}
            seconds = max(time.monotonic() - self._began, 0.001)
            shown = {
                name: {"records": count, "rate": count / seconds} for name, count in found.items() if count is not None
            }
            if shown:
                self.tell({"sources": shown})
