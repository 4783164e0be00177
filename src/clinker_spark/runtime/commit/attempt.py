"""An attempt: all that one run makes, and how it becomes visible as a whole.

Its folders are named `.clinker-<id>-<machine>` and lie beside the outputs, so that renames stay on one file system. The
first one has the journal and knows the others. States: *staged* until the journal is there, *committing* until it is
renamed to `done`.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.runtime.commit import journal as steps
from clinker_spark.runtime.commit import manifest as manifests
from clinker_spark.runtime.commit.attempt_folders import AttemptFolders, folder_name
from clinker_spark.runtime.commit.claims import Claim, Refusal, check_claims, check_nesting, refused
from clinker_spark.runtime.commit.journal import Journal, Step, remove_tree
from clinker_spark.runtime.commit.locks import Busy, Locks, lock_file
from clinker_spark.runtime.commit.manifest import Written, manifest_path
from clinker_spark.runtime.commit.recovery import (
    recover,
)
from clinker_spark.runtime.commit.seam import FILE, FOLDER, SYSTEM, Files, is_stream
from clinker_spark.runtime.commit.signals import undisturbed
from clinker_spark.runtime.commit.staging import Claimed, Made, Provenance, Staging, missing_folders
from clinker_spark.runtime.errors import IoError

_MANIFEST_WAIT = 60.0
"""Other runs hold a manifest only while they rename."""


@dataclass
class Planned:
    """What is to happen when a run publishes."""

    puts: list[Made] = field(default_factory=list)
    sends: list[tuple[Path, Path]] = field(default_factory=list)
    """To pipes and devices."""
    removals: list[tuple[Path, str]] = field(default_factory=list)


@dataclass
class Held:
    """The outputs that a run asked for, and where they are."""

    claims: dict[str, Claim] = field(default_factory=dict)
    places: dict[str, Path] = field(default_factory=dict)
    """Where each claim leads, behind all links."""
    homes: dict[str, Path] = field(default_factory=dict)
    """By claim that is a file or folder: the folder that it is in."""
    streams: set[str] = field(default_factory=set)
    """The claims that are pipes or devices."""
    protected: list[Path] = field(default_factory=list)

    @property
    def folders(self) -> list[Path]:
        return list(dict.fromkeys(self.homes.values()))


class Attempt:
    """All that one run makes. `claim` asks for the outputs, `put` and `remove` note what is to happen to them, and
    `publish` does it."""

    def __init__(
        self,
        execution_id: str,
        pipeline: str = "",
        files: Files | None = None,
        *,
        force: bool = False,
        wait: float = 10.0,
        tell: Callable[[str, dict[str, Any]], None] = lambda event, details: None,
        keeps_manifest: bool = True,
        provenance: Provenance | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.files = SYSTEM if files is None else files
        self.force = force
        self.keeps_manifest = keeps_manifest
        """Only what has more than one file, or may be removed later, needs one."""
        self.provenance = Provenance() if provenance is None else provenance
        self.warnings: list[Diagnostic] = []
        self.removed: list[str] = []
        """Files of earlier runs that this one no longer writes."""
        self.state = "open"
        """`open`, `committing`, `done`. It stays `committing` when that could be neither finished nor undone."""
        self.locks = Locks(self.files, pipeline, wait, tell)
        self.folders = AttemptFolders(self.files, execution_id, pipeline)
        self.held = Held()
        self.planned = Planned()

    @property
    def execution_id(self) -> str:
        return self.folders.execution_id

    # ------------------------------------------------------------ outputs

    def claim(self, claims: Iterable[Claim], protected: Iterable[Path] = ()) -> None:
        """Lock the outputs, finish what a crash left beside them, and make sure that they may be written.

        `protected` are files that must survive whatever is replaced: inputs, the pipeline. Raises `Refusal`."""
        asked = self._resolve(claims, protected)
        held = sorted((claim for claim in asked if claim.key in self.held.homes), key=self._lock_place)
        self._begin(held)
        for claim in held:
            with refused(claim):
                self._lock(claim)
        self._recover([*self.held.folders, *([_temporary()] if self.held.streams else [])])
        self._check()

    def review(self, claims: Iterable[Claim], protected: Iterable[Path] = ()) -> None:
        """Would they be refused? Raises `Refusal`, and does nothing else."""
        self._resolve(claims, protected)
        self._check()

    def _resolve(self, claims: Iterable[Claim], protected: Iterable[Path]) -> list[Claim]:
        asked = list(claims)
        self.held.claims |= {claim.key: claim for claim in asked}
        self.held.protected += protected
        for claim in asked:
            with refused(claim):
                self.held.places[claim.key] = self.files.resolve(claim.place)
                if is_stream(self.files, claim.place):
                    self.held.streams.add(claim.key)
                    continue
                home = self.held.places[claim.key].parent if claim.home is None else self.files.resolve(claim.home)
                self.held.homes[claim.key] = home
        check_nesting([self.held.claims[key] for key in self.held.homes], self.held.places)
        return asked

    def recover(self, folders: Iterable[Path]) -> None:
        """Finish what a crash left in folders, before anything is read."""
        self._recover([self.files.resolve(folder) for folder in folders])

    def _begin(self, held: list[Claim]) -> None:
        """Make the main folder, which knows what else is made."""
        if not held or self.folders.tops:
            return
        first = next(claim for claim in self.held.claims.values() if claim.key in self.held.homes)
        with refused(first):
            places = [self._lock_place(claim) for claim in held]
            folders = {f: None for place in places for f in missing_folders(self.files, place.parent)}
            locked = [*places, *(manifest_path(home, self.pipeline) for home in self.held.folders)]
            self.folders.notes = {"locks": [str(lock_file(p)) for p in locked], "folders": [str(f) for f in folders]}
            self.folders.make(self.held.homes[first.key])
            self.top(self.held.homes[first.key])

    def _lock(self, claim: Claim) -> None:
        place = self._lock_place(claim)
        self.folders.make(place.parent)
        try:
            self.locks.take([place])
        except Busy as busy:
            [found] = busy.diagnostics
            raise Refusal(claim, found.code, found.message, found.help or "") from None

    def _lock_place(self, claim: Claim) -> Path:
        """What is locked: the file behind all links; the path with its tokens, where several are made of it."""
        if not claim.several or claim.key in self.held.streams:
            return self.held.places[claim.key]
        home = self.held.homes[claim.key]
        return home / claim.key_in(home).replace("/", "\n")

    def _recover(self, homes: list[Path]) -> None:
        found = recover(self.files, homes, held=[str(path) for path in self.locks.held])
        mine = {*self.held.places.values(), *(manifest_path(home, self.pipeline) for home in homes)}
        for item in found:
            if item.is_unfinished and mine & set(map(Path, item.places)):
                message = f"an earlier run stopped while it published, and cannot be finished: {item.reason}"
                help_text = f"see to '{item.folder}', then run: clinker recover '{item.folder.parent}'"
                raise IoError([Diagnostic("E424", message, help=help_text)])
            text = item.sentence()
            if text is not None and all(text != known.message for known in self.warnings):
                self.warnings.append(Diagnostic("W421", text))

    def _check(self) -> None:
        known = {key: self._known(self.held.claims[key]) for key in self.held.homes}
        check_claims(
            self.files,
            list(self.held.claims.values()),
            self.held.places,
            known,
            self.held.streams,
            self.held.protected,
            force=self.force,
        )
        for key in () if self.force else self.held.homes:
            claim, place = self.held.claims[key], self.held.places[key]
            if claim.letters and str(place) not in known[key] and self.files.stat(place) is not None:
                other = manifests.writer_of(self.files, place, self.pipeline)
                if other is not None:
                    message = f"'{claim.shown}' has the dead letters of another pipeline, '{other}'"
                    raise Refusal(claim, "E422", message, "give each pipeline its own, or run with --force")

    def _known(self, claim: Claim) -> dict[str, Written]:
        home = self.held.homes[claim.key]
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
        self.folders.make(parent)
        made = self.top(parent) / folder_name(name)
        self.files.mkdir(made)
        return made

    def top(self, parent: Path) -> Path:
        """The attempt folder in a folder."""
        return self.folders.top(parent)

    # ------------------------------------------------------------ what is to happen

    def put(self, made: Path, place: Path, claim: str, source: str | None = None, *, replaces: bool = False) -> None:
        """Note a finished file (or folder), its place and whose it is. With `replaces`, it may be there already,
        whatever the claim says."""
        owner = self.held.claims.get(claim) or Claim(claim, place)
        with refused(owner):
            if is_stream(self.files, place):
                self.planned.sends.append((made, place))
                return
            resolved = self.files.resolve(place)
            there, is_folder = self.files.stat(resolved), made.is_dir()
            if there is not None and owner.fresh and not replaces:
                raise Refusal(owner, "E406", f"'{place}' is there already", "another run wrote it meanwhile: run again")
            if there is not None and (there.kind == FOLDER) != is_folder:
                raise Refusal(owner, "E401", f"'{place}' is a {'file' if is_folder else 'folder'}", _OTHER_PATH)
            if there is not None and there.kind not in (FILE, FOLDER):
                raise Refusal(owner, "E425", f"'{place}' is no file that can be replaced", _OTHER_PATH)
            if any(item.place == resolved for item in self.planned.puts):
                raise Refusal(owner, "E322", f"'{place}' is written twice", "give each output its own path")
            self.planned.puts.append(Made(self._near(made, resolved), resolved, claim, source))

    def _near(self, made: Path, place: Path) -> Path:
        """The same on the file system of its place."""
        parent = place.parent
        while (there := self.files.stat(parent)) is None:
            parent = parent.parent
        mine = self.files.stat(made)
        assert mine is not None
        if mine.device == there.device:
            return made
        near = self.folder(parent / "x", "near") / f"{len(self.planned.puts)}"
        self.files.copy(made, near)
        return near

    def remove(self, place: Path, claim: str) -> None:
        """Note a file that must not be there after this run."""
        self.planned.removals.append((place, claim))

    def forget(self) -> None:
        """Nothing of what was noted is to happen: it is made again."""
        self.planned = Planned()

    def discard(self, folder: Path) -> None:
        """Remove what was made in a folder of the attempt."""
        remove_tree(self.files, folder)

    # ------------------------------------------------------------ publishing

    def publish(self) -> None:
        """Make everything visible. After an error all is as it was, and so the message says; else the error is one
        that says what is not."""
        homes = self.held.folders if self.keeps_manifest else []
        manifests_here = [manifest_path(home, self.pipeline) for home in homes]
        staging = Staging(self, self.planned.puts, self.planned.removals)
        try:
            staging.finish_files()
            for made, device in self.planned.sends:  # cannot be undone: if that fails, nothing else has happened
                self.files.send(made, device)
            self.locks.take(manifests_here, _MANIFEST_WAIT)
            with undisturbed():
                self._recover(homes)
                self._check()
                self._commit(staging.steps(self._claimed() if homes else []))
                self.locks.tell(
                    "published", {"files": [str(item.place) for item in self.planned.puts], "removed": self.removed}
                )
                self.locks.release(manifests_here)
                self.clean()
        except OSError as error:
            raise IoError([self._failed(error)]) from error

    def _claimed(self) -> list[Claimed]:
        return [
            Claimed(self.held.claims[key], home, self._known(self.held.claims[key]))
            for key, home in self.held.homes.items()
        ]

    def _commit(self, found: list[Step]) -> None:
        if found:
            main = self.folders.main
            tops, locks = tuple(map(str, self.folders.tops.values())), tuple(map(str, self.locks.held))
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
        sent = "; what went to a pipe or a device cannot be taken back" if self.planned.sends else ""
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
        self.folders.remove(keep=self.state == "committing")
        if self.state == "open":
            self.folders.remove_made()


def _temporary() -> Path:
    """Where files are made that belong to a pipe or a device."""
    return Path(tempfile.gettempdir()).resolve()


_OTHER_PATH = "choose another path; nothing was published"
