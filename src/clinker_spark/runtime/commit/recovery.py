"""What a crash left: an attempt that was only staged is discarded, one that was committing is finished (or undone, if
something of it is missing), one that was done is cleaned up.

An attempt belongs to a process as long as that holds the lock on its `owner` file. The name of the folder says on which
machine it was made, and only there are locks sure to be seen: attempts of other machines are left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import socket
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinker_spark.runtime.commit import journal as steps
from clinker_spark.runtime.commit.journal import DONE, JOURNAL, Journal, remove_attempts
from clinker_spark.runtime.commit.locks import LOCK_PREFIX
from clinker_spark.runtime.commit.seam import FOLDER, Files

PREFIX = ".clinker-"
OWNER = "owner"
_ORPHAN_SECONDS = 60.0
"""An attempt is without an owner for a moment only, when it is made or removed."""
POINTER = "main"
"""In the other folders of an attempt: where the one with the journal is."""
OTHER = "other-"
"""In that one: where the others are."""
_NAME = re.compile(re.escape(PREFIX) + r".+-[0-9a-f]{8}")
_PAUSE = 0.05
_PATIENCE = 30.0


@dataclass(frozen=True)
class Recovered:
    """What became of an attempt: finished, undone, discarded, cleaned or left."""

    folder: Path
    what: str
    pipeline: str = ""
    places: tuple[str, ...] = ()
    reason: str = ""
    skipped: tuple[str, ...] = ()
    """Places that somebody else has changed since the crash."""

    @property
    def is_unfinished(self) -> bool:
        """Is it a commit that somebody still has to finish?"""
        return self.what == "left" and bool(self.places)

    def sentence(self) -> str | None:
        """What there is to say about it; None when it concerns nobody."""
        who = f"an earlier run of '{self.pipeline}'" if self.pipeline else "an earlier run"
        but = f"; left as they are, since somebody changed them: {', '.join(self.skipped)}" if self.skipped else ""
        match self.what:
            case "finished":
                return f"{who} stopped while it published: its outputs were put in place now{but}"
            case "undone":
                return f"{who} stopped while it published: the outputs before it were put back{but}"
            case "left":
                return f"{who} left '{self.folder}', which stays: {self.reason}"
        return None


def attempt_name(execution_id: str) -> str:
    return f"{PREFIX}{execution_id}-{_this_machine()}"


def _this_machine() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def recover(
    files: Files, folders: Iterable[Path], *, held: Collection[str] = (), force: bool = False
) -> list[Recovered]:
    """Deal with what crashes left in these folders. `held` are the lock files of the caller: a commit that needs them
    cannot belong to a run, and is waited for when another process is just finishing it. With `force`, attempts of other
    machines are taken to be dead."""
    found: list[Recovered] = []
    for main in _attempts(files, folders):
        result = _recover(files, main, held, force)
        if result is not None:
            found.append(result)
    for folder in dict.fromkeys(folders):
        _remove_free_locks(files, folder, held)
    return found


def _attempts(files: Files, folders: Iterable[Path]) -> list[Path]:
    """The attempts with something in these folders, each by its main folder."""
    mains: dict[Path, None] = {}
    for folder in dict.fromkeys(folders):
        if (info := files.stat(folder)) is None or info.kind != FOLDER:
            continue
        for name in _names(files, folder):
            path = folder / name
            if not _NAME.fullmatch(name) or (info := files.stat(path)) is None or info.kind != FOLDER:
                continue
            if files.stat(path / POINTER) is None:
                # A JVM that outlives its driver for a moment may make a folder again that was removed already.
                orphan = time.time() - info.mtime_ns / 1e9 > _ORPHAN_SECONDS
                if files.stat(path / OWNER) is not None or orphan or not _names(files, path):
                    mains[path] = None
            elif (main := _text(files, path / POINTER)) is not None:
                mains[Path(main)] = None
    return list(mains)


def _names(files: Files, folder: Path) -> list[str]:
    """The names in a folder, which another run may be removing in this moment."""
    try:
        return files.names(folder)
    except FileNotFoundError:
        return []


def _text(files: Files, path: Path) -> str | None:
    """A path that was noted; None when the crash came before it was all there."""
    try:
        found = json.loads(files.read(path))
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, str) else None


def _recover(files: Files, main: Path, held: Collection[str], force: bool) -> Recovered | None:
    if files.stat(main) is None:
        reason = f"the folder '{main}' that knows more is not there: is its disk mounted?"
        return Recovered(main, "left", reason=reason)
    if not main.name.endswith(f"-{_this_machine()}") and not force:
        pipeline, places = _told(files, main)
        return Recovered(main, "left", pipeline, places, "it was made on another machine")
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            lock = files.lock(main / OWNER)
        except FileNotFoundError:  # somebody else was faster
            return None
        if lock is not None:
            break
        pipeline, places = _told(files, main)
        if not _needs(files, main, held):
            return None  # a run that goes on
        if time.monotonic() > until:
            return Recovered(main, "left", pipeline, places, "another process is at it")
        time.sleep(_PAUSE)
    try:
        if lock.handle is None and _is_running(files, main):  # no locks here: the process itself has to do
            return None
        return _settle(files, main)
    except (ValueError, KeyError, TypeError):
        return Recovered(main, "left", _owner(files, main), reason="its journal cannot be read")
    except OSError as error:
        pipeline, places = _told(files, main)
        reason = f"{(error.strerror or str(error)).lower()}" + (f": '{error.filename}'" if error.filename else "")
        return Recovered(main, "left", pipeline, places, reason)
    finally:
        files.unlock(lock, remove=False)


def _needs(files: Files, main: Path, held: Collection[str]) -> bool:
    """Does an attempt need locks that the caller has?"""
    journal = _journal(files, main)
    return journal is not None and bool(set(journal.locks) & set(held))


def _settle(files: Files, main: Path) -> Recovered:
    """The lock is ours: nobody else works on this attempt."""
    pipeline = _owner(files, main)
    if files.stat(main / DONE) is not None:
        _discard(files, main)
        return Recovered(main, "cleaned", pipeline)
    journal = _journal(files, main)
    if journal is None:
        _discard(files, main)
        return Recovered(main, "discarded", pipeline)
    places = tuple(map(str, journal.places))
    if Path(journal.folders[0]) != main:  # nothing that it names is where it was
        return Recovered(main, "left", pipeline, places, f"it was moved: it belongs to '{journal.folders[0]}'")
    if steps.can_finish(files, journal):
        try:
            skipped = steps.forward(files, journal, live=False)
        except OSError:  # then at least all of them are old
            skipped = steps.backward(files, journal)
        else:
            steps.finish(files, main)
            _discard(files, main)
            return Recovered(main, "finished", journal.pipeline, places, skipped=tuple(skipped))
    else:
        skipped = steps.backward(files, journal)
    steps.forget(files, main)
    _discard(files, main)
    return Recovered(main, "undone", journal.pipeline, places, skipped=tuple(skipped))


def _discard(files: Files, main: Path) -> None:
    """What is not removed now is removed next time."""
    notes = _notes(files, main)
    with contextlib.suppress(OSError):
        for path in notes.get("locks", []):
            _remove_if_free(files, Path(path))
        remove_attempts(files, attempt_folders(files, main))
        for folder in reversed(notes.get("folders", [])):  # made for outputs that did not come
            files.rmdir(Path(folder))


def attempt_folders(files: Files, main: Path) -> list[Path]:
    """All folders of an attempt, the main one first. A copy of it (`cp -r` of a folder while a run goes on) names those
    of the original, which lead back to that: they are none of the copy's."""
    noted = [_text(files, main / name) for name in files.names(main) if name.startswith(OTHER)]
    others = [Path(other) for other in noted if other is not None]
    return [main, *(other for other in others if _text(files, other / POINTER) in (None, str(main)))]


def _journal(files: Files, main: Path) -> Journal | None:
    if files.stat(main / JOURNAL) is None:
        return None
    try:
        return Journal.read(files, main)
    except FileNotFoundError:  # done in this moment
        return None


def _told(files: Files, main: Path) -> tuple[str, tuple[str, ...]]:
    try:
        journal = _journal(files, main)
    except (OSError, ValueError, KeyError, TypeError):
        journal = None
    return ("", ()) if journal is None else (journal.pipeline, tuple(map(str, journal.places)))


def _notes(files: Files, main: Path) -> dict[str, Any]:
    """What the owner noted about itself, as far as it came."""
    try:
        data: Any = json.loads(files.read(main / OWNER))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _owner(files: Files, main: Path) -> str:
    return str(_notes(files, main).get("pipeline", ""))


def _is_running(files: Files, main: Path) -> bool:
    notes = _notes(files, main)
    return "pid" in notes and process_began(int(notes["pid"])) == notes.get("began")


def process_began(pid: int) -> str:
    """When a process began; process numbers are used again."""
    import psutil  # takes a while to load, and few ask

    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.Error:
        return "-"


def _remove_free_locks(files: Files, folder: Path, held: Collection[str]) -> None:
    """Files of locks that nobody holds: their processes could not remove them."""
    if (info := files.stat(folder)) is None or info.kind != FOLDER:
        return
    for name in _names(files, folder):
        path = folder / name
        if name.startswith(LOCK_PREFIX) and str(path) not in held:
            _remove_if_free(files, path)


def _remove_if_free(files: Files, path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # its folder, too, may go in this moment
        if files.stat(path) is not None and (lock := files.lock(path)) is not None:
            files.unlock(lock, remove=lock.handle is not None)
