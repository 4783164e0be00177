"""The folder that one Spark spills to, inside the one that clinker.toml names.

Spark removes what it wrote when it ends, and this process its folder. A run that was killed does neither: the next one
finds its folder, sees that nobody holds its lock, and removes it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from pathlib import Path

from clinker_spark.runtime.commit.seam import SYSTEM, Files, Lock

PREFIX = "clinker-spill-"
GRACE = 60.0
"""Seconds in which a folder is too young to be an orphan: its owner may be about to lock it."""
_LOCK = "owner.lock"
_held: list[Lock] = []
"""Of this process; they are let go when it ends."""


def own_folder(root: Path, files: Files = SYSTEM) -> Path:
    """A new folder, which is removed when this process ends. What killed runs left in `root` is removed first."""
    purge(root, files)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
    lock = files.lock(folder / _LOCK)
    assert lock is not None  # nobody else knows its name
    _held.append(lock)
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a fork ends before its parent
        shutil.rmtree(folder, ignore_errors=True)


def purge(root: Path, files: Files = SYSTEM, grace: float = GRACE) -> list[str]:
    """Remove folders that no living run holds; gives their names. What cannot be removed is left for the next time."""
    removed = []
    for name in files.names(root):
        folder = root / name
        if not name.startswith(PREFIX) or not _is_old(folder, grace):
            continue
        try:
            lock = files.lock(folder / _LOCK)
        except OSError:  # of another user
            continue
        if lock is not None and lock.handle is not None:  # without locks, nobody knows who lives
            shutil.rmtree(folder, ignore_errors=True)
            files.unlock(lock, remove=False)
            removed += [] if folder.exists() else [name]
    return removed


def _is_old(folder: Path, grace: float) -> bool:
    try:
        return folder.is_dir() and not folder.is_symlink() and time.time() - os.stat(folder).st_mtime >= grace
    except OSError:
        return False
