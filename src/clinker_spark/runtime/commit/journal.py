"""The journal of a commit: every step, forwards and backwards.

A step looks at what is there and does what is missing, so it can be done again after a crash at any moment, in either
direction. Going back keeps what was made, so that going forward stays possible until the journal is gone.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clinker_spark.runtime.commit.seam import Files, Info

JOURNAL = "journal"
DONE = "done"
_IN_MOTION = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT)
_MOST_TRIES, _PAUSE = 40, 0.05
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES, errno.EXDEV)


@dataclass(frozen=True)
class Mark:
    """What a file or folder is known by."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, info: Info) -> Mark:
        return cls(info.size, info.mtime_ns, info.inode)

    def fits(self, info: Info, *, folder: bool) -> bool:
        """Folders are known by their number: what is in them changes their size and time."""
        if folder:
            return info.kind == "folder" and info.inode == self.inode
        return info.kind == "file" and (info.size, info.mtime_ns) == (self.size, self.mtime_ns)


@dataclass(frozen=True)
class Step:
    """`put` brings `made` to `place`; `remove` takes away what is there; `mkdir` makes a folder.

    `old` is what was at `place` before, which goes to `backup`; `new` is what is there afterwards.
    """

    kind: str
    place: str
    made: str = ""
    backup: str = ""
    folder: bool = False
    old: Mark | None = None
    new: Mark | None = None

    def found(self, info: Info | None) -> str:
        """What stands at the place: `nothing`, `new`, `old` or something `foreign`."""
        if info is None:
            return "nothing"
        fitting = [
            (mark.inode == info.inode, name)
            for name, mark in (("old", self.old), ("new", self.new))
            if mark is not None and mark.fits(info, folder=self.folder)
        ]
        return max(fitting)[1] if fitting else "foreign"


@dataclass(frozen=True)
class Journal:
    """A commit. `folders` are the attempt folders, the one with the journal first; `locks` what its run held."""

    pipeline: str
    folders: tuple[str, ...]
    locks: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def places(self) -> list[Path]:
        return [Path(step.place) for step in self.steps if step.kind != "mkdir"]

    @property
    def parents(self) -> list[Path]:
        """The folders in which names change, each once."""
        return list(dict.fromkeys(Path(step.place).parent for step in self.steps))

    def write(self, files: Files) -> None:
        """From here on the commit is finished or undone, whatever happens."""
        main = Path(self.folders[0])
        draft = main / f"{JOURNAL}.new"
        files.write(draft, json.dumps(asdict(self), ensure_ascii=False).encode())
        files.sync(draft)
        files.rename(draft, main / JOURNAL)
        files.sync(main)

    @classmethod
    def read(cls, files: Files, main: Path) -> Journal:
        data: Any = json.loads(files.read(main / JOURNAL))
        steps = []
        for item in data["steps"]:
            for key in ("old", "new"):
                item[key] = None if item[key] is None else Mark(**item[key])
            steps.append(Step(**item))
        return cls(data["pipeline"], tuple(data["folders"]), tuple(data["locks"]), tuple(steps))


class Foreign(OSError):
    """Somebody else put something at a place while it was being published."""


def forward(files: Files, journal: Journal, *, live: bool) -> list[str]:
    """All steps; gives the places that are left alone because somebody else has been there since the crash. In a live
    run that is an error instead."""
    left = []
    for step in journal.steps:
        if not _forward(files, step):
            if live:
                raise Foreign(errno.EEXIST, "it changed while the run published", step.place)
            left.append(step.place)
    for folder in journal.parents:
        if files.stat(folder) is not None:
            files.sync(folder)
    return left


def _forward(files: Files, step: Step) -> bool:
    place, backup = Path(step.place), Path(step.backup)
    if step.kind == "mkdir":
        files.mkdir(place)
        return True
    now = files.stat(place)
    found = step.found(now)
    if step.kind == "remove":
        if found == "old" and files.stat(backup) is None:
            files.rename(place, backup)
        return found != "foreign"
    if files.stat(Path(step.made)) is None:
        return found == "new"
    if found == "foreign":
        return False
    if found == "old" and files.stat(backup) is None:
        _set_aside(files, place, backup, step.folder)
    files.rename(Path(step.made), place)
    return True


def _set_aside(files: Files, place: Path, backup: Path, folder: bool) -> None:
    """A file gets a second name, so that there is no moment without it; a folder has to move."""
    if not folder:
        try:
            files.link(place, backup)
            return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
    files.rename(place, backup)


def backward(files: Files, journal: Journal) -> list[str]:
    """Undo all steps; gives the places that somebody else has changed since."""
    left = [step.place for step in reversed(journal.steps) if not _backward(files, step)]
    for folder in journal.parents:
        if files.stat(folder) is not None:
            files.sync(folder)
    return left


def _backward(files: Files, step: Step) -> bool:
    place, made, backup = Path(step.place), Path(step.made), Path(step.backup)
    if step.kind == "mkdir":
        if (info := files.stat(place)) is not None and info.kind == "folder" and not files.names(place):
            files.rmdir(place)
        return True
    found = step.found(files.stat(place))
    if step.kind == "remove":
        if found == "nothing" and files.stat(backup) is not None:
            files.rename(backup, place)
        return found != "foreign"
    if step.old is None:
        if found == "new" and files.stat(made) is None:
            files.rename(place, made)
        return found != "foreign"
    if files.stat(backup) is None:  # not yet begun, or undone already
        return found in ("old", "nothing")
    if found == "old":  # its second name
        return True
    if found == "new":
        if step.folder:
            files.rename(place, made)
        elif files.stat(made) is None:
            _set_aside(files, place, made, folder=False)
        found = step.found(files.stat(place)) if not step.folder else "nothing"
    if found == "foreign":
        return False
    files.rename(backup, place)
    return True


def can_finish(files: Files, journal: Journal) -> bool:
    """Is everything there that has to be put in its place?"""
    return all(
        files.stat(Path(step.made)) is not None or step.found(files.stat(Path(step.place))) == "new"
        for step in journal.steps
        if step.kind == "put"
    )


def finish(files: Files, main: Path) -> None:
    """The commit is done: what is left is cleaning. Going forward again would change nothing, so nothing is synced."""
    files.rename(main / JOURNAL, main / DONE)


def forget(files: Files, main: Path) -> None:
    """The commit is undone."""
    files.unlink(main / JOURNAL)
    files.sync(main)


def remove_tree(files: Files, path: Path) -> None:
    """A file, or a folder with everything in it. A JVM that outlives its driver for a moment, or whose jobs were just
    cancelled, may still make and remove files there: then it is tried again."""
    for _ in range(_MOST_TRIES):
        try:
            return _remove_tree(files, path)
        except OSError as error:
            if error.errno not in _IN_MOTION:
                raise
            time.sleep(_PAUSE)
    _remove_tree(files, path)


def _remove_tree(files: Files, path: Path) -> None:
    info = files.stat(path)
    if info is None:
        return
    if info.kind != "folder":
        files.unlink(path)
        return
    for name in files.names(path):
        _remove_tree(files, path / name)
    files.rmdir(path)


def remove_attempts(files: Files, folders: Sequence[Path]) -> None:
    """Attempt folders, the one that tells what happened last, and in it what tells it."""
    main, *others = folders
    for folder in others:
        remove_tree(files, folder)
    telling = (JOURNAL, DONE, "owner")
    if files.stat(main) is None:
        return
    for name in sorted(files.names(main), key=lambda name: (name.startswith("other-"), name)):
        if name not in telling:
            remove_tree(files, main / name)
    for name in telling:
        files.unlink(main / name)
    files.rmdir(main)
