"""A staging folder to break: one source, the states a run can find it in, and what may be trusted afterwards."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinker_spark.runtime.commit.seam import PosixFiles
from clinker_spark.runtime.staging.cache import Cache, Held, Policy
from clinker_spark.runtime.staging.entry import Entry, Original, kind_of, places, trusted
from clinker_spark.runtime.staging.purge import purge

SYSTEM = PosixFiles()
CONTENT = b"id,amount\n" + b"1,2.50\n" * 1_300
"""Some blocks of the size that the tests set, and not a whole number of them."""


def original(path: Path) -> Original:
    info = os.stat(path)
    return Original(os.path.realpath(path), info.st_size, info.st_mtime_ns)


def stage(
    folder: Path, source: Path, files: Any = SYSTEM, run: str = "run", success: bool = True, **policy: Any
) -> tuple[str, bytes]:
    """One run: hold a copy, read it, let it go. What was done, and what was read."""
    with held(folder, source, files, run, success, **policy) as found:
        return found.action, found.path.read_bytes()


@contextlib.contextmanager
def held(
    folder: Path, source: Path, files: Any = SYSTEM, run: str = "run", success: bool = True, **policy: Any
) -> Iterator[Held]:
    cache = Cache(files, folder, run, Policy(**policy))
    try:
        yield cache.hold(original(source), source.name)
    finally:
        cache.release(success=success)


@dataclass
class State:
    """A source and a staging folder, in one of the states that a run may find."""

    root: Path
    name: str

    @property
    def source(self) -> Path:
        return self.root / "in.csv"

    @property
    def folder(self) -> Path:
        return self.root / "stage"

    def prepare(self) -> None:
        self.folder.mkdir(parents=True)
        self.source.write_bytes(CONTENT)
        os.utime(self.source, ns=(10**18, 10**18))
        at = places(self.folder, os.path.realpath(self.source))
        if self.name in ("fresh copy", "stale copy"):
            stage(self.folder, self.source, cleanup="never")
        if self.name == "stale copy":
            self.source.write_bytes(b"another\n" + CONTENT)
            os.utime(self.source, ns=(10**18 + 5, 10**18 + 5))
        if self.name == "interrupted":
            at.partial("dead").write_bytes(CONTENT[:1000])
            at.copy.write_bytes(CONTENT[:2000])
            at.lock.touch()
            aged(self.folder)

    def entry(self) -> Entry | None:
        return trusted(SYSTEM, places(self.folder, os.path.realpath(self.source)))

    def check(self) -> None:
        """If there is a copy that a run would trust, then it is whole: the hash in its manifest is that of its bytes;
        and if it is one of the source as it is, it has its bytes."""
        entry = self.entry()
        if entry is None:
            return
        at = places(self.folder, os.path.realpath(self.source))
        assert SYSTEM.digest(at.copy) == entry.blake3
        assert oct(at.copy.stat().st_mode & 0o777) == oct(at.manifest.stat().st_mode & 0o777) == "0o600"
        if entry.is_of(original(self.source)):
            assert at.copy.read_bytes() == self.source.read_bytes()

    def left_over(self) -> list[str]:
        """What is there besides a whole copy and its lock."""
        names = os.listdir(self.folder)
        kinds = {kind_of(name): name for name in names}
        if self.entry() is not None:
            return sorted(name for kind, name in kinds.items() if kind is None or kind[1] == "partial")
        return sorted(names)

    def purge(self) -> None:
        aged(self.folder)
        purge(SYSTEM, self.folder)


STATES = ("nothing", "fresh copy", "stale copy", "interrupted")


def aged(folder: Path, seconds: float = 3600.0) -> None:
    """As if all orphans were left an hour ago. Whole copies keep their times, which are part of what they are."""
    names = os.listdir(folder)
    whole = {kind_of(name) for name in names}
    for name in names:
        kind = kind_of(name)
        if (
            kind is not None
            and kind[1] in ("staged", "manifest")
            and {(kind[0], "staged"), (kind[0], "manifest")} <= whole
        ):
            continue
        with contextlib.suppress(FileNotFoundError):
            then = time.time() - seconds
            os.utime(folder / name, (then, then))
