"""The files of a stream at one place, one for each batch, and whose they are.

`out.json` becomes `out-000012.json`. The numbers of batches belong to a checkpoint: under the same name another stream
has other records. So the place has a *mark* that says whose it is, and as long as the stream runs a lock, by which two
streams that begin at once, or two outputs of one stream, do not take each other's files for their own.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.runtime.commit.seam import SYSTEM, Files, Lock
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.errors import IoError

DIGITS = 6
_ELSEWHERE = "write to another place"
Say = Callable[[str, str, str], Diagnostic]
"""A diagnostic, made of code, message and help, at the key that names the place."""


class BatchFiles:
    """The files `<stem>-<number><tail><suffix>` in a folder."""

    def __init__(
        self, folder: Path, stem: str, suffix: str, say: Say, tails: tuple[str, ...] = ("",), files: Files = SYSTEM
    ) -> None:
        self.folder = folder
        self.stem = stem
        self.suffix = suffix
        self.say = say
        self.tails = tails
        self.files = files
        self.mark = folder / f".{stem}{suffix}.stream"
        self._older_mark = folder / f".{stem}.stream.json"
        self._lock: Lock | None = None
        known = "|".join(map(re.escape, tails))
        self._name = re.compile(rf"{re.escape(stem)}-[0-9]{{{DIGITS},}}(?:{known}){re.escape(suffix)}", re.DOTALL)

    def place(self, batch: int, tail: str = "") -> Path:
        return self.folder / f"{self.stem}-{batch:0{DIGITS}}{tail}{self.suffix}"

    def attempt(self, batch: int, pipeline_id: str) -> Path:
        """Where a batch is written before it has its name."""
        return self.folder / f".{self.place(batch).name}.{pipeline_id[:8]}"

    def claim(self, pipeline_id: str, *, unmarked: bool = False) -> None:
        """Nobody else writes there until `release`. `unmarked`: are files without a mark ours? Raises `IoError`."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._lock is None:
                self._lock = self.files.lock(self.mark.with_name(f"{self.mark.name}.lock"))
            if self._lock is None:
                message = f"somebody writes '{self.place(0)}' and the like already: another stream, or this one twice"
                raise self._taken(message, f"{_ELSEWHERE}, or wait until the other stream has ended")
            owner = self._owner()
            others = [path for path in self.folder.iterdir() if self._name.fullmatch(path.name)]
            if others and owner != pipeline_id and not (unmarked and owner is None):
                by = "a stream with another checkpoint wrote it" if owner else "this stream did not write it"
                help_text = f"go on with the checkpoint it belongs to, {_ELSEWHERE}, or remove such files"
                raise self._taken(f"'{min(others)}' is there, and {by}", help_text)
            self._write_mark(pipeline_id)
            self._clean()
        except IoError:
            self._unlock()
            raise
        except OSError as error:
            self._unlock()
            reason = (error.strerror or str(error)).lower()
            raise IoError([self.say("E401", f"cannot write '{self.folder}': {reason}", "check the path")]) from None

    def has(self, place: Path, pipeline_id: str) -> bool:
        """Is a file there already, written by this stream before a crash? Raises `IoError` when the place belongs to
        another one by now."""
        there, owner = self.files.stat(place) is not None, self._owner()
        if owner is None and not there:  # somebody cleared the folder
            place.parent.mkdir(parents=True, exist_ok=True)
            self._write_mark(pipeline_id)
        elif owner != pipeline_id:
            message = (
                f"'{place}' belongs to another stream now, or to nobody: '{self.mark.name}' does not name this one"
            )
            raise self._taken(message, f"{_ELSEWHERE}, or stop the other stream and go on with its checkpoint")
        return there

    def release(self) -> None:
        """The stream ends. What is not ours stays as it is."""
        if self._lock is not None:
            try:
                self._clean()
            finally:
                self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            self.files.unlock(lock, remove=True)

    def _clean(self) -> None:
        """Attempts that nobody finished."""
        for left in self.folder.glob(".*"):
            name, _, attempt = left.name[1:].rpartition(".")
            if attempt and self._name.fullmatch(name):
                shutil.rmtree(left, ignore_errors=True)

    def _owner(self) -> str | None:
        """Who the mark names; None when there is none."""
        for mark in (self.mark, self._older_mark):
            try:
                found = json.loads(mark.read_text())
            except FileNotFoundError:
                continue
            except ValueError:
                found = None
            owner = found.get("pipeline_id") if isinstance(found, dict) else None
            if not isinstance(owner, str):
                help_text = f"remove it and the files of batches beside it, or {_ELSEWHERE}"
                raise self._taken(f"'{mark}' is damaged: it does not say whose files these are", help_text)
            return owner
        return None

    def _write_mark(self, pipeline_id: str) -> None:
        replace_file(self.mark, json.dumps({"pipeline_id": pipeline_id}).encode() + b"\n")

    def _taken(self, message: str, help: str) -> IoError:
        return IoError([self.say("E508", message, help)])
