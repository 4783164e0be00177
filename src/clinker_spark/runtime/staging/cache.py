"""Who copies and who takes what is there: decided under the lock of the source.

Whoever copies, replaces or removes holds the lock alone; whoever reads shares it, from the moment of the choice to the
end of reading. So a copy that was chosen is neither removed nor replaced, and of many runs that want one source at the
same time one copies it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from clinker_spark.runtime.commit.seam import Files, Lock
from clinker_spark.runtime.staging.copying import Job, Progress, copy
from clinker_spark.runtime.staging.entry import PRIVATE, Entry, Original, Places, mark_of, places, trusted
from clinker_spark.runtime.staging.errors import NotStaged, unusable

COPIED, REUSED = "copied", "reused"
_PAUSE = 0.02


@dataclass(frozen=True)
class Policy:
    """What [storage.staging] says about copies."""

    on_existing: str = "overwrite"
    cleanup: str = "on_success"
    verify: bool = True
    disk_cap: int | None = None


@dataclass
class Held:
    """A copy that is read, and the shared lock that keeps it there."""

    at: Places
    entry: Entry
    action: str
    lock: Lock
    seconds: float = 0.0

    @property
    def path(self) -> Path:
        return self.at.copy


@dataclass
class _Wish:
    """A file that is to be held, and what is known on the way there."""

    original: Original
    name: str
    at: Places
    before: tuple[int, int, int] | None
    """The mark of the manifest that was there when this run asked."""
    progress: Progress
    made: Entry | None = None
    """The copy that this run made."""


@dataclass
class Cache:
    """The staging folder as one run uses it."""

    files: Files
    folder: Path
    run: str
    policy: Policy
    waiting: Callable[[str], None] = lambda name: None
    """Told once when a source must be waited for."""
    held: list[Held] = field(default_factory=list)
    copied: int = 0
    """Bytes, in this run."""

    def hold(self, original: Original, name: str, progress: Progress = lambda copied: None) -> Held:
        """A copy of a file, which nobody can take away until `release`. Raises `NotStaged`."""
        began = time.monotonic()
        at = places(self.folder, original.path)
        try:
            before = mark_of(self.files.stat(at.manifest))
            found = self._hold(_Wish(original, name, at, before, progress))
        except OSError as error:
            raise unusable(self.folder, error) from None
        found.seconds = time.monotonic() - began
        self.held.append(found)
        return found

    def _hold(self, wish: _Wish) -> Held:
        told = False
        while True:
            lock = self._lock(wish.at, shared=True)
            if lock is not None:
                held = self._usable(wish, lock)
                if held is not None:
                    return held
            lock = self._lock(wish.at, shared=False)
            if lock is not None:
                self._alone(wish, lock)
                # Between the two kinds of lock somebody else may have come.
                if self.files.share(lock):
                    held = self._usable(wish, lock)
                    if held is not None:
                        return held
            else:
                if not told:
                    self.waiting(wish.name)
                    told = True
                time.sleep(_PAUSE)

    def _lock(self, at: Places, *, shared: bool) -> Lock | None:
        lock = self.files.lock(at.lock, shared=shared, mode=PRIVATE)
        if lock is not None and lock.handle is None:
            help_text = "name a folder on a local disk: without locks a run could remove what another one reads"
            raise NotStaged("E426", f"cannot stage files in '{self.folder}': its file system has no locks", help_text)
        return lock

    def _usable(self, wish: _Wish, lock: Lock) -> Held | None:
        """With a lock: the copy, if this run may read it; otherwise the lock is let go."""
        try:
            entry = self._fresh(wish)
            if entry is not None:
                return Held(wish.at, entry, COPIED if entry == wish.made else REUSED, lock)
        except BaseException:
            self._let_go(lock)
            raise
        self.files.unlock(lock, remove=False)
        return None

    def _fresh(self, wish: _Wish) -> Entry | None:
        """The copy, if it is one of the file as it is, and `on_existing` lets this run use it: with `overwrite` only
        one that was made since this run asked for it, with `error` only its own."""
        entry = trusted(self.files, wish.at)
        if entry is None or not entry.is_of(wish.original):
            return None
        if entry == wish.made or self.policy.on_existing == "reuse":
            return entry
        if self.policy.on_existing == "error":
            return None
        return entry if mark_of(self.files.stat(wish.at.manifest)) != wish.before else None

    def _alone(self, wish: _Wish, lock: Lock) -> None:
        """With the lock in hand: make a copy, unless somebody else was faster."""
        try:
            if self._fresh(wish) is not None:
                return
            if self.policy.on_existing == "error" and trusted(self.files, wish.at) is not None:
                at = wish.at
                help_text = f'remove \'{at.copy}\' and its manifest, or write on_existing = "reuse" or "overwrite"'
                message = f"there is a staged copy of '{wish.name}' already, '{at.copy}'"
                raise NotStaged("E337", message, help_text, "on_existing")
            self._charge(wish.original, wish.name)
            job = Job(wish.original, wish.name, wish.at, self.run, self.policy.verify)
            wish.made = copy(self.files, job, wish.progress)
            self.copied += wish.original.size
        except BaseException:
            self._let_go(lock)
            raise

    def _charge(self, original: Original, name: str) -> None:
        cap = self.policy.disk_cap
        if cap is not None and self.copied + original.size > cap:
            message = (
                f"the copies of this run would take more than the {cap:,} bytes of 'disk_cap_bytes': "
                f"{self.copied:,} so far, and {original.size:,} of '{name}'"
            )
            help_text = "raise disk_cap_bytes, or stage fewer files ('patterns')"
            raise NotStaged("E336", message, help_text, "disk_cap_bytes")

    def release(self, *, success: bool) -> list[Path]:
        """Let go of all copies, and remove them if `cleanup` says so and nobody else reads them. What could not be
        removed is given back."""
        removes = self.policy.cleanup == "always" or (self.policy.cleanup == "on_success" and success)
        left: list[Path] = []
        for held in self.held:
            self._let_go(held.lock)
            if removes:
                try:
                    self._remove(held)
                except OSError:
                    left.append(held.path)
        self.held.clear()
        return left

    def _remove(self, held: Held) -> None:
        at = held.at
        lock = self.files.lock(at.lock, mode=PRIVATE)
        if lock is None:
            return  # whoever reads it removes it, or a later purge does
        try:
            # Somebody else may have put another copy there meanwhile, to keep it.
            if trusted(self.files, at) == held.entry:
                self.files.unlink(at.manifest)
                self.files.unlink(at.copy)
            empty = self.files.stat(at.copy) is None and self.files.stat(at.manifest) is None
        except BaseException:
            self._let_go(lock)
            raise
        self.files.unlock(lock, remove=empty)

    def _let_go(self, lock: Lock) -> None:
        """The lock file stays: it is where the next ones meet."""
        with contextlib.suppress(OSError):
            self.files.unlock(lock, remove=False)
