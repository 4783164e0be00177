"""Nothing is visible until it is complete: files are made in an attempt folder beside their place, then renamed.

An attempt folder is `.clinker-<id>` beside the output, so that the rename stays on one file system. It holds a
file that says which process makes it; an attempt whose process is gone is removed by the next run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PREFIX = ".clinker-"
OWNER = "owner"


@dataclass
class Attempt:
    """All that one run writes. `rename` notes what belongs where; `publish` does it."""

    execution_id: str
    folders: list[Path] = field(default_factory=list)
    renames: list[tuple[Path, Path]] = field(default_factory=list)
    removals: list[Path] = field(default_factory=list)

    def folder(self, beside: Path, name: str) -> Path:
        """A folder for the parts of an output whose place is `beside`."""
        parent = beside.parent.absolute()  # a Spark that runs elsewhere may work in another folder
        parent.mkdir(parents=True, exist_ok=True)
        sweep(parent)
        top = parent / f"{PREFIX}{self.execution_id}"
        if top not in self.folders:
            top.mkdir(exist_ok=True)
            (top / OWNER).write_text(f"{socket.gethostname()} {os.getpid()} {_started(os.getpid())}")
            self.folders.append(top)
        made = top / name.replace("/", "~")
        made.mkdir(exist_ok=True)
        return made

    def rename(self, made: Path, place: Path) -> None:
        """Note a finished file (or folder) and its place."""
        self.renames.append((made, place))

    def remove(self, place: Path) -> None:
        """Note a file that must not be there after this run."""
        self.removals.append(place)

    def publish(self) -> None:
        """Put everything in its place. Signals wait: a run is published as a whole, as far as a process can do it."""
        with _undisturbed():
            for made, place in self.renames:
                sync(made)
                if made.is_dir():
                    _replace_folder(made, place)
                else:
                    os.replace(made, place)
            for place in self.removals:
                place.unlink(missing_ok=True)
            for folder in {place.parent for _, place in self.renames}:
                sync(folder)
        self.clean()

    def clean(self) -> None:
        """Remove what was made and not published."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Make sure that a file, or the names in a folder, survive a loss of power.

    A file that cannot be kept is an error: some systems find out about a full disk only now. Folders are another
    matter, there are file systems that do not sync them.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
            os.fsync(handle)
    finally:
        os.close(handle)


def _replace_folder(made: Path, place: Path) -> None:
    old = made.with_name(made.name + ".old")
    if place.exists():
        os.rename(place, old)
    os.rename(made, place)
    shutil.rmtree(old, ignore_errors=True)


def sweep(parent: Path) -> None:
    """Remove the attempts of processes that are gone."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            host, pid, started = (folder / OWNER).read_text().split()
        except (OSError, ValueError):
            continue  # somebody is just making or removing it
        if host == socket.gethostname() and _started(int(pid)) != started:
            shutil.rmtree(folder, ignore_errors=True)


def _started(pid: int) -> str:
    """When a process began; process numbers are used again."""
    import psutil

    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return "-"


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back SIGINT and SIGTERM until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    saved = {s: signal.signal(s, lambda n, _: pending.append(n)) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)
