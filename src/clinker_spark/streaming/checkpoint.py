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

VERSION = 1


def checkpoint_folder(plan: Plan, base: Path, given: str | None = None) -> Path:
    """Where the checkpoint of a pipeline lies."""
    named = given or plan.file.stream.checkpoint
    return base / named if named is not None else base / (plan.file.path.stem + ".checkpoint")


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a stream."""

    folder: Path

    @property
    def about(self) -> Path:
        return self.folder / "clinker.json"

    def load(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self.about.read_text())
        except FileNotFoundError:
            return None
        return found

    def begin(self, made: dict[str, Any]) -> dict[str, Any]:
        """What is known about the stream: as the first run said it."""
        found = self.load()
        if found is None:
            self.folder.mkdir(parents=True, exist_ok=True)
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
        return self.query(query) / "letters"

    def offsets(self, query: StreamQuery, batch: int) -> dict[str, dict[str, Any]] | None:
        """How far a batch reads, by source; None where it is not known."""
        try:
            lines = (self.spark(query) / "offsets" / str(batch)).read_text().splitlines()
        except OSError:
            return None
        found = [json.loads(line) for line in lines[2:] if line != "-"]
        return {offset["source"]: offset for offset in found}

    def committed(self, query: StreamQuery) -> int:
        """The number of the last batch that was finished; -1 for none."""
        return self.committed_of(query.name)

    def committed_of(self, name: str) -> int:
        try:
            names = os.listdir(self.spark_of(name) / "commits")
        except OSError:
            return -1
        return max((int(name) for name in names if name.isdigit()), default=-1)
