"""Dead letters of a stream: a file for each batch in which records failed, with the columns of those of `clinker run`.

How many records of a batch failed is known when it is finished. Its records are read once more then, from the same
positions, and nothing but the failures is kept, as in a run. `letters.json` says up to which batch that was done:
after a crash the batches behind it are looked at again, and a file that is there is not written again. So these places
are the stream's own, as those of its outputs are.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.config.tree.yaml import KeyPath
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.paths.places import letter_path
from clinker_spark.runtime.reject.letter_writer import letter_files, source_batches
from clinker_spark.runtime.reject.saved_letters import Saved, save
from clinker_spark.runtime.reject.thresholds import first_failure
from clinker_spark.spark.rejects.letter_lines import LetterLines, LetterSource
from clinker_spark.spark.rejects.letters import LetterCount, layout
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.streaming.batch_files import BatchFiles
from clinker_spark.streaming.checkpoint import Checkpoint
from clinker_spark.streaming.connectors.letters import letter_topic, send_letters

if TYPE_CHECKING:
    from clinker_spark.spark.streaming.query import DataFrame

Files = dict[str, tuple[SourceFile, ...]]
_REMEMBERED = 100
"""So many batches of a query may be looked at out of their order."""
_MARKED = 2
"""Since this version of checkpoints, the places of letters have marks."""


@dataclass(frozen=True)
class Found:
    """The failures of a batch, and the files their records were read from."""

    letters: Saved
    files: Files
    counts: tuple[LetterCount, ...]
    headers: dict[str, tuple[str, ...]]

    @property
    def number(self) -> int:
        return sum(count.count for count in self.counts)

    def discard(self) -> None:
        """They are published, or nobody needs them."""
        shutil.rmtree(self.letters.place, ignore_errors=True)


@dataclass(frozen=True)
class LetterPlace:
    """Where letters of a query go, and the key that says so."""

    key: KeyPath
    path: str
    query: StreamQuery
    files: BatchFiles

    def each(self) -> Iterator[Path]:
        """The files of the first batch."""
        for tail in self.files.tails:
            yield self.files.place(0, tail)


def letter_places(plan: Plan, base: Path, queries: Sequence[StreamQuery]) -> list[LetterPlace]:
    """All of them. Where there are several queries, their names stand in those of the files."""
    handling = plan.file.error_handling
    if handling.strategy == "fail_fast":
        return []
    at: KeyPath = ("error_handling", "dlq")
    given: list[tuple[KeyPath, str | None]] = [((*at, "path"), handling.dlq.path)]
    given += [((*at, "per_source", name, "path"), own.path) for name, own in handling.dlq.per_source.items()]
    found = []
    for key, path in given:
        for query in queries if path is not None else ():
            place = letter_path(base, str(path))
            stem = "-".join([place.stem, *([_flat(query.name)] if len(queries) > 1 else [])])
            say = partial(_problem, plan, key)
            files = BatchFiles(place.parent, stem, place.suffix or ".csv", say, ("", _tail(query.name)))
            found.append(LetterPlace(key, str(path), query, files))
    return found


def _problem(plan: Plan, key: KeyPath, code: str, message: str, help: str) -> Diagnostic:
    return plan.file.diagnostic(code, message, key, help)


def _flat(name: str) -> str:
    return name.replace("/", "~")


def _tail(made: str) -> str:
    """Behind the number of a batch: what made the records, if they were not read."""
    return f"-{_flat(made)}" if made else ""


class BatchLetters:
    """The dead letters of the queries of a stream."""

    def __init__(self, plan: Plan, places: Sequence[LetterPlace], checkpoint: Checkpoint, now: dt.datetime) -> None:
        self.plan = plan
        self.places = places
        self.checkpoint = checkpoint
        self.now = now
        self._noted: set[tuple[str, int, str]] = set()
        self._one_at_a_time = threading.Lock()

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Nobody else writes to these places meanwhile. Raises `IoError` where they are somebody else's."""
        about = self.checkpoint.load() or {}
        with ExitStack() as ends:
            for place in self.places:
                older = about["version"] < _MARKED and self.checked(place.query) >= 0
                ends.callback(place.files.release)
                place.files.claim(about["id"], unmarked=older)
            shutil.rmtree(self.checkpoint.folder / "found", ignore_errors=True)  # left by who was killed
            yield

    def kept(self, frame: DataFrame, name: str, files: Files, headers: dict[str, tuple[str, ...]]) -> Found | None:
        """Run the job that finds them; None when there are none."""
        place = self.checkpoint.folder / "found" / name
        shutil.rmtree(place, ignore_errors=True)
        saved = save(frame, place)
        found = Found(saved, files, tuple(saved.counts()), headers)
        if not found.counts:
            found.discard()
            return None
        return found

    def first(self, found: Found) -> Diagnostic:
        """The first of them in words."""
        try:
            return first_failure(self.plan, found.letters.first(), found.files, found.counts)
        finally:
            found.discard()

    def has(self, query: StreamQuery, batch: int, made: str = "") -> bool:
        """Did this process publish them already?"""
        return (query.name, batch, made) in self._noted

    def publish(self, query: StreamQuery, batch: int, found: Found, made: str = "") -> list[Path] | None:
        """Publish the letters of a batch, once; None when that was done. `made` is the name of the node that made these
        records, if they were not read."""
        with self._one_at_a_time:  # batches, and what Spark says about them, are looked at by two threads
            try:
                if self.has(query, batch, made):
                    return None
                written = self._write(query, batch, found, made)
                self._noted = {each for each in self._noted if each[0] != query.name or each[1] > batch - _REMEMBERED}
                self._noted.add((query.name, batch, made))
                return written
            finally:
                found.discard()

    def _write(self, query: StreamQuery, batch: int, found: Found, made: str) -> list[Path]:
        dlq = self.plan.file.error_handling.dlq
        sources = tuple(
            LetterSource(
                node.source_name,
                tuple(file.name for file in found.files.get(node.name, ())),
                found.headers.get(node.name, ()),
            )
            for node in self.plan.sources
        )
        written = []
        name = "-".join([query.name, *([made] if made else [])])
        pipeline_id = str((self.checkpoint.load() or {})["id"])
        topic = letter_topic(self.plan, pipeline_id, name)
        for file in letter_files(self.plan, found.counts):
            columns = tuple(layout(self.plan, file.counts))
            stages = tuple(node.stage for node in self.plan.nodes)
            lines = LetterLines(columns, sources, stages, self.now, dlq.include_reason, dlq.include_source_row)
            if topic is not None and not file.path:
                send_letters(self.plan, topic, batch, lines, source_batches(found.letters, file))
                continue
            own = next(each for each in self.places if each.path == file.path and each.query.name == query.name)
            place = own.files.place(batch, _tail(made))
            if own.files.has(place, pipeline_id):
                continue
            texts = [lines.header]
            for rows in source_batches(found.letters, file):
                texts.append("".join(f"{line}\n" for line in lines.lines(rows).to_pylist()).encode())
            replace_file(place, b"".join(texts))
            written.append(place)
        return written

    # ------------------------------------------------------------ how far it is known

    def checked(self, query: StreamQuery) -> int:
        """The last batch whose failures were looked for; -1 for none."""
        try:
            return int(json.loads(self._log(query).read_text())["batch"])
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            return -1  # they are looked at again; what was written is not written twice

    def check(self, query: StreamQuery, batch: int) -> None:
        replace_file(self._log(query), json.dumps({"batch": batch}).encode() + b"\n")

    def _log(self, query: StreamQuery) -> Path:
        return self.checkpoint.letters(query)


def failed_in(progress: dict[str, Any], prefix: str) -> int:
    """How many records failed before the root of a query, as the progress of a batch says."""
    counts = progress.get("observedMetrics", {})
    return sum(int(row.get("failed", 0)) for name, row in counts.items() if name.startswith(prefix))
