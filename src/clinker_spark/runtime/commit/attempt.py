"""An attempt: all that one run makes, and how it becomes visible as a whole.

Its folders are named `.clinker-<id>-<machine>` and lie beside the outputs, so that renames stay on one file system. The
first one has the journal and knows the others. States: *staged* until the journal is there, *committing* until it is
renamed to `done`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.runtime.commit import journal as steps
from clinker_spark.runtime.commit import manifest as manifests
from clinker_spark.runtime.commit.claims import Claim, Refusal, check_claims, check_nesting, refused
from clinker_spark.runtime.commit.journal import Journal, Step, remove_attempts, remove_tree
from clinker_spark.runtime.commit.locks import Busy, Locks, identity, lock_file
from clinker_spark.runtime.commit.manifest import Written, manifest_path
from clinker_spark.runtime.commit.recovery import (
    OTHER,
    OWNER,
    POINTER,
    attempt_name,
    process_began,
    recover,
)
from clinker_spark.runtime.commit.seam import FILE, FOLDER, SYSTEM, Files, Lock, is_stream
from clinker_spark.runtime.commit.signals import undisturbed
from clinker_spark.runtime.commit.staging import Claimed, Made, Provenance, Staging, missing_folders
from clinker_spark.runtime.errors import IoError

_MANIFEST_WAIT = 60.0
"""Other runs hold a manifest only while they rename."""
_TRIES = 200
_PAUSE = 0.05


def _folder_name(name: str) -> str:
    """The folder of an output in its attempt: no two outputs have the same, and none that of the attempt's own files.

    >>> _folder_name("journal"), _folder_name("call/node"), _folder_name("call~node")
    ('made-journal', 'made-call~1node', 'made-call~0node')
    """
    readable = name.replace("~", "~0").replace("/", "~1")
    if len(readable.encode()) > 100:
        readable = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"made-{readable}"


@dataclass
class Attempt:
    """All that one run makes. `claim` asks for the outputs, `put` and `remove` note what is to happen to them, and
    `publish` does it."""

    execution_id: str
    pipeline: str = ""
    files: Files = field(default_factory=lambda: SYSTEM)
    force: bool = False
    wait: float = 10.0
    tell: Callable[[str, dict[str, Any]], None] = field(default=lambda event, details: None)
    keeps_manifest: bool = True
    """Only what has more than one file, or may be removed later, needs one."""

    claims: dict[str, Claim] = field(default_factory=dict)
    provenance: Provenance = field(default_factory=Provenance)
    warnings: list[Diagnostic] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Files of earlier runs that this one no longer writes."""
    state: str = "open"
    """`open`, `committing`, `done`. It stays `committing` when that could be neither finished nor undone."""

    def __post_init__(self) -> None:
        self.locks = Locks(self.files, self.pipeline, self.wait, self.tell)
        self._tops: dict[Path, Path] = {}
        """The attempt folder in each folder that has one; the main one first."""
        self._owner: Lock | None = None
        self._made_folders: list[Path] = []
        self._puts: list[Made] = []
        self._sends: list[tuple[Path, Path]] = []
        self._removals: list[tuple[Path, str]] = []
        self._places: dict[str, Path] = {}
        """Where each claim leads, behind all links."""
        self._homes: dict[str, Path] = {}
        self._streams: set[str] = set()
        self._notes: dict[str, list[str]] = {}
        self._protected: list[Path] = []

    # ------------------------------------------------------------ outputs

    def claim(self, claims: Iterable[Claim], protected: Iterable[Path] = ()) -> None:
        """Lock the outputs, finish what a crash left beside them, and make sure that they may be written.

        `protected` are files that must survive whatever is replaced: inputs, the pipeline. Raises `Refusal`."""
        asked = self._resolve(claims, protected)
        held = sorted((claim for claim in asked if claim.key in self._homes), key=self._lock_place)
        self._begin(held)
        for claim in held:
            with refused(claim):
                self._lock(claim)
        self._recover([*dict.fromkeys(self._homes.values()), *([_temporary()] if self._streams else [])])
        self._check()

    def review(self, claims: Iterable[Claim], protected: Iterable[Path] = ()) -> None:
        """Would they be refused? Raises `Refusal`, and does nothing else."""
        self._resolve(claims, protected)
        self._check()

    def _resolve(self, claims: Iterable[Claim], protected: Iterable[Path]) -> list[Claim]:
        asked = list(claims)
        self.claims |= {claim.key: claim for claim in asked}
        self._protected += protected
        for claim in asked:
            with refused(claim):
                self._places[claim.key] = self.files.resolve(claim.place)
                if is_stream(self.files, claim.place):
                    self._streams.add(claim.key)
                    continue
                home = self._places[claim.key].parent if claim.home is None else self.files.resolve(claim.home)
                self._homes[claim.key] = home
        check_nesting([self.claims[key] for key in self._homes], self._places)
        return asked

    def recover(self, folders: Iterable[Path]) -> None:
        """Finish what a crash left in folders, before anything is read."""
        self._recover([self.files.resolve(folder) for folder in folders])

    def _begin(self, held: list[Claim]) -> None:
        """Make the main folder, which knows what else is made."""
        if not held or self._tops:
            return
        first = next(claim for claim in self.claims.values() if claim.key in self._homes)
        with refused(first):
            places = [self._lock_place(claim) for claim in held]
            folders = {f: None for place in places for f in missing_folders(self.files, place.parent)}
            locked = [*places, *(manifest_path(home, self.pipeline) for home in dict.fromkeys(self._homes.values()))]
            self._notes = {"locks": [str(lock_file(p)) for p in locked], "folders": [str(f) for f in folders]}
            self._make_folders(self._homes[first.key])
            self.top(self._homes[first.key])

    def _lock(self, claim: Claim) -> None:
        place = self._lock_place(claim)
        self._make_folders(place.parent)
        try:
            self.locks.take([place])
        except Busy as busy:
            [found] = busy.diagnostics
            raise Refusal(claim, found.code, found.message, found.help or "") from None

    def _lock_place(self, claim: Claim) -> Path:
        """What is locked: the file behind all links; the path with its tokens, where several are made of it."""
        if not claim.several or claim.key in self._streams:
            return self._places[claim.key]
        home = self._homes[claim.key]
        return home / claim.key_in(home).replace("/", "\n")

    def _recover(self, homes: list[Path]) -> None:
        found = recover(self.files, homes, held=[str(path) for path in self.locks.held])
        mine = {*self._places.values(), *(manifest_path(home, self.pipeline) for home in homes)}
        for item in found:
            if item.is_unfinished and mine & set(map(Path, item.places)):
                message = f"an earlier run stopped while it published, and cannot be finished: {item.reason}"
                help_text = f"see to '{item.folder}', then run: clinker recover '{item.folder.parent}'"
                raise IoError([Diagnostic("E424", message, help=help_text)])
            text = item.sentence()
            if text is not None and all(text != known.message for known in self.warnings):
                self.warnings.append(Diagnostic("W421", text))

    def _check(self) -> None:
        known = {key: self._known(self.claims[key]) for key in self._homes}
        check_claims(
            self.files,
            list(self.claims.values()),
            self._places,
            known,
            self._streams,
            self._protected,
            force=self.force,
        )
        for key in () if self.force else self._homes:
            claim, place = self.claims[key], self._places[key]
            if claim.letters and str(place) not in known[key] and self.files.stat(place) is not None:
                other = manifests.writer_of(self.files, place, self.pipeline)
                if other is not None:
                    message = f"'{claim.shown}' has the dead letters of another pipeline, '{other}'"
                    raise Refusal(claim, "E422", message, "give each pipeline its own, or run with --force")

    def _known(self, claim: Claim) -> dict[str, Written]:
        home = self._homes[claim.key]
        written = manifests.load(self.files, home, self.pipeline).outputs.get(claim.key_in(home), {})
        return {os.path.normpath(home / name): item for name, item in written.items()}

    # ------------------------------------------------------------ folders

    def folder(self, beside: Path, name: str) -> Path:
        """A folder for what is made for a place."""
        absolute = Path(os.path.abspath(beside))  # a Spark that runs elsewhere may work in another folder
        if is_stream(self.files, absolute):
            parent = _temporary()
        else:
            parent = self.files.resolve(absolute).parent
        self._make_folders(parent)
        made = self.top(parent) / _folder_name(name)
        self.files.mkdir(made)
        return made

    def _make_folders(self, folder: Path) -> None:
        for missing in missing_folders(self.files, folder):
            if self.files.mkdir(missing):
                self._made_folders.append(missing)

    def top(self, parent: Path) -> Path:
        """The attempt folder in a folder."""
        if parent in self._tops:
            return self._tops[parent]
        top = parent / attempt_name(self.execution_id)
        if self._tops:
            main = next(iter(self._tops.values()))
            # First the note that leads there: what nobody knows of would never be removed.
            self.files.write(main / f"{OTHER}{len(self._tops)}", json.dumps(str(top)).encode())
            self._tops[parent] = top
            self.files.mkdir(top)
            self.files.write(top / POINTER, json.dumps(str(main)).encode())
        else:
            self._tops[parent] = top
            self._owner = self._own(top)
        return top

    def _own(self, top: Path) -> Lock:
        """Make the main folder, and show that its process lives. Somebody who looks for crashed runs may take it for
        one of them as long as it is not locked: then it is made again."""
        for last in (False,) * (_TRIES - 1) + (True,):
            try:
                self._make_folders(top.parent)
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
        who = json.loads(identity(self.pipeline)) | {"began": process_began(os.getpid())} | self._notes
        try:
            self.files.write(top / OWNER, json.dumps(who, ensure_ascii=False).encode())
        except OSError:
            self.files.unlock(lock, remove=False)
            raise
        return lock

    # ------------------------------------------------------------ what is to happen

    def put(self, made: Path, place: Path, claim: str, source: str | None = None, *, replaces: bool = False) -> None:
        """Note a finished file (or folder), its place and whose it is. With `replaces`, it may be there already,
        whatever the claim says."""
        owner = self.claims.get(claim) or Claim(claim, place)
        with refused(owner):
            if is_stream(self.files, place):
                self._sends.append((made, place))
                return
            resolved = self.files.resolve(place)
            there, is_folder = self.files.stat(resolved), made.is_dir()
            if there is not None and owner.fresh and not replaces:
                raise Refusal(owner, "E406", f"'{place}' is there already", "another run wrote it meanwhile: run again")
            if there is not None and (there.kind == FOLDER) != is_folder:
                raise Refusal(owner, "E401", f"'{place}' is a {'file' if is_folder else 'folder'}", _OTHER_PATH)
            if there is not None and there.kind not in (FILE, FOLDER):
                raise Refusal(owner, "E425", f"'{place}' is no file that can be replaced", _OTHER_PATH)
            if any(item.place == resolved for item in self._puts):
                raise Refusal(owner, "E322", f"'{place}' is written twice", "give each output its own path")
            self._puts.append(Made(self._near(made, resolved), resolved, claim, source))

    def _near(self, made: Path, place: Path) -> Path:
        """The same on the file system of its place."""
        parent = place.parent
        while (there := self.files.stat(parent)) is None:
            parent = parent.parent
        mine = self.files.stat(made)
        assert mine is not None
        if mine.device == there.device:
            return made
        near = self.folder(parent / "x", "near") / f"{len(self._puts)}"
        self.files.copy(made, near)
        return near

    def remove(self, place: Path, claim: str) -> None:
        """Note a file that must not be there after this run."""
        self._removals.append((place, claim))

    def forget(self) -> None:
        """Nothing of what was noted is to happen: it is made again."""
        self._puts.clear()
        self._sends.clear()
        self._removals.clear()

    def discard(self, folder: Path) -> None:
        """Remove what was made in a folder of the attempt."""
        remove_tree(self.files, folder)

    # ------------------------------------------------------------ publishing

    def publish(self) -> None:
        """Make everything visible. After an error all is as it was, and so the message says; else the error is one
        that says what is not."""
        homes = list(dict.fromkeys(self._homes.values())) if self.keeps_manifest else []
        manifests_here = [manifest_path(home, self.pipeline) for home in homes]
        staging = Staging(self, self._puts, self._removals)
        try:
            staging.finish_files()
            for made, device in self._sends:  # cannot be undone: if that fails, nothing else has happened
                self.files.send(made, device)
            self.locks.take(manifests_here, _MANIFEST_WAIT)
            with undisturbed():
                self._recover(homes)
                self._check()
                self._commit(staging.steps(self._claimed() if homes else []))
                self.tell("published", {"files": [str(item.place) for item in self._puts], "removed": self.removed})
                self.locks.release(manifests_here)
                self.clean()
        except OSError as error:
            raise IoError([self._failed(error)]) from error

    def _claimed(self) -> list[Claimed]:
        return [Claimed(self.claims[key], home, self._known(self.claims[key])) for key, home in self._homes.items()]

    def _commit(self, found: list[Step]) -> None:
        if found:
            main = next(iter(self._tops.values()))
            tops, locks = tuple(map(str, self._tops.values())), tuple(map(str, self.locks.held))
            journal = Journal(self.pipeline, tops, locks, tuple(found))
            self.state = "committing"
            try:
                journal.write(self.files)
                steps.forward(self.files, journal, live=True)
                steps.finish(self.files, main)
            except Exception as error:
                self._undo(journal, main, error)
                raise
        self.state = "done"

    def _failed(self, error: OSError) -> Diagnostic:
        """Nothing is visible of what this run made, or no longer."""
        reason = (error.strerror or str(error)).lower()
        place = f" '{error.filename}'" if error.filename else ""
        code = "E405" if error.errno == errno.ENOSPC else "E401"
        sent = "; what went to a pipe or a device cannot be taken back" if self._sends else ""
        help_text = f"nothing was published, the previous outputs are as they were{sent}"
        return Diagnostic(code, f"cannot publish{place}: {reason}", help=help_text)

    def _undo(self, journal: Journal, main: Path, error: Exception) -> None:
        try:
            steps.backward(self.files, journal)
            steps.forget(self.files, main)
            self.state = "open"
        except Exception as second:
            reasons = [(getattr(e, "strerror", None) or str(e)).lower() for e in (error, second)]
            message = f"the outputs could not be published ({reasons[0]}), nor put back ({reasons[1]})"
            help_text = f"some may be new and others old: see to the cause, then run: clinker recover '{main.parent}'"
            raise IoError([Diagnostic("E423", message, help=help_text)]) from error

    def clean(self) -> None:
        """Remove what was made and not published; let go of everything. What cannot be removed now, the next run does;
        a commit that is not finished needs all of it."""
        self.locks.release()
        if self._tops and self.state != "committing":
            with contextlib.suppress(OSError):
                remove_attempts(self.files, list(self._tops.values()))
        self._tops.clear()
        if self._owner is not None:
            with contextlib.suppress(OSError):
                self.files.unlock(self._owner, remove=False)
            self._owner = None
        if self.state == "open":
            self._remove_made_folders()

    def _remove_made_folders(self) -> None:
        """Folders that were made for outputs that did not come."""
        while self._made_folders:
            with contextlib.suppress(OSError):
                self.files.rmdir(self._made_folders.pop())


def _temporary() -> Path:
    """Where files are made that belong to a pipe or a device."""
    return Path(tempfile.gettempdir()).resolve()


_OTHER_PATH = "choose another path; nothing was published"
