"""A file that is put together while the tasks of a job still write its parts.

When the job is done, most of the file is there, and on the disk: to copy and to sync everything only then is a fifth of
the time of a job that reads and writes text.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import IO

from clinker_spark.runtime.run.files.assemble import Made, copy
from clinker_spark.spark.fragments.part_names import part_name
from clinker_spark.spark.render.rendering import Rendering

_EVERY = 0.05
Seen = tuple[Path, int, int]
"""A part: its path, the number of its file, its size."""


class Appended:
    """Parts one after the other, as they come. `stop` it when the job is done, or has failed.

    A part has its name only when it is complete. One that was made anew since it was copied, as its task ran twice, is
    another file; then nothing of this is used."""

    def __init__(self, parts: Path, rendering: Rendering, place: Path) -> None:
        self._parts = parts
        self._rendering = rendering
        self._place = place
        self._seen: list[Seen] = []
        self._number = 0
        self._whole = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"appending {place.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Takes what is there, and ends."""
        self._done.set()
        self._thread.join()

    def made(self, parts: list[Path]) -> Made | None:
        """The whole file of these parts, in their order; None where it must be made from the beginning."""
        self.stop()
        count = len(self._seen)
        if not self._whole or not parts or [_seen(part) for part in parts[:count]] != self._seen:
            return None
        if self._place.stat().st_size != len(self._rendering.prefix) + sum(size for _, _, size in self._seen):
            return None
        with open(self._place, "r+b") as out:
            out.seek(0, os.SEEK_END)
            for part in parts[count:]:
                copy(part, out, part.stat().st_size)
            out.truncate(out.tell() - len(self._rendering.separator))
            out.seek(0, os.SEEK_END)
            out.write(self._rendering.suffix)
            return Made(self._place, out.tell())

    def _run(self) -> None:
        try:
            with open(self._place, "wb") as out:
                out.write(self._rendering.prefix)
                while True:
                    last = self._done.is_set()
                    while self._next(out):
                        pass
                    if last:
                        break
                    self._done.wait(_EVERY)
            self._whole = True
        except OSError:  # whoever makes the file from the beginning meets it again, and says so
            return

    def _next(self, out: IO[bytes]) -> bool:
        """Appends the next part, if it is there."""
        part = self._parts / part_name(self._number)
        try:
            found = _seen(part)
            copy(part, out, found[2])
        except FileNotFoundError:
            return False
        self._number += 1
        if found[2]:
            self._seen.append(found)
            os.fdatasync(out.fileno())
        return True


def _seen(part: Path) -> Seen:
    found = part.stat()
    return part, found.st_ino, found.st_size
