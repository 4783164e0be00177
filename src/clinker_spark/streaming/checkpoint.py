"""The folder of a stream: who it is, how far its queries are, what their state was made of."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.errors import IoError

VERSION = 2
READABLE = (1, VERSION)
"""In the first version, the shapes of queries stood beside the format of joins (`shape`)."""
_ABOUT = {"version": int, "id": str, "partitions": int, "shape": dict}
_OWN = ("lock", ".clinker-draft-")
"""How the names begin of what may be in the folder of a checkpoint that was not begun."""
_NAME_ANOTHER = "name a folder of its own: stream: { checkpoint: state/ }, or --checkpoint DIR"
_DAMAGED = "bring back a copy of the checkpoint, or use a new one (--checkpoint DIR), which reads everything again"


def checkpoint_folder(plan: Plan, base: Path, given: str | None = None) -> Path:
    """Where the checkpoint of a pipeline lies."""
    named = given or plan.file.stream.checkpoint
    return base / named if named is not None else base / (plan.file.path.stem + ".checkpoint")


Positions = tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]
"""Where a batch begins and where it ends, by source."""


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a stream."""

    folder: Path

    @property
    def about(self) -> Path:
        return self.folder / "clinker.json"

    def load(self) -> dict[str, Any] | None:
        """What is known about the stream; None if there is no checkpoint yet. Raises `IoError` where none can be."""
        try:
            found = json.loads(self.about.read_text())
        except FileNotFoundError:
            if any(not path.name.startswith(_OWN) for path in self.folder.glob("*")):
                raise self._unusable(f"'{self.folder}' holds other files, and is no checkpoint of a stream") from None
            return None
        except NotADirectoryError:
            raise self._unusable(f"'{self.folder}' is no folder") from None
        except OSError as error:
            raise self._unusable(f"'{self.about}' cannot be read: {(error.strerror or str(error)).lower()}") from None
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(found.get(key), kind) for key, kind in _ABOUT.items()):
            raise self._unusable(f"'{self.about}' is damaged", _DAMAGED)
        return found

    def _unusable(self, message: str, help: str = _NAME_ANOTHER) -> IoError:
        return IoError([Diagnostic("E512", message, help=help)])

    def check(self, query: StreamQuery) -> None:
        """Are the files of a query there, and can they be read? Raises `IoError`."""
        place = self.spark(query)
        last = max((int(path.name) for path in (place / "offsets").glob("[0-9]*") if path.name.isdigit()), default=-1)
        if last < 0:
            return
        if not (place / "metadata").exists():
            raise self._unusable(f"'{place / 'metadata'}' is missing", _DAMAGED)
        for batch in (last, last - 1):
            try:
                known = self.offsets(query, batch)
                damaged = batch >= 0 and (known is None or not known)
            except (ValueError, KeyError, TypeError):
                damaged = True
            if damaged and (batch == last or (place / "offsets" / str(batch)).exists()):
                raise self._unusable(f"'{place / 'offsets' / str(batch)}' is damaged", _DAMAGED)
        for name, offset in (self.offsets(query, last) or {}).items():
            log = self.source(query, name) / "files"
            node = next((node for node in query.sources if node.name == name), None)
            if node is None or node.config.stream_only or not offset["at"]:
                continue
            taken = log.read_bytes().count(b"\n") if log.exists() else 0
            if taken < offset["at"]:
                message = f"'{log}' names {taken} file(s), and {offset['at']} were read"
                raise self._unusable(message, _DAMAGED)

    def begin(self, made: dict[str, Any]) -> dict[str, Any]:
        """What is known about the stream: as the first run said it."""
        found = self.load()
        if found is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self.locked():
                found = self.load()  # somebody else may have begun it meanwhile
                if found is None:
                    found = {"version": VERSION, "id": str(uuid.uuid4()), **made}
                    replace_file(self.about, json.dumps(found, indent=1).encode() + b"\n")
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else goes on from this checkpoint meanwhile."""
        lock = SYSTEM.lock(self.folder / "lock")
        if lock is None:
            message = f"another stream runs with the checkpoint '{self.folder}'"
            raise IoError([Diagnostic("E510", message, help="wait for it or stop it, or use another checkpoint")])
        try:
            yield
        finally:
            SYSTEM.unlock(lock, remove=False)

    def query(self, query: StreamQuery) -> Path:
        return self.folder / query.name.replace("/", "~")

    def spark(self, query: StreamQuery) -> Path:
        """Spark's own checkpoint of a query."""
        return self.spark_of(query.name)

    def spark_of(self, name: str) -> Path:
        return self.folder / name.replace("/", "~") / "spark"

    def source(self, query: StreamQuery, source: str) -> Path:
        return self.query(query) / "sources" / source.replace("/", "~")

    def letters(self, query: StreamQuery) -> Path:
        """Up to which batch its dead letters were looked for."""
        return self.query(query) / "letters.json"

    def offsets(self, query: StreamQuery, batch: int) -> dict[str, dict[str, Any]] | None:
        """How far a batch reads, by source; None where it is not known."""
        try:
            lines = (self.spark(query) / "offsets" / str(batch)).read_text().splitlines()
        except OSError:
            return None
        found = [json.loads(line) for line in lines[2:] if line != "-"]
        return {offset["source"]: offset for offset in found}

    def positions(self, query: StreamQuery, batch: int) -> Positions:
        """Between which positions a batch read, by source. Raises `IoError` where nobody knows that any more."""
        try:
            ends = self.offsets(query, batch)
            starts = self.offsets(query, batch - 1) if batch else {}
        except (ValueError, LookupError, TypeError):
            ends = starts = None
        if ends is None or starts is None:
            known = [int(path.name) for path in (self.spark(query) / "offsets").glob("[0-9]*") if path.name.isdigit()]
            last = max(batch, min(known, default=batch))
            message = (
                f"what batch {batch} of '{query.name}' has read is not known any more, so that its dead letters"
                " cannot be found"
            )
            help_text = (
                f"bring back a copy of the checkpoint; to go on without the dead letters up to batch {last},"
                f" write {{\"batch\": {last}}} to '{self.letters(query)}'"
            )
            raise self._unusable(message, help_text)
        return starts, ends

    def committed(self, query: StreamQuery) -> int:
        """The number of the last batch that was finished; -1 for none."""
        return self.committed_of(query.name)

    def committed_of(self, name: str) -> int:
        try:
            names = os.listdir(self.spark_of(name) / "commits")
        except OSError:
            return -1
        return max((int(name) for name in names if name.isdigit()), default=-1)
