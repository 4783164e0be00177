"""The folders of an attempt, beside the outputs; the first of them says who made it, and knows the others."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import time
from pathlib import Path

from clinker_spark.runtime.commit.journal import remove_attempts
from clinker_spark.runtime.commit.locks import identity
from clinker_spark.runtime.commit.recovery import OTHER, OWNER, POINTER, attempt_name, process_began
from clinker_spark.runtime.commit.seam import Files, Lock
from clinker_spark.runtime.commit.staging import missing_folders

_TRIES = 200
_PAUSE = 0.05


def folder_name(name: str) -> str:
    """The folder of an output in its attempt: no two outputs have the same, and none that of the attempt's own files.

    >>> folder_name("journal"), folder_name("call/node"), folder_name("call~node")
    ('made-journal', 'made-call~1node', 'made-call~0node')
    """
    readable = name.replace("~", "~0").replace("/", "~1")
    if len(readable.encode()) > 100:
        readable = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"made-{readable}"


class AttemptFolders:
    """Of one run. Folders that were made on the way to an output go again, if nothing comes into them."""

    def __init__(self, files: Files, execution_id: str, pipeline: str) -> None:
        self.files = files
        self.execution_id = execution_id
        self.pipeline = pipeline
        self.tops: dict[Path, Path] = {}
        """The attempt folder in each folder that has one; the main one first."""
        self.notes: dict[str, list[str]] = {}
        """What whoever finds the main one must know."""
        self._owner: Lock | None = None
        self._made: list[Path] = []

    @property
    def main(self) -> Path:
        return next(iter(self.tops.values()))

    def make(self, folder: Path) -> None:
        for missing in missing_folders(self.files, folder):
            if self.files.mkdir(missing):
                self._made.append(missing)

    def top(self, parent: Path) -> Path:
        """The attempt folder in a folder."""
        if parent in self.tops:
            return self.tops[parent]
        top = parent / attempt_name(self.execution_id)
        if self.tops:
            # First the note that leads there: what nobody knows of would never be removed.
            self.files.write(self.main / f"{OTHER}{len(self.tops)}", json.dumps(str(top)).encode())
            self.tops[parent] = top
            self.files.mkdir(top)
            self.files.write(top / POINTER, json.dumps(str(self.main)).encode())
        else:
            self.tops[parent] = top
            self._owner = self._own(top)
        return top

    def _own(self, top: Path) -> Lock:
        """Make the main folder, and show that its process lives. Somebody who looks for crashed runs may take it for
        one of them as long as it is not locked: then it is made again."""
        for last in (False,) * (_TRIES - 1) + (True,):
            try:
                self.make(top.parent)
                self.files.mkdir(top)
                lock = self.files.lock(top / OWNER)
            except FileNotFoundError:
                if last:  # nobody is that quick: nothing can be made there (/proc is such a place)
                    raise
                continue
            if lock is not None:
                break
            time.sleep(_PAUSE)
        else:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(top))
        who = json.loads(identity(self.pipeline)) | {"began": process_began(os.getpid())} | self.notes
        try:
            self.files.write(top / OWNER, json.dumps(who, ensure_ascii=False).encode())
        except OSError:
            self.files.unlock(lock, remove=False)
            raise
        return lock

    def remove(self, *, keep: bool) -> None:
        """What was made in them, unless it is still needed; then let go of the main one. What cannot be removed now,
        the next run does."""
        if self.tops and not keep:
            with contextlib.suppress(OSError):
                remove_attempts(self.files, list(self.tops.values()))
        self.tops.clear()
        if self._owner is not None:
            with contextlib.suppress(OSError):
                self.files.unlock(self._owner, remove=False)
            self._owner = None

    def remove_made(self) -> None:
        """Folders that were made for outputs that did not come."""
        while self._made:
            with contextlib.suppress(OSError):
                self.files.rmdir(self._made.pop())
