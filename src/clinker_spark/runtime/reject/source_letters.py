"""Dead letters that the readers kept: when these are all failures of a run, no record is read a second time.

They are few, they are in order already, and Python writes them: a Spark job would only have to be compiled for them.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.reject.letter_lines import text_column, write_lines
from clinker_spark.runtime.reject.replay_files import Feed
from clinker_spark.runtime.run.assemble import Made
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.operators.source import RECORD_COUNTS
from clinker_spark.spark.rejects.letters import LetterCount, letter_header
from clinker_spark.spark.scan.kept_rejects import ERROR_FIELDS, first_rows, kept_files, read_kept
from clinker_spark.spark.scan.request import Scan, SourceFile
from clinker_spark.spark.scan.scans import progress_path


@dataclass(frozen=True)
class KeptSplit:
    """The bad records of one split, and where its records begin."""

    path: Path
    file: int
    first_row: int


@dataclass(frozen=True)
class SourceLetters:
    """The kept records of all sources, in source and row order."""

    plan: Plan
    splits: tuple[tuple[SourcePlan, KeptSplit], ...]
    counts: tuple[LetterCount, ...]
    records: Mapping[str, int]
    """How many records the sources have that keep their letters, good and bad."""
    split_records: Mapping[Any, int]
    """The same for each part of their files: a later pass need not count them to number its records."""

    def batches(self, sources: Sequence[int]) -> Iterator[tuple[SourcePlan, KeptSplit, pa.RecordBatch]]:
        for source, split in self.splits:
            if source.index in sources and (batch := read_kept(split.path)).num_rows:
                yield source, split, batch

    def first(self) -> dict[str, Any]:
        """The first letter, as `first_letters` gives it."""
        source, split, batch = next(self.batches([source.index for source in self.plan.sources]))
        row = {name: batch[name][0].as_py() for name in ERROR_FIELDS}
        place = {"source": source.index, "file": split.file, "row": split.first_row + batch["place"][0].as_py()}
        return {**row, **place, "stage": self.plan.nodes.index(source)}

    def write(
        self,
        place: Path,
        sources: Sequence[int],
        columns: Sequence[str],
        files: Mapping[str, tuple[SourceFile, ...]],
        headers: Mapping[str, tuple[str, ...]],
        now: dt.datetime,
        handling: Any,
        feed: Feed | None = None,
    ) -> Made:
        """The letters of some sources as a CSV file."""
        with open(place, "wb") as out:
            out.write(letter_header(columns, handling))
            for source, split, batch in self.batches(sources):
                engine = _engine_columns(source, split, batch, files[source.name][split.file].name)
                own = {column.name: batch[f"c{i}"] for i, column in enumerate(source.columns)}
                record = [own.get(name, text_column(None, batch.num_rows)) for name in columns]
                header = text_column(headers[source.name][split.file], batch.num_rows)
                fed = None if feed is None else self._fed(feed, source, split, batch)
                write_lines(out, engine, record, batch["line"], header, now, handling, fed)
        return Made(place, place.stat().st_size)

    def _fed(
        self, feed: Feed, source: SourcePlan, split: KeptSplit, batch: pa.RecordBatch
    ) -> list[dict[str, str] | None]:
        rows = [split.first_row + place for place in batch["place"].to_pylist()]
        known = [feed.of(source.name, split.file, row) for row in rows]
        return [None if fed is None else fed.letter(source.stage) for fed in known]

    def places_of(self, source: int) -> pa.Table:
        """`file` and `row` of all letters of a source."""
        files: list[int] = []
        rows: list[int] = []
        for _, split, batch in self.batches([source]):
            files += [split.file] * batch.num_rows
            rows += [split.first_row + place for place in batch["place"].to_pylist()]
        return pa.table({"file": pa.array(files, pa.int32()), "row": pa.array(rows, pa.int64())})


def kept_by_readers(state: RunState) -> SourceLetters | None:
    """The bad records that readers kept; None when it is not known whether there are any."""
    assert state.progress is not None
    found = kept_letters(state.plan, state.builder.scans, Path(state.progress))
    if found is not None:
        for report in state.report.sources:
            report.records = found.records.get(report.name, report.records)
        state.measured.setdefault(RECORD_COUNTS, {}).update(found.split_records)
    return found


def kept_letters(plan: Plan, scans: Mapping[str, Scan], progress: Path) -> SourceLetters | None:
    """What the readers kept; None when something is missing."""
    splits: list[tuple[SourcePlan, KeptSplit]] = []
    counts: Counter[tuple[SourcePlan, str]] = Counter()
    records: dict[str, int] = {}
    split_records: dict[Any, int] = {}
    for source in plan.sources:
        scan = scans.get(source.name)
        if scan is None or scan.split_files is None:
            continue
        found = kept_files(progress_path(progress, source.name), len(scan.split_files))
        if found is None:
            return None
        records[source.name] = sum(count for _, count in found)
        split_records.update(zip(scan.split_keys, (count for _, count in found), strict=True))
        rows = first_rows([count for _, count in found], scan.split_files)
        for (path, _), file, first_row in zip(found, scan.split_files, rows, strict=True):
            splits.append((source, KeptSplit(path, file, first_row)))
            for entry in pc.value_counts(read_kept(path)["kind"]).to_pylist():
                counts[source, entry["values"]] += entry["counts"]
    listed = [LetterCount(source.index, plan.nodes.index(source), kind, n) for (source, kind), n in counts.items()]
    listed.sort(key=lambda c: (c.source or 0, c.stage, c.category))
    return SourceLetters(plan, tuple(splits), tuple(listed), records, split_records)


def _engine_columns(source: SourcePlan, split: KeptSplit, batch: pa.RecordBatch, file: str) -> dict[str, pa.Array]:
    rows = batch.num_rows
    own = pc.fill_null(pc.starts_with(batch["field"], "$"), False)  # not our own columns
    return {
        "source_file": text_column(file, rows),
        "source_name": text_column(source.source_name, rows),
        "source_row": pc.cast(pc.add(batch["place"], split.first_row), pa.string()),
        "triggering_field": pc.if_else(own, pa.scalar(None, pa.string()), batch["field"]),
        "triggering_value": batch["value"],
        "error_category": batch["kind"],
        "error_detail": batch["message"],
        "stage": text_column(source.stage, rows),
        "route": text_column(None, rows),
        "trigger": text_column("true", rows),
    }


def settled_at(state: RunState, found: SourceLetters) -> set[str] | None:
    """The nodes at which a pass sets aside the records that readers of the first one kept; None: nobody knows."""
    names: set[str] = set()
    for count in found.counts:
        assert count.source is not None
        node: PlanNode = state.plan.sources[count.source]
        while node.name not in state.builder.rejects.settled and node.streams:
            readers = state.plan.readers(node.name)
            if len(readers) != 1:
                return None
            node = readers[0]
        names.add(node.name)
    return names
