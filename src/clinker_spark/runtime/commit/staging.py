"""Staging: everything that was made gets its permissions, is hashed and synced; what comes out are the steps that are
left, the new manifests among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.runtime.commit import manifest as manifests
from clinker_spark.runtime.commit.claims import Claim, may_be_letters
from clinker_spark.runtime.commit.journal import Mark, Step
from clinker_spark.runtime.commit.manifest import Manifest, Reading, Round, Written, manifest_path
from clinker_spark.runtime.commit.seam import FOLDER, Files, Info, default_modes


@dataclass(frozen=True)
class Made:
    """A finished file or folder, where it belongs, and whose it is. `source` is the input file that it was made of,
    where each has its own."""

    made: Path
    place: Path
    claim: str
    source: str | None = None


@dataclass(frozen=True)
class Claimed:
    """An output that this run holds, and what an earlier run wrote for it."""

    claim: Claim
    home: Path
    known: dict[str, Written]


@dataclass
class Provenance:
    """What the outputs of a run are made of, for the manifest."""

    inputs: list[dict[str, Any]] = field(default_factory=list)
    replayed: list[str] | None = None
    """In a replay: the dead letters whose records are added to outputs. They come to those of earlier replays; a whole
    run starts anew."""
    round: tuple[int, Round] | None = None
    """In a replay: the number of its files, and the dead letters that they are made of; none, if it has no files."""
    reading: Reading = field(default_factory=Reading)
    """Where only new files are read: all that the outputs are made of after this run."""
    adds: bool = False
    """Does this run add to outputs? Then what replays added to them is still in them."""
    run: dict[str, Any] | None = None
    """What the run did, in numbers."""


class Run(Protocol):
    """What staging has to know of an attempt."""

    pipeline: str
    files: Files
    provenance: Provenance
    warnings: list[Diagnostic]
    removed: list[str]

    @property
    def execution_id(self) -> str: ...

    def top(self, parent: Path) -> Path:
        """The attempt folder in a folder."""


class Staging:
    """Makes the steps of one commit."""

    def __init__(self, run: Run, puts: Sequence[Made], removals: Sequence[tuple[Path, str]]) -> None:
        self.run = run
        self.files = run.files
        self.puts = puts
        self.removals = removals
        self.written: dict[str, dict[Path, Written]] = {}
        """What this run writes, by output."""
        self.found: list[Step] = []
        self.modes = default_modes()

    def finish_files(self) -> None:
        """What takes time: permissions, hashes, and onto the disk."""
        folders: dict[Path, None] = {}
        for item in self.puts:
            folders[item.made.parent] = None
            self._put(item, self.written.setdefault(item.claim, {}))
        for folder in folders:
            self.files.sync(folder)

    def steps(self, claims: Sequence[Claimed]) -> list[Step]:
        """All that is to be done, in order. From here on nobody else may change the manifests."""
        held = {item.claim.key: item for item in claims}
        for place, key in self.removals:
            self._remove_letters(place, held[key])
        for claimed in held.values():
            if claimed.claim.key in self.written and claimed.claim.replaces and not claimed.claim.folder:
                self._remove_stale(claimed)
        for i, home in enumerate(dict.fromkeys(claimed.home for claimed in claims)):
            draft = self.run.top(home) / f"manifest-{i}"
            self.files.write(draft, self._manifest(home, claims).encode())
            self._put(Made(draft, manifest_path(home, self.run.pipeline), ""), {})
        missing: dict[Path, None] = {}
        for item in self.puts:
            missing |= dict.fromkeys(missing_folders(self.files, item.place.parent))
        return [*(Step("mkdir", str(folder)) for folder in missing), *self.found]

    def _backup(self, place: Path) -> str:
        return str(self.run.top(place.parent) / f"backup-{len(self.found)}")

    def _put(self, item: Made, written: dict[Path, Written]) -> None:
        old = self.files.stat(item.place)
        info = self.files.stat(item.made)
        assert info is not None
        is_folder = info.kind == FOLDER
        if is_folder:
            self._adopt(item.made, old, self.modes[1])
            self._finish_folder(item.made, item.place, old is not None, written)
        else:
            self._finish(item.made, item.place, old, written, item.source)
        new = self.files.stat(item.made)
        assert new is not None
        backup = "" if old is None else self._backup(item.place)
        mark = None if old is None else Mark.of(old)
        self.found.append(Step("put", str(item.place), str(item.made), backup, is_folder, old=mark, new=Mark.of(new)))

    def _finish_folder(self, made: Path, place: Path, replaces: bool, written: dict[Path, Written]) -> None:
        """All files of a folder, and of those inside of it."""
        for name in self.files.names(made):
            before = self.files.stat(place / name) if replaces else None
            info = self.files.stat(made / name)
            if info is not None and info.kind == FOLDER:
                self._adopt(made / name, before, self.modes[1])
                self._finish_folder(made / name, place / name, before is not None, written)
            else:
                self._finish(made / name, place / name, before, written)
        self.files.sync(made)

    def _finish(
        self, made: Path, place: Path, old: Info | None, written: dict[Path, Written], source: str | None = None
    ) -> None:
        """A file: its permissions, its hash, and onto the disk."""
        self._adopt(made, old, self.modes[0])
        info = self.files.stat(made)
        assert info is not None
        written[place] = Written.of(self.files, made, info, source)
        self.files.sync(made)

    def _adopt(self, made: Path, old: Info | None, mode: int) -> None:
        """What replaces something gets its permissions and, where this process may, its owner."""
        if old is None:
            self.files.adopt(made, mode, None)
        else:
            self.files.adopt(made, old.mode, (old.uid, old.gid))

    def _remove_letters(self, place: Path, held: Claimed) -> None:
        """Dead letters of an earlier run; nothing else that may be there."""
        self.written.setdefault(held.claim.key, {})
        resolved = self.files.resolve(place)
        info = self.files.stat(resolved)
        if info is not None and info.size and may_be_letters(self.files, resolved, held.known):
            self._remove(resolved, info)

    def _remove(self, place: Path, info: Info) -> None:
        self.found.append(Step("remove", str(place), backup=self._backup(place), old=Mark.of(info)))

    def _remove_stale(self, item: Claimed) -> None:
        """What an earlier run wrote for an output, and this one does not."""
        read = {source["name"] for source in self.run.provenance.inputs}
        settled = {step.place for step in self.found}
        for name, was in item.known.items():
            place = Path(name)
            info = self.files.stat(place)
            if name in settled or info is None:
                continue
            if was.source is not None and was.source not in read:
                self.written[item.claim.key][place] = was  # made of an input that this run does not know
            elif was.is_unchanged(self.files, place, info):
                self._remove(place, info)
                self.run.removed.append(name)
            else:
                message = f"'{name}' was written by an earlier run and changed since: it is left as it is"
                self.run.warnings.append(Diagnostic("W420", message, help="remove it if it is no longer needed"))

    def _manifest(self, home: Path, claims: Sequence[Claimed]) -> Manifest:
        manifest = manifests.load(self.files, home, self.run.pipeline)
        manifest.run = self.run.execution_id
        if self.run.provenance.replayed is None:
            manifest.inputs, manifest.reading = self.run.provenance.inputs, self.run.provenance.reading
            if not self.run.provenance.adds:
                manifest.replayed, manifest.rounds = [], {}
        else:  # the inputs are still those of the run whose letters these were
            manifest.replayed = list(dict.fromkeys([*manifest.replayed, *self.run.provenance.replayed]))
        if self.run.provenance.round is not None:
            number, made_of = self.run.provenance.round
            letters = os.path.relpath(made_of.letters, home) if made_of.letters else ""
            manifest.rounds.pop(str(number), None)
            if made_of.ids:
                manifest.rounds[str(number)] = Round(letters, made_of.ids)
        if self.run.provenance.run is not None:
            manifest.runs.append(self.run.provenance.run)
        for item in claims:
            key = item.claim.key
            if key in self.written and item.home == home:
                before = {Path(name): was for name, was in item.known.items()} if item.claim.appends else {}
                mine = {**before, **self.written[key]}
                files = {os.path.relpath(place, home): was for place, was in mine.items()}
                manifest.note(item.claim.key_in(home), files)
        return manifest


def missing_folders(files: Files, folder: Path) -> list[Path]:
    """The folders that have to be made, the uppermost first."""
    found = []
    while files.stat(folder) is None:
        found.append(folder)
        folder = folder.parent
    return found[::-1]
