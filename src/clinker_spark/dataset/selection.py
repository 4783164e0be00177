"""What a query asks for, and the chunks that it needs.

A query names an index, contents (entities), segments, a range. Which chunks can matter is known from the manifests
alone: those with values in the range and, when values are filled in from earlier times, for each component the chunks
that can have its newest value before the range.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.dataset import indexes
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.files.manifest import Chunk, Dataset
from clinker_spark.dataset.sampling import every

SEGMENT = "segment"
ORIGIN, ROW = "@origin_time", "@row_id"


@dataclass(frozen=True)
class Query:
    """What is asked. `entities` are paths or patterns (`/arm/**` is /arm and all below it, `*` one name); without any,
    all. `columns` are columns of the result: the rows stay those of the entities."""

    index: str | None
    entities: tuple[str, ...] = ()
    segments: tuple[str, ...] | None = None
    range: tuple[Any, Any] | None = None
    """The first and the last index value, both included; None is open."""
    values: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None
    """Rows at exactly these index values: for all segments, as far as they lie in the segment; or for each of some."""
    every: str | None = None
    """Rows at a steady pace, `10` or `100ms`, from the beginning of each segment to its end."""
    fill: bool = False
    columns: tuple[str, ...] | None = None
    origin_time: bool = False
    """A column with the time at which each value was logged."""
    row_ids: bool = False
    """A column with the row id of each value."""
    all_values: bool = False
    """Lists of all values that were logged at one time, instead of the last one."""


@dataclass(frozen=True)
class Column:
    """A component in the result. One that is not `shown` only decides which rows there are."""

    entity: str
    component: str
    type: pa.DataType
    shown: bool = True

    @property
    def name(self) -> str:
        return f"{self.entity}:{self.component}"


@dataclass(frozen=True)
class Layout:
    """The columns of a result, and what is known for each of its rows."""

    index: str | None
    index_types: Mapping[str, str]
    columns: tuple[Column, ...]
    fill: bool
    origin_time: bool
    row_ids: bool
    all_values: bool
    shown_indexes: tuple[str, ...]
    segment_shown: bool = True
    select: tuple[str, ...] | None = None
    """The columns that are asked for, in that order."""

    @cached_property
    def others(self) -> tuple[str, ...]:
        """Indexes besides the queried one that are shown."""
        return tuple(name for name in self.shown_indexes if name != self.index)

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [pa.field(SEGMENT, pa.string())] if self.segment_shown else []
        shown = [*self.others, *([self.index] if self.index in self.shown_indexes else [])]
        fields += [pa.field(str(name), indexes.ARROW[self.index_types[str(name)]]) for name in shown]
        time = None if self.index is None else indexes.ARROW[self.index_types[self.index]]
        for column in self.columns:
            if not column.shown:
                continue
            fields.append(pa.field(column.name, self.listed(column.type)))
            if self.origin_time and time is not None:
                fields.append(pa.field(column.name + ORIGIN, time))
            if self.row_ids:
                fields.append(pa.field(column.name + ROW, self.listed(pa.int64())))
        found = pa.schema(fields)
        return found if self.select is None else pa.schema([found.field(name) for name in self.select])

    def listed(self, kind: pa.DataType) -> pa.DataType:
        """The type of cells with values of a type."""
        return pa.list_(kind) if self.all_values else kind

    @cached_property
    def by_name(self) -> dict[tuple[str, str], int]:
        return {(c.entity, c.component): i for i, c in enumerate(self.columns)}


@dataclass(frozen=True)
class ChunkNeed:
    """A chunk to fetch: which components as values, and which only as "there is one"."""

    chunk: Chunk
    components: tuple[str, ...]
    size: int
    """Decoded bytes of what is needed."""
    time_min: int
    """The least time of what is needed, on the queried index; for static chunks before all times."""


@dataclass(frozen=True)
class Part:
    """Some rows of one segment: those from `low` to `high`, or at `values`."""

    segment: str
    low: int
    high: int
    values: np.ndarray | None = None
    needs: tuple[ChunkNeed, ...] = ()

    @property
    def size(self) -> int:
        return sum(need.size for need in self.needs)


@dataclass(frozen=True)
class Selection:
    """A query that fits its dataset: the layout of the result and the parts of segments that make it, in order."""

    layout: Layout
    parts: tuple[Part, ...] = field(default=())

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


def select(dataset: Dataset, query: Query) -> Selection:
    """Check a query, and find what it needs. Raises DatasetError."""
    layout = layout_of(dataset, query)
    low, high = _bounds(dataset, query)
    values = _values(dataset, query)
    parts = []
    for segment in _segments(dataset, query):
        if isinstance(values, dict) and segment not in values:
            continue
        part = Part(segment, low, high)
        given = values.get(segment) if isinstance(values, dict) else values
        chunks = dataset.chunks(segment)
        if given is not None:
            given = given[(given >= low) & (given <= high)]
            if not isinstance(values, dict):
                span = dataset.catalogue.segments[segment].ranges.get(str(query.index))
                given = given[(given >= span[0]) & (given <= span[1])] if span is not None else given[:0]
            if not len(given):
                continue
            part = replace(part, low=int(given[0]), high=int(given[-1]), values=given)
        needs = needed(chunks, layout, part)
        if needs or given is not None:
            parts.append(replace(part, needs=needs))
    return Selection(layout, tuple(parts))


def layout_of(dataset: Dataset, query: Query) -> Layout:
    """The columns that a query has."""
    if query.index is not None:
        dataset.index_type(query.index)
    found = [
        Column(entity, name, kind)
        for entity in _entities(dataset, query.entities)
        for name, kind in sorted(dataset.catalogue.components[entity].items())
    ]
    whole = Layout(
        query.index,
        dict(dataset.catalogue.indexes),
        tuple(found),
        query.fill,
        query.origin_time and query.index is not None,
        query.row_ids,
        query.all_values,
        tuple(dataset.catalogue.indexes),
    )
    known = whole.schema.names
    if twice := [name for name, count in Counter(known).items() if count > 1]:
        help_text = "an index, or a component with the same name, has it: choose others with --entities"
        raise DatasetError("E854", f"two columns of the result are called '{twice[0]}'", help_text)
    if query.columns is None:
        return whole
    for name in query.columns:
        if name not in known:
            help_text = did_you_mean(name, known) or f"it has {', '.join(known)}"
            raise DatasetError("E854", f"the result has no column '{name}'", help_text)
    asked = set(query.columns)
    columns = tuple(replace(c, shown=bool(asked & {c.name, c.name + ORIGIN, c.name + ROW})) for c in whole.columns)
    return replace(
        whole,
        columns=columns,
        shown_indexes=tuple(name for name in whole.shown_indexes if name in asked),
        segment_shown=SEGMENT in asked,
        select=tuple(dict.fromkeys(query.columns)),
    )


def needed(chunks: Iterable[Chunk], layout: Layout, part: Part) -> tuple[ChunkNeed, ...]:
    """The chunks of a segment that can change a row of a part, static ones first and then by time."""
    chunks = list(chunks)
    static = {(c.entity, name) for c in chunks if c.is_static for name in c.components}
    found = [need for c in chunks if c.is_static and (need := _static_need(c, layout)) is not None]
    if layout.index is None:
        return tuple(found)
    newest = _newest_before(chunks, layout, part, static) if layout.fill else {}
    for chunk in chunks:
        if layout.index not in chunk.indexes:
            continue
        wanted = []
        for name, component in chunk.components.items():
            key = (chunk.entity, name)
            if key not in layout.by_name or key in static:  # static values shadow all others
                continue
            first, last = component.ranges[layout.index]
            inside = first <= part.high and last >= part.low
            earlier = first < part.low and last >= newest.get(key, part.low)
            if inside or earlier:
                wanted.append(name)
        if wanted:
            found.append(_need(chunk, layout, wanted))
    return tuple(sorted(found, key=lambda need: (need.time_min, need.chunk.pack, need.chunk.offset)))


def _newest_before(
    chunks: list[Chunk], layout: Layout, part: Part, static: set[tuple[str, str]]
) -> dict[tuple[str, str], int]:
    """For each component a time before the part at which it surely has a value: what is older cannot be filled in."""
    found: dict[tuple[str, str], int] = {}
    for chunk in chunks:
        for name, component in chunk.components.items():
            key = (chunk.entity, name)
            span = component.ranges.get(str(layout.index))
            if key not in layout.by_name or key in static or span is None or span[0] >= part.low:
                continue
            surely = span[1] if span[1] < part.low else span[0]
            found[key] = max(found.get(key, surely), surely)
    return found


def _static_need(chunk: Chunk, layout: Layout) -> ChunkNeed | None:
    wanted = [n for n in chunk.components if (chunk.entity, n) in layout.by_name]
    shown = [n for n in wanted if layout.columns[layout.by_name[chunk.entity, n]].shown]
    if not shown and not (wanted and layout.index is None):
        return None
    return _need(chunk, layout, wanted)


def _need(chunk: Chunk, layout: Layout, wanted: list[str]) -> ChunkNeed:
    size = chunk.index_size + sum(chunk.components[name].size for name in wanted)
    times = [chunk.components[name].ranges[layout.index][0] for name in wanted if layout.index in chunk.indexes]
    return ChunkNeed(chunk, tuple(wanted), size, min(times, default=indexes.FIRST - 1))


def split(dataset: Dataset, selection: Selection, most: int, size: int) -> list[tuple[Part, ...]]:
    """The parts in at most about `most` groups of neighbours, of about equal size and at least `size` bytes; segments
    that are larger than their share are cut at times. Group after group has the rows in their order."""
    share = max(selection.size / max(most, 1), size, 1)
    groups: list[list[Part]] = [[]]
    held = 0.0
    for part in selection.parts:
        for piece in _cut(dataset, selection.layout, part, share):
            if groups[-1] and held + piece.size / 2 > share:
                groups.append([])
                held = 0.0
            groups[-1].append(piece)
            held += piece.size
    return [tuple(group) for group in groups if group]


def _cut(dataset: Dataset, layout: Layout, part: Part, share: float) -> list[Part]:
    pieces = round(part.size / share)
    temporal = [need for need in part.needs if not need.chunk.is_static]
    if pieces < 2 or len(temporal) < 2 * pieces:
        return [part]
    cuts: list[int] = []
    seen = 0
    for need in temporal:
        seen += need.size
        if seen > (len(cuts) + 1) * part.size / pieces and part.low < need.time_min <= part.high:
            if not cuts or need.time_min > cuts[-1]:
                cuts.append(need.time_min)
            if len(cuts) == pieces - 1:
                break
    chunks = dataset.chunks(part.segment)
    found = []
    for low, high in zip([part.low, *cuts], [*(cut - 1 for cut in cuts), part.high], strict=True):
        piece = replace(part, low=low, high=high)
        if part.values is not None:
            piece = replace(piece, values=part.values[(part.values >= low) & (part.values <= high)])
            if not len(piece.values if piece.values is not None else ()):
                continue
        found.append(replace(piece, needs=needed(chunks, layout, piece)))
    return found


# ----------------------------------------------------------------------- what is named


def _entities(dataset: Dataset, patterns: tuple[str, ...]) -> list[str]:
    if not patterns:
        return list(dataset.entities)
    found: set[str] = set()
    for pattern in patterns:
        path = pattern if pattern.startswith("/") else "/" + pattern
        matches = [e for e in dataset.entities if entity_matches(path, e)]
        if not matches:
            help_text = did_you_mean(path, dataset.entities) or f"it has {', '.join(dataset.entities[:20])}"
            raise DatasetError("E854", f"the dataset has no entity '{pattern}'", help_text)
        found.update(matches)
    return sorted(found)


def entity_matches(pattern: str, entity: str) -> bool:
    """Is an entity meant by a pattern?

    >>> [entity_matches("/arm/**", e) for e in ("/arm", "/arm/left/hand", "/army")]
    [True, True, False]
    >>> entity_matches("/*/hand", "/left/hand"), entity_matches("/**", "/x")
    (True, True)
    """
    text = "".join(
        {"/**": "(/.*)?", "**": ".*", "*": "[^/]*"}.get(piece) or re.escape(piece)
        for piece in re.split(r"(/\*\*|\*\*|\*)", pattern)
    )
    return re.fullmatch(text, entity, re.DOTALL) is not None


def _segments(dataset: Dataset, query: Query) -> list[str]:
    known = dataset.catalogue.segments
    if query.segments is None:
        return list(known)
    for name in query.segments:
        if name not in known:
            help_text = did_you_mean(name, known) or f"it has {', '.join(list(known)[:20])}"
            raise DatasetError("E854", f"the dataset has no segment '{name}'", help_text)
    return sorted(set(query.segments))


def _bounds(dataset: Dataset, query: Query) -> tuple[int, int]:
    if query.range is None:
        return indexes.FIRST, indexes.LAST
    if query.index is None:
        raise DatasetError("E854", "a range needs an index", "name the index: --index frame")
    kind = dataset.index_type(query.index)
    low, high = (None if v is None else indexes.number_of(v, kind, query.index) for v in query.range)
    low, high = indexes.FIRST if low is None else low, indexes.LAST if high is None else high
    if low > high:
        raise DatasetError("E854", "the range ends before it begins", "write the smaller value first")
    return low, high


def _values(dataset: Dataset, query: Query) -> np.ndarray | dict[str, np.ndarray] | None:
    if query.every is not None:
        if query.values is not None:
            raise DatasetError("E854", "a step and index values cannot both be given", "keep one of them")
        return every(dataset, query.index, query.every)
    if query.values is None:
        return None
    if query.index is None:
        raise DatasetError("E854", "index values need an index", "name the index: --index frame")
    kind = dataset.index_type(query.index)
    if isinstance(query.values, Mapping):
        return {str(s): indexes.numbers_of(list(v), kind, query.index) for s, v in query.values.items()}
    return indexes.numbers_of(list(query.values), kind, query.index)
