"""What crashed runs left in a staging folder, removed: never what a living one works on.

Two things must be true of whatever is removed. Nobody holds the lock of its source; and it is older than the moment
between making a file and locking it can last.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

from clinker_spark.runtime.commit.seam import Files
from clinker_spark.runtime.staging.entry import PRIVATE, Places, kind_of

GRACE = 60.0
"""Seconds in which a file is too young to be an orphan."""


@dataclass
class Purged:
    """What was done: names that were removed, and orphans that were left because they are young or locked."""

    removed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def purge(files: Files, folder: Path, grace: float = GRACE) -> Purged:
    """Remove interrupted copies, copies without a manifest, manifests without a copy, and locks of neither. Whole
    copies stay. What the system refuses is left for the next time."""
    found: dict[str, dict[str, str]] = {}
    for name in files.names(folder):
        known = kind_of(name)
        if known is not None:
            found.setdefault(known[0], {})[name] = known[1]
    done = Purged()
    for source, names in found.items():
        at = Places(folder, source)
        orphans = _orphans(names)
        with contextlib.suppress(OSError):
            if any(_is_old(files, folder / name, grace) for name in orphans):
                done.removed += _reap(files, at, orphans, grace, made=at.lock.name not in names)
        done.left += [name for name in orphans if name not in done.removed]
    return done


def _orphans(names: dict[str, str]) -> list[str]:
    """The files of a source, by their kinds, that belong to no whole copy."""
    there = set(names.values())
    whole = {"staged", "manifest"} <= there
    empty = not there & {"staged", "manifest"}
    gone = {"partial"} | (set() if whole else {"staged", "manifest"}) | ({"lock"} if empty else set())
    return [name for name, kind in names.items() if kind in gone]


def _reap(files: Files, at: Places, orphans: list[str], grace: float, *, made: bool) -> list[str]:
    """Remove orphans with the lock in hand: all of it is looked at once more, since others may just have ended."""
    lock = files.lock(at.lock, mode=PRIVATE)
    if lock is None:
        return []
    removed: list[str] = []
    try:
        whole = files.stat(at.copy) is not None and files.stat(at.manifest) is not None
        for name in orphans:
            kept = name == at.lock.name or (whole and name in (at.copy.name, at.manifest.name))
            if lock.handle is not None and not kept and _is_old(files, at.folder / name, grace):
                files.unlink(at.folder / name)
                removed.append(name)
        empty = files.stat(at.copy) is None and files.stat(at.manifest) is None
        goes = lock.handle is not None and empty and (made or _is_old(files, at.lock, grace))
    except BaseException:
        with contextlib.suppress(OSError):
            files.unlock(lock, remove=False)
        raise
    files.unlock(lock, remove=goes)
    return [*removed, at.lock.name] if goes and not made else removed


def _is_old(files: Files, path: Path, grace: float) -> bool:
    info = files.stat(path)
    return info is not None and time.time() - info.mtime_ns / 1e9 > grace
