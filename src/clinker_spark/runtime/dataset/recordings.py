"""Rerun recordings (`.rrd`) as events. They are read by the package `rerun-sdk`, which is an extra.

A recording is a segment, its timelines are indexes, and the lists that it logged are the values. Row ids there are 128
bits wide and order events across chunks that lie in the file in any order; here they become numbers in the same order.
"""

from __future__ import annotations

import importlib
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.indexes import NUMBER, TIME
from clinker_spark.runtime.dataset.component_types import as_kept
from clinker_spark.runtime.dataset.events import Block, Reading, entity_path

_ROW_ID = "rerun.controls.RowId"
Entity = tuple[str, str]
"""A segment, and an entity of it."""


def timelines_of(path: str) -> list[str]:
    """The timelines of a recording: all of them are indexes, as events without any would be static."""
    return sorted({name for _, chunk in _chunks(path) for name in chunk.timeline_names})


def read_recording(path: str, reading: Reading) -> Iterator[Block]:
    """The events of all recordings of a file, chunk after chunk."""
    numbers = _row_numbers(path)
    counts: dict[Entity, int] = defaultdict(int)
    close: dict[str, int] = defaultdict(int)
    for segment, chunk in _chunks(path):
        batch = chunk.to_record_batch()
        owner = segment, entity_path(str(chunk.entity_path))
        indexes: dict[str, np.ndarray] = {}
        components: dict[str, pa.Array] = {}
        for i, field in enumerate(batch.schema):
            kind = (field.metadata or {}).get(b"rerun:kind", b"data")
            if kind == b"index":
                indexes[field.name], same = _index(batch.column(i), field.name, reading, path)
                close[field.name] += same
            elif kind == b"data":
                components[field.name] = as_kept(batch.column(i), f"{path}: '{owner[1]}:{field.name}'")
        before = reading.counted[owner]
        counts[owner] += batch.num_rows
        yield Block(*owner, before + numbers[chunk.id], indexes, components)
    reading.counted.update(counts)
    for name, count in close.items():
        if count:
            reading.notes.append(_too_close(path, name, count))


def _too_close(path: str, index: str, count: int) -> Diagnostic:
    times = "time lies" if count == 1 else "times lie"
    message = f"'{path}': {count} {times} within the same microsecond of index '{index}' as another"
    help_text = "they count as one time, and the last of their values is shown; --all-values shows each"
    return Diagnostic("W852", message, help=help_text, severity=Severity.WARNING)


def _index(array: pa.Array, name: str, reading: Reading, path: str) -> tuple[np.ndarray, int]:
    """Index values, and how many different times became one."""
    if array.null_count:
        raise DatasetError("E852", f"'{path}': timeline '{name}' has no value in some rows")
    if pa.types.is_timestamp(array.type):
        reading.check(name, TIME, path)
        exact = array.cast(pa.timestamp("ns")).view(pa.int64()).to_numpy()
        found = exact // 1000
        return found, len(np.unique(exact)) - len(np.unique(found))
    reading.check(name, NUMBER, path)
    return array.view(pa.int64()).to_numpy(), 0


# ----------------------------------------------------------------------- row ids


@dataclass(frozen=True)
class _Span:
    """The first and the last row id of a chunk."""

    chunk: str
    first: tuple[int, int]
    last: tuple[int, int]
    rows: int
    in_order: bool


def _row_numbers(path: str) -> dict[str, np.ndarray]:
    """For each chunk its row ids as numbers that count the rows of its entity. Mostly the chunks of an entity follow
    each other; only where they do not, the ids themselves are compared."""
    spans: dict[Entity, list[_Span]] = defaultdict(list)
    for segment, chunk in _chunks(path):
        if len(ids := _ids(chunk)):
            order = _order(ids)
            first, last = ids[order[0]], ids[order[-1]]
            found = _Span(chunk.id, _pair(first), _pair(last), len(ids), bool((order[1:] > order[:-1]).all()))
            spans[segment, entity_path(str(chunk.entity_path))].append(found)
    numbers: dict[str, np.ndarray] = {}
    mixed: list[tuple[int, list[str]]] = []
    for of_entity in spans.values():
        start = 0
        for group in _overlapping(of_entity):
            rows = sum(span.rows for span in group)
            if len(group) == 1 and group[0].in_order:
                numbers[group[0].chunk] = np.arange(start, start + rows)
            else:
                mixed.append((start, [span.chunk for span in group]))
            start += rows
    return numbers | _ranked(path, mixed)


def _overlapping(spans: list[_Span]) -> Iterator[list[_Span]]:
    group: list[_Span] = []
    last = (0, 0)
    for span in sorted(spans, key=lambda span: span.first):
        if group and span.first > last:
            yield group
            group = []
        group.append(span)
        last = max(last, span.last) if len(group) > 1 else span.last
    if group:
        yield group


def _ranked(path: str, mixed: list[tuple[int, list[str]]]) -> dict[str, np.ndarray]:
    wanted = {chunk for _, chunks in mixed for chunk in chunks}
    if not wanted:
        return {}
    ids = {chunk.id: _ids(chunk) for _, chunk in _chunks(path) if chunk.id in wanted}
    found: dict[str, np.ndarray] = {}
    for start, chunks in mixed:
        together = np.concatenate([ids[chunk] for chunk in chunks])
        ranks = np.empty(len(together), dtype=np.int64)
        ranks[_order(together)] = np.arange(start, start + len(together))
        cuts = np.cumsum([len(ids[chunk]) for chunk in chunks])[:-1]
        found |= dict(zip(chunks, np.split(ranks, cuts), strict=True))
    return found


def _ids(chunk: Any) -> np.ndarray:
    """The row ids as pairs of numbers: nanoseconds, and a counter."""
    column = chunk.to_record_batch().column(_ROW_ID)
    pairs = np.frombuffer(column.buffers()[1], dtype=">u8").reshape(-1, 2)
    return pairs[column.offset : column.offset + len(column)]


def _order(ids: np.ndarray) -> np.ndarray:
    return np.lexsort((ids[:, 1], ids[:, 0]))


def _pair(row: np.ndarray) -> tuple[int, int]:
    return int(row[0]), int(row[1])


# ----------------------------------------------------------------------- the package


def _chunks(path: str) -> Iterator[tuple[str, Any]]:
    """The chunks of all recordings of a file, each with the name of its recording."""
    try:
        module = importlib.import_module("rerun.chunk")
    except ImportError as error:
        help_text = "install it with: pip install 'clinker-spark[rerun]'"
        message = f"'{path}' is a Rerun recording, which is read by a package that is not installed: {error}"
        raise DatasetError("E857", message, help_text) from None
    with open(path, "rb"):  # what the system refuses is said in its own words
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # files without a footer are read from end to end, as all are here
        try:
            reader = module.RrdReader(Path(path))
            for recording in reader.recordings():
                for chunk in reader.stream(store=recording):
                    if chunk.num_rows:
                        yield str(recording.recording_id), chunk
        except (ValueError, RuntimeError) as error:
            text = str(error).splitlines()[0]
            raise DatasetError("E852", f"cannot read '{path}': {text}") from None
