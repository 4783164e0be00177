"""The second voice: what a query must give, said in plain Python over lists of events, one cell at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from clinker_spark.dataset.either import as_logged, holds_either
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.query import query
from clinker_spark.dataset.selection import Query, entity_matches
from clinker_spark.runtime.commit.seam import PosixFiles
from clinker_spark.runtime.dataset.imports import import_events

Row = dict[str, Any]


class Unsynced(PosixFiles):
    """Files that need not survive a loss of power: tests by the hundred would wait for the disk."""

    def sync(self, path: Path) -> None:
        pass


@dataclass
class Event:
    segment: str
    entity: str
    indexes: dict[str, int] = field(default_factory=dict)
    components: dict[str, Any] = field(default_factory=dict)

    def record(self) -> Row:
        return {"segment": self.segment, "entity": self.entity, **self.indexes, **self.components}


@dataclass
class Value:
    """A value that was logged: `at` are its index values, `row` counts the events of its entity."""

    value: Any
    at: dict[str, int]
    row: int


def answer(events: Sequence[Event], indexes: Sequence[str], asked: Query) -> list[Row]:
    """All rows of the result."""
    events = [e for e in events if any(value is not None for value in e.components.values())]
    chosen = [e for e in events if not asked.entities or any(entity_matches(p, e.entity) for p in asked.entities)]
    columns = sorted({(e.entity, name) for e in chosen for name, value in e.components.items() if value is not None})
    found: list[Row] = []
    for segment in sorted({e.segment for e in events}):
        if asked.segments is not None and segment not in asked.segments:
            continue
        found += _segment(segment, [e for e in events if e.segment == segment], columns, indexes, asked)
    return found


def _segment(
    segment: str, events: list[Event], columns: list[tuple[str, str]], indexes: Sequence[str], asked: Query
) -> list[Row]:
    logged: dict[tuple[str, str], list[Value]] = {column: [] for column in columns}
    rows: dict[str, int] = {}
    for event in events:
        row = rows[event.entity] = rows.get(event.entity, -1) + 1
        for name, value in event.components.items():
            if value is not None and (event.entity, name) in logged:
                logged[event.entity, name].append(Value(value, event.indexes, row))
    static = {column: [v for v in values if not v.at] for column, values in logged.items()}
    others = [name for name in indexes if name != asked.index]
    if asked.index is None:
        if not any(static.values()):
            return []
        cells = {c: [values[-1]] if values and not asked.all_values else values for c, values in static.items()}
        return [_row(segment, others, None, None, cells, asked)]
    index = asked.index
    temporal = {
        column: [] if static[column] else [v for v in values if index in v.at] for column, values in logged.items()
    }
    times = _times(segment, temporal, [e for e in events if index in e.indexes], asked)
    found = []
    for time in times:
        cells = {}
        for column in columns:
            if static[column]:
                values = static[column]
            else:
                before = [v for v in temporal[column] if (v.at[index] <= time if asked.fill else v.at[index] == time)]
                newest = max((v.at[index] for v in before), default=None)
                values = [v for v in before if v.at[index] == newest]
            values = sorted(values, key=lambda v: v.row)
            cells[column] = values if asked.all_values else values[-1:]
        found.append(_row(segment, others, index, time, cells, asked))
    return found


def _times(segment: str, temporal: dict[tuple[str, str], list[Value]], events: list[Event], asked: Query) -> list[int]:
    index = asked.index
    assert index is not None
    low, high = asked.range or (None, None)

    def inside(time: int) -> bool:
        return (low is None or time >= low) and (high is None or time <= high)

    if isinstance(asked.values, Mapping):
        return [t for t in sorted(asked.values.get(segment, ())) if inside(t)]
    if asked.values is not None:
        span = [e.indexes[index] for e in events]
        return [t for t in sorted(asked.values) if span and min(span) <= t <= max(span) and inside(t)]
    return sorted(t for t in {v.at[index] for values in temporal.values() for v in values} if inside(t))


def _row(
    segment: str,
    others: list[str],
    index: str | None,
    time: int | None,
    cells: Mapping[tuple[str, str], list[Value]],
    asked: Query,
) -> Row:
    row: Row = {"segment": segment}
    used = [value for values in cells.values() for value in values]
    for name in others:
        row[name] = max((v.at[name] for v in used if name in v.at), default=None)
    if index is not None:
        row[index] = time
    for (entity, name), values in cells.items():
        column = f"{entity}:{name}"
        plain = [v.value for v in values]
        row[column] = (plain or None) if asked.all_values else (plain[-1] if plain else None)
        if asked.origin_time and index is not None:
            row[column + "@origin_time"] = values[-1].at.get(index) if values else None
        if asked.row_ids:
            ids = [v.row for v in values]
            row[column + "@row_id"] = (ids or None) if asked.all_values else (ids[-1] if ids else None)
    return row if asked.columns is None else {name: row[name] for name in asked.columns}


def recorded(folder: Path, events: Sequence[Event], indexes: Sequence[str]) -> Dataset:
    """A dataset of events, imported from JSON lines."""
    folder.mkdir(exist_ok=True)
    file = folder / "events.jsonl"
    file.write_text("".join(json.dumps(event.record()) + "\n" for event in events))
    import_events(str(folder / "dataset"), [str(file)], indexes, files=Unsynced())
    return Dataset.open(str(folder / "dataset"))


def rows_of(dataset: Dataset, asked: Query) -> list[Row]:
    """What the engine gives. Components that were logged as single values and as lists are what they were."""
    return [logged(row, batch.schema) for batch in query(dataset, asked) for row in batch.to_pylist()]


def logged(row: Row, schema: pa.Schema) -> Row:
    return {f.name: as_logged(row[f.name], f.type) if holds_either(f.type) else row[f.name] for f in schema}
