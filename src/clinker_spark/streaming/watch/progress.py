"""What a stream did: numbers for each batch, their sums, and the file that is kept of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery
from clinker_spark.runtime.measure.spool import keep, run_record
from clinker_spark.runtime.run.options import Options, spool_folder
from clinker_spark.streaming.checkpoint import Positions
from clinker_spark.streaming.watch.hot_keys import Waiting

KEPT = 2000
"""So many batches are remembered at most: a stream that goes on for months must not grow."""
_PATHS = 100


@dataclass(frozen=True)
class SideState:
    """What one operator of Spark holds: both sides of a join, or the totals of an aggregate."""

    node: str
    operator: str
    rows: int
    bytes: int
    removed: int
    late: int


@dataclass(frozen=True)
class Batch:
    """One batch of a query."""

    query: str
    number: int
    at: str
    """When it began."""
    milliseconds: int
    records: dict[str, int]
    """By source: how many were read."""
    rate: float
    """Records per second, of all sources."""
    watermark: str | None
    """How far the times of all sources are, as it was before the batch."""
    state: tuple[SideState, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def waiting(self) -> int:
        """How many records wait in state after it."""
        return sum(side.rows for side in self.state)

    @property
    def late(self) -> int:
        return sum(side.late for side in self.state)


@dataclass
class StreamReport:
    """What a stream did."""

    batches: list[Batch] = field(default_factory=list)
    """The last ones, and of those long ago fewer and fewer."""
    finished: int = 0
    """So many batches were finished."""
    records: Counter[str] = field(default_factory=Counter)
    """By source: how many were read."""
    letters: int = 0
    letter_paths: list[str] = field(default_factory=list)
    """Where the last of them are."""
    waiting: list[Waiting] = field(default_factory=list)
    """What waited side by side when it was last looked at; that is done when somebody wants to know."""
    late: int = 0
    """Records that came behind the watermark, and were dropped."""
    warnings: list[Diagnostic] = field(default_factory=list)
    interrupted: bool = False

    def exit_code(self, *, once: bool) -> int:
        """2 where it was to end, and left dead letters. A stream without an end is stopped some time, as it should be:
        what failed in it long ago is no news then."""
        return 2 if once and self.letters else 0

    def note(self, batch: Batch) -> None:
        """A batch was finished."""
        self.finished += 1
        self.records.update(batch.records)
        self.late += batch.late
        self.batches.append(batch)
        if len(self.batches) > KEPT:
            self.batches[: KEPT // 2] = _every_second(self.batches[: KEPT // 2])

    def note_letters(self, number: int, paths: Iterable[Path]) -> None:
        """Letters were written."""
        self.letters += number
        self.letter_paths += [str(path) for path in paths]
        del self.letter_paths[:-_PATHS]


def _every_second(batches: Sequence[Batch]) -> list[Batch]:
    """Of each query: of two that follow each other, the one in which more came late."""
    alone: dict[str, Batch] = {}
    found = []
    for batch in batches:
        before = alone.pop(batch.query, None)
        if before is None:
            alone[batch.query] = batch
        else:
            found.append(max(before, batch, key=lambda one: one.late))
    return [*found, *alone.values()]


def note_batch(report: StreamReport, query: StreamQuery, names: Sequence[str], told: dict[str, Any]) -> Batch:
    """A batch as Spark tells about it; `names` are the nodes that hold records, as Spark numbers them."""
    records = {}
    for source in told["sources"]:
        end, start = _offset(source["endOffset"]), _offset(source["startOffset"])
        if end is not None:
            beats = end.get("beat") is not None and end.get("beat") != (start or {}).get("beat")
            scanned = source["numInputRows"] // max(1, query.scans[end["source"]])
            records[end["source"]] = max(0, scanned - int(beats))
    milliseconds = told["durationMs"].get("triggerExecution", 0)
    batch = Batch(
        query.name,
        told["batchId"],
        told["timestamp"],
        milliseconds,
        records,
        round(1000 * sum(records.values()) / max(1, milliseconds), 1),
        told.get("eventTime", {}).get("watermark"),
        tuple(
            SideState(
                names[i] if i < len(names) else "",
                op["operatorName"],
                op["numRowsTotal"],
                op["memoryUsedBytes"],
                op["numRowsRemoved"],
                op["numRowsDroppedByWatermark"],
            )
            for i, op in enumerate(told["stateOperators"])
        ),
    )
    report.note(batch)
    return batch


def positions(told: dict[str, Any]) -> Positions:
    """From where to where a batch read, as Spark tells about it."""
    sources = [(_offset(source["startOffset"]), _offset(source["endOffset"])) for source in told["sources"]]
    starts = {start["source"]: start for start, _ in sources if start is not None}
    return starts, {end["source"]: end for _, end in sources if end is not None}


def _offset(text: Any) -> dict[str, Any] | None:
    """An offset as Spark shows it: a text, or what is in it."""
    found = json.loads(text) if isinstance(text, str) else text
    return found if isinstance(found, dict) else None


@contextmanager
def spooled(plan: Plan, stream: str, report: StreamReport, *, once: bool = False) -> Iterator[None]:
    """Around one call of a stream: afterwards its numbers are a file, if `metrics.spool_dir` names a folder. Of a call
    that failed it has what was finished until then. A file that cannot be written is a warning."""
    options = Options()
    folder = spool_folder(plan, options)
    try:
        yield
    except ClinkerError as error:
        if folder is not None:
            first = error.diagnostics[0]
            problem = f"{first.code}: {first.message}"
            keep(folder, stream_record(plan, options, stream, report, error.exit_code, problem))
        raise
    if folder is not None:
        report.warnings += keep(folder, stream_record(plan, options, stream, report, report.exit_code(once=once), None))


def stream_record(
    plan: Plan, options: Options, stream: str, report: StreamReport, exit_code: int, error: str | None
) -> dict[str, Any]:
    """What is kept of one call, in the form of runs, with a part of its own. `stream` is the same for all calls over
    one checkpoint."""
    record: dict[str, Any] = run_record(plan, options, None, exit_code, error)
    names = {node.name: node.source_name for node in plan.sources}
    return record | {
        "records_total": sum(report.records.values()),
        "records_written": None,
        "records_null_dropped": None,
        "records_dlq": report.letters,
        "dlq_path": report.letter_paths[0] if report.letter_paths else None,
        "per_source_record_counts": {names[name]: count for name, count in report.records.items()},
        "stream": {
            "id": stream,
            "batches": report.finished,
            "late": report.late,
            "waiting": {batch.query: batch.waiting for batch in report.batches},
            "interrupted": report.interrupted,
        },
    }
