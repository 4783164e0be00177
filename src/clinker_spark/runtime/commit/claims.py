"""Claims: the outputs that a run asks for, and what speaks against them."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.runtime.commit.manifest import Written, foreign
from clinker_spark.runtime.commit.seam import FILE, FOLDER, Files
from clinker_spark.runtime.errors import IoError
from clinker_spark.spark.rejects.letter_marks import PREFIX, REQUIRED

LETTER_COLUMNS = frozenset(PREFIX + name for name in REQUIRED)
"""What every dead-letter file has, whatever wrote it."""


@dataclass(frozen=True)
class Claim:
    """An output of a run. `key` names it within the run; `place` is its path, or that of which its files' paths are
    made."""

    key: str
    place: Path
    home: Path | None = None
    """The folder that all its files lie in or under; by default that of `place`."""
    folder: bool = False
    several: bool = False
    """Are there files whose names are made of `place`, and none at `place` itself?"""
    letters: bool = False
    replaces: bool = True
    """Do the files of this run stand for those of earlier ones?"""
    fresh: bool = False
    """Must nothing be at its place, not even what another run wrote meanwhile?"""
    appends: bool = False
    """Does what this run makes come to what earlier ones wrote?"""
    shown: str = ""
    """The path as the user wrote it."""

    def __post_init__(self) -> None:
        if not self.shown:
            object.__setattr__(self, "shown", str(self.place))

    def key_in(self, home: Path) -> str:
        """What it is called in the manifest of its home."""
        return os.path.relpath(os.path.abspath(self.place), home)


class Refusal(IoError):
    """An output that may not be written."""

    def __init__(self, claim: Claim, code: str, message: str, help_text: str) -> None:
        super().__init__([Diagnostic(code, message, help=help_text)])
        self.claim = claim


@contextlib.contextmanager
def refused(claim: Claim) -> Iterator[None]:
    """What the system says about an output, as a refusal of that output."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        code = "E405" if error.errno == errno.ENOSPC else "E401"
        help_text = f"check '{error.filename or claim.place}'; nothing was published"
        raise Refusal(claim, code, f"cannot write '{claim.shown}': {reason}", help_text) from None


def check_claims(
    files: Files,
    claims: Sequence[Claim],
    resolved: Mapping[str, Path],
    known: Mapping[str, Mapping[str, Written]],
    streams: set[str],
    protected: Sequence[Path],
    *,
    force: bool,
) -> None:
    """Raises `Refusal` for the first claim that may not be written. `known` is what earlier runs wrote for it."""
    for claim in claims:
        with refused(claim):
            if claim.key not in streams:
                _check_place(files, claim, resolved[claim.key], known[claim.key], protected, force)
            elif claim.folder or claim.several:
                message = f"'{claim.shown}' is a pipe or a device, and takes one file"
                raise Refusal(claim, "E425", message, "write a single file to it: no folder, no split")


def _check_place(
    files: Files, claim: Claim, place: Path, known: Mapping[str, Written], protected: Sequence[Path], force: bool
) -> None:
    info = files.stat(place)
    if info is None or claim.several:
        return
    if claim.fresh:
        raise Refusal(claim, "E406", f"'{claim.shown}' is there already", "another run wrote it meanwhile: run again")
    if info.kind not in (FILE, FOLDER):
        raise Refusal(claim, "E425", f"'{claim.shown}' is no file that can be replaced", "choose another path")
    if claim.folder and info.kind != FOLDER:
        raise Refusal(claim, "E401", f"'{claim.shown}' is a file", "remove the / to write one file")
    if info.kind == FOLDER and not claim.folder:
        raise Refusal(claim, "E401", f"'{claim.shown}' is a folder", "name a file in it")
    if claim.folder and not claim.appends:
        _check_folder(files, claim, place, known, protected, force)
    elif claim.letters and not force and not may_be_letters(files, place, known):
        message = f"'{claim.shown}' is no dead-letter file: it would be replaced or removed"
        raise Refusal(claim, "E422", message, "give the dead letters a path of their own, or run with --force")


def _check_folder(
    files: Files, claim: Claim, place: Path, known: Mapping[str, Written], protected: Sequence[Path], force: bool
) -> None:
    inside = [path for path in protected if path == place or place in path.parents]
    if inside:
        message = f"the folder '{claim.shown}' would be replaced, and '{inside[0].name}' is in it"
        raise Refusal(claim, "E421", message, "write to a folder of its own")
    if force:
        return
    mine = {os.path.relpath(path, place): item for path, item in known.items()}
    found = foreign(files, place, mine)
    if found is not None:
        what = "changed since it was written" if found in mine else "was not written by this pipeline"
        message = f"the folder '{claim.shown}' would be replaced, and '{found}' in it {what}"
        raise Refusal(claim, "E421", message, "write to a folder of its own, or replace all of it with --force")


def may_be_letters(files: Files, place: Path, known: Mapping[str, Written]) -> bool:
    """Is a file one of dead letters: one that this pipeline wrote, or that has their columns?"""
    info = files.stat(place)
    if info is None or info.kind != FILE:
        return False
    written = known.get(str(place))
    if written is not None and written.is_unchanged(files, place, info):
        return True
    try:
        header = next(csv.reader(io.StringIO(files.head(place).decode("utf-8", "replace"), newline="")), [])
    except csv.Error:
        return False
    return not info.size or set(header) >= LETTER_COLUMNS


def check_nesting(claims: Sequence[Claim], resolved: Mapping[str, Path]) -> None:
    """Raises `Refusal` when one output is another, or lies in a folder that is replaced as a whole."""
    for outer in claims:
        for inner in claims:
            if inner is not outer and resolved[inner.key] == resolved[outer.key]:
                message = f"'{inner.shown}' is written twice: by '{outer.key}' and by '{inner.key}'"
                raise Refusal(inner, "E322", message, "give each output its own path")
            if outer.folder and resolved[outer.key] in resolved[inner.key].parents:
                message = f"'{inner.shown}' lies in '{outer.shown}', which is replaced as a whole"
                raise Refusal(inner, "E322", message, "give each output its own path")
