"""Locks keep two runs over the same outputs apart. The system lets go of them when a process ends, however it ends."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.runtime.commit.seam import Files, Lock
from clinker_spark.runtime.errors import IoError

LOCK_PREFIX = ".clinker-lock-"
_PAUSE = 0.05


class Busy(IoError):
    """Another run holds an output."""


def lock_file(place: Path) -> Path:
    """The file that is locked for an output, beside it."""
    return place.parent / f"{LOCK_PREFIX}{hashlib.sha256(place.name.encode()).hexdigest()[:16]}"


class Locks:
    """The locks of one run. They are taken in the order of their names, so that two runs never wait for each other."""

    def __init__(self, files: Files, pipeline: str, wait: float, tell: Callable[[str, dict[str, Any]], None]) -> None:
        self.files = files
        self.pipeline = pipeline
        self.wait = wait
        self.tell = tell
        self.held: dict[Path, Lock] = {}

    def take(self, places: Iterable[Path], wait: float | None = None) -> None:
        """Lock the outputs at these places; waits a little, then raises `Busy` with who holds them."""
        wanted = {lock_file(place): place for place in places}
        for path in sorted(wanted):
            if path not in self.held:
                self.held[path] = self._take(path, wanted[path], self.wait if wait is None else wait)

    def _take(self, path: Path, place: Path, wait: float) -> Lock:
        until = time.monotonic() + wait
        told = False
        while (lock := self.files.lock(path)) is None:
            if not told:
                self.tell("waiting", {"output": str(place), "holder": _holder(self.files, path)})
                told = True
            if time.monotonic() >= until:
                message = f"'{place}' is being written by {_holder(self.files, path)}"
                help_text = "wait until it is done, or give this run outputs of its own"
                raise Busy([Diagnostic("E420", message, help=help_text)])
            time.sleep(_PAUSE)
        try:
            self.files.write(path, identity(self.pipeline))
        except OSError:
            self.files.unlock(lock, remove=True)
            raise
        return lock

    def release(self, places: Iterable[Path] | None = None) -> None:
        """Let go of some, or of all. A file that cannot be removed is none that anybody has to wait for."""
        chosen = list(self.held) if places is None else [lock_file(place) for place in places]
        for path in chosen:
            if (lock := self.held.pop(path, None)) is not None:
                try:
                    self.files.unlock(lock, remove=True)
                except OSError:
                    self.files.unlock(lock, remove=False)


def identity(pipeline: str) -> bytes:
    """Who this is, for others to read."""
    since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    who = {"pid": os.getpid(), "host": socket.gethostname(), "pipeline": pipeline, "since": since}
    return json.dumps(who, ensure_ascii=False).encode()


def _holder(files: Files, path: Path) -> str:
    try:
        who: Any = json.loads(files.read(path))
        where = "" if who["host"] == socket.gethostname() else f" on {who['host']}"
        return f"process {who['pid']}{where}, pipeline '{who['pipeline']}', since {who['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"
