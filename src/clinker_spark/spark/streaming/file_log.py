"""Which files of a source a stream has taken up, in which order: the meaning of its offsets.

A file that appears later has a later place, whatever its name is; files that are found together stand in the order of
their names. The log is synced before an offset that refers to it is given to Spark.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

from clinker_spark.spark.scan.files import SourceFile


@dataclass(frozen=True)
class Taken:
    """A file as it was found."""

    path: str
    name: str
    size: int

    @property
    def file(self) -> SourceFile:
        return SourceFile(self.path, self.name, self.size)


class FileLog:
    """The log of one source, a line for each file.

    One process writes it, the one that looks for files; others read it meanwhile. An unfinished line at its end may be
    one that is being written: readers leave it out, and only who takes files removes it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: list[Taken] = []
        self.known: set[str] = set()
        self._unfinished: int | None = None
        """Where a line begins that was not finished, if there is one."""
        self._load()

    def _load(self) -> None:
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # no offset can mean it
            self._unfinished = len(whole)
        for line in whole.splitlines():
            self._add(Taken(*json.loads(line)))

    def _add(self, taken: Taken) -> None:
        self.files.append(taken)
        self.known.add(taken.path)

    def take(self, found: list[SourceFile]) -> None:
        """Put the new ones of these files at the end, durably."""
        new = [Taken(file.path, file.name, file.size) for file in found if file.path not in self.known]
        if not new:
            return
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "ab") as file:
            if self._unfinished is not None:
                file.truncate(self._unfinished)
                self._unfinished = None
            file.writelines(json.dumps([t.path, t.name, t.size]).encode() + b"\n" for t in new)
            file.flush()
            os.fsync(file.fileno())
        for taken in new:
            self._add(taken)
