"""Dead letters of a stream: a file for each batch in which records failed, with the columns of those of `clinker run`.

How many records of a batch failed is known when it is finished. Its records are read once more then, from the same
positions, and nothing but the failures is kept, as in a run. `letters.json` says up to which batch that was done:
after a crash the batches behind it are looked at again, and a file that is there is not written again.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery
from clinker_spark.runtime.commit.seam import SYSTEM
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.reject.letter_writer import letter_files, source_batches
from clinker_spark.runtime.reject.saved_letters import Saved, save
from clinker_spark.runtime.reject.thresholds import first_failure
from clinker_spark.spark.rejects.letter_lines import LetterLines, LetterSource
from clinker_spark.spark.rejects.letters import LetterCount, layout
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.streaming.checkpoint import Checkpoint
from clinker_spark.streaming.connectors.letters import letter_topic, send_letters

if TYPE_CHECKING:
    from clinker_spark.spark.streaming.query import DataFrame

Files = dict[str, tuple[SourceFile, ...]]
DIGITS = 6


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


class BatchLetters:
    """The dead letters of the queries of a stream."""

    def __init__(self, plan: Plan, base: Path, checkpoint: Checkpoint, now: dt.datetime, several: bool) -> None:
        self.plan = plan
        self.base = base
        self.checkpoint = checkpoint
        self.now = now
        self.several = several
        """Are there several queries? Then their names stand in those of the files."""

    def kept(self, frame: DataFrame, name: str, files: Files, headers: dict[str, tuple[str, ...]]) -> Found | None:
        """Run the job that finds them; None when there are none."""
        place = self.checkpoint.folder / "found" / name
        shutil.rmtree(place, ignore_errors=True)
        saved = save(frame, place)
        counts = tuple(saved.counts())
        return Found(saved, files, counts, headers) if counts else None

    def first(self, found: Found) -> Diagnostic:
        """The first of them in words."""
        return first_failure(self.plan, found.letters.first(), found.files, found.counts)

    def write(self, query: StreamQuery, batch: int, found: Found, made: str = "") -> list[Path]:
        """Publish the letters of a batch. `made` is the name of the node that made these records, if they were not
        read."""
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
        topic = letter_topic(self.plan, str((self.checkpoint.load() or {})["id"]), name)
        for file in letter_files(self.plan, found.counts):
            place = self._place(file.path, query, batch, made)
            if file.path and SYSTEM.stat(place) is not None:
                continue
            columns = tuple(layout(self.plan, file.counts))
            stages = tuple(node.stage for node in self.plan.nodes)
            lines = LetterLines(columns, sources, stages, self.now, dlq.include_reason, dlq.include_source_row)
            if topic is not None and not file.path:
                send_letters(self.plan, topic, batch, lines, source_batches(found.letters, file))
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            texts = [lines.header]
            for rows in source_batches(found.letters, file):
                texts.append("".join(f"{line}\n" for line in lines.lines(rows).to_pylist()).encode())
            replace_file(place, b"".join(texts))
            written.append(place)
        shutil.rmtree(found.letters.place, ignore_errors=True)
        return written

    def _place(self, path: str, query: StreamQuery, batch: int, made: str) -> Path:
        place = self.base / path
        parts = [place.stem, *([query.name.replace("/", "~")] if self.several else []), f"{batch:0{DIGITS}}"]
        return place.with_name("-".join([*parts, *([made] if made else [])]) + (place.suffix or ".csv"))

    # ------------------------------------------------------------ how far it is known

    def checked(self, query: StreamQuery) -> int:
        """The last batch whose failures were looked for; -1 for none."""
        try:
            return int(json.loads(self._log(query).read_text())["batch"])
        except (FileNotFoundError, ValueError):  # looked at again; what was written is not written twice
            return -1

    def check(self, query: StreamQuery, batch: int) -> None:
        replace_file(self._log(query), json.dumps({"batch": batch}).encode() + b"\n")

    def _log(self, query: StreamQuery) -> Path:
        return self.checkpoint.query(query) / "letters.json"


def failed_in(progress: dict[str, Any], prefix: str) -> int:
    """How many records failed before the root of a query, as the progress of a batch says."""
    counts = progress.get("observedMetrics", {})
    return sum(int(row.get("failed", 0)) for name, row in counts.items() if name.startswith(prefix))
