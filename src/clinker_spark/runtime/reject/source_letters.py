"""Dead letters that the readers kept: when these are all failures of a run, no record is read a second time, and no
Spark job is compiled for them (`benchmarks/bench_pipeline.py --dirty 0.01` shows what that is worth)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.plan.columns import LINE_COLUMN
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.reject.saved_letters import Letters
from clinker_spark.runtime.run.state import RunState
from clinker_spark.spark.operators.source import RECORD_COUNTS
from clinker_spark.spark.rejects.letters import LetterCount
from clinker_spark.spark.scan.kept_rejects import first_rows, kept_files, read_kept
from clinker_spark.spark.scan.request import Scan
from clinker_spark.spark.scan.scans import progress_path


@dataclass(frozen=True)
class KeptSplit:
    """The bad records of one split, and where its records begin."""

    path: Path
    file: int
    first_row: int


@dataclass(frozen=True)
class SourceLetters(Letters):
    """The kept records of all sources, in source and row order."""

    ordered = True
    plan: Plan
    splits: tuple[tuple[SourcePlan, KeptSplit], ...]
    kept: tuple[LetterCount, ...]
    """How many there are of each kind."""
    records: Mapping[str, int]
    """How many records the sources have that keep their letters, good and bad."""
    split_records: Mapping[Any, int]
    """The same for each part of their files: a later pass need not count them to number its records."""

    def batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        for source, split in self.splits:
            batch = read_kept(split.path)
            if batch.num_rows:
                made = _letters(self.plan.nodes.index(source), source, split, batch)
                yield pa.RecordBatch.from_arrays([made[name]() for name in columns], list(columns))

    def counts(self) -> list[LetterCount]:
        return list(self.kept)


def kept_by_readers(state: RunState) -> SourceLetters | None:
    """The bad records that readers kept; None when it is not known whether there are any."""
    found = kept_letters(state.plan, state.builder.scans, state.progress)
    if found is not None:
        for report in state.report.sources:
            report.records = found.records.get(report.name, report.records)
        state.inputs.measured.setdefault(RECORD_COUNTS, {}).update(found.split_records)
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


def _letters(
    stage: int, source: SourcePlan, split: KeptSplit, batch: pa.RecordBatch
) -> dict[str, Callable[[], pa.Array]]:
    """The bad records of a split as letters: how each column is made."""
    rows = batch.num_rows
    own = pc.fill_null(pc.starts_with(batch["field"], "$"), False)  # not our own columns
    texts = {column.name: batch[f"c{i}"] for i, column in enumerate(source.columns)} | {LINE_COLUMN: batch["line"]}
    return {
        "source": lambda: pa.repeat(pa.scalar(source.index, pa.int32()), rows),
        "file": lambda: pa.repeat(pa.scalar(split.file, pa.int32()), rows),
        "row": lambda: pc.add(batch["place"], split.first_row),
        "stage": lambda: pa.repeat(pa.scalar(stage, pa.int32()), rows),
        "route": lambda: pa.nulls(rows, pa.string()),
        "category": lambda: batch["kind"],
        "field": lambda: pc.if_else(own, pa.scalar(None, pa.string()), batch["field"]),
        "value": lambda: batch["value"],
        "message": lambda: batch["message"],
        "letter": lambda: _maps(texts, rows),
        "tie": lambda: pa.repeat(pa.scalar([], pa.list_(pa.int64())), rows),
        "trigger": lambda: pa.repeat(pa.scalar(True), rows),
    }


def _maps(columns: Mapping[str, pa.Array], rows: int) -> pa.MapArray:
    """Columns as one map for each row.

    >>> _maps({"a": pa.array(["1", None]), "b": pa.array(["x", "y"])}, 2).to_pylist()
    [[('a', '1'), ('b', 'x')], [('a', None), ('b', 'y')]]
    """
    width = len(columns)
    turns = np.arange(width * rows).reshape(width, rows).T.ravel()
    items = pa.concat_arrays(list(columns.values())).take(pa.array(turns))
    keys = pa.array(list(columns), pa.string()).take(pa.array(np.tile(np.arange(width), rows)))
    return pa.MapArray.from_arrays(pa.array(np.arange(rows + 1) * width, pa.int32()), keys, items)


def diverting_nodes(state: RunState, found: SourceLetters) -> set[str] | None:
    """The nodes at which a pass sets aside the records that readers of the first one kept; None: nobody knows."""
    names: set[str] = set()
    for count in found.kept:
        assert count.source is not None
        node: PlanNode = state.plan.sources[count.source]
        while node.name not in state.builder.rejects.diverting and node.streams:
            readers = state.plan.readers(node.name)
            if len(readers) != 1:
                return None
            node = readers[0]
        names.add(node.name)
    return names
