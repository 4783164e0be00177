"""Events: records with a segment, an entity, index values and components, in blocks of lines or of rows of tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.indexes import FIRST, LAST, NUMBER, TIME, number_of
from clinker_spark.runtime.dataset.component_types import as_kept

SEGMENT, ENTITY = "segment", "entity"
_BLOCK_LINES = 100_000
_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class Block:
    """Events of one entity of one segment with the same indexes, in the order of the file. `numbers` count the events
    of the entity in its segment, whatever their indexes."""

    segment: str
    entity: str
    numbers: np.ndarray
    indexes: dict[str, np.ndarray]
    components: dict[str, pa.Array]


@dataclass
class Reading:
    """The indexes of a dataset and their types, as far as a value was seen; and how many events of each entity in each
    segment were read. Events without a value say nothing, and are not counted."""

    names: tuple[str, ...]
    known: dict[str, str] = field(default_factory=dict)
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: list[Diagnostic] = field(default_factory=list)
    """What the user should know, though it is no error."""

    def check(self, name: str, kind: str, where: str) -> None:
        before = self.known.setdefault(name, kind)
        if before != kind:
            words = {NUMBER: "whole numbers", TIME: "times"}
            message = f"{where}: the values of index '{name}' are {words[kind]} here, and {words[before]} elsewhere"
            raise DatasetError("E852", message, "an index has values of one type")


def entity_path(text: str) -> str:
    """`arm/left` as `/arm/left`."""
    return "/" + text.strip("/")


# ----------------------------------------------------------------------- JSON lines


@dataclass
class _Group:
    """Events with the same segment, entity and indexes."""

    indexes: dict[str, list[Any]]
    components: dict[str, list[Any]] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)

    def add(self, number: int, event: dict[str, Any]) -> None:
        rows = len(self.numbers)
        for name, value in event.items():
            column = self.components.get(name)
            if column is None:
                column = self.components[name] = []
            if len(column) < rows:
                column.extend([None] * (rows - len(column)))
            column.append(value)
        self.numbers.append(number)


def json_events(file: IO[bytes], path: str, reading: Reading) -> Iterator[Block]:
    groups: dict[tuple[Any, ...], _Group] = {}
    read = 0
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError as error:
            raise DatasetError("E852", f"{path}:{number}: this is no JSON: {error}", _ONE_EVENT) from None
        if not isinstance(event, dict):
            raise DatasetError("E852", f"{path}:{number}: this is no event", _ONE_EVENT)
        event = {name: value for name, value in event.items() if value is not None}
        segment, entity = event.pop(SEGMENT, None), event.pop(ENTITY, None)
        if not isinstance(segment, str | int) or isinstance(segment, bool) or segment == "":
            raise DatasetError("E852", f"{path}:{number}: the event has no 'segment'", _ONE_EVENT)
        if not isinstance(entity, str) or not entity.strip("/"):
            raise DatasetError("E852", f"{path}:{number}: the event has no 'entity'", _ONE_EVENT)
        path_of = (str(segment), entity_path(entity))
        given = tuple(name for name in reading.names if name in event)
        numbers = {name: _index_number(event.pop(name), name, reading, f"{path}:{number}") for name in given}
        if not event:
            continue
        group = groups.get((*path_of, given))
        if group is None:
            group = groups[(*path_of, given)] = _Group({name: [] for name in given})
        for name, value in numbers.items():
            group.indexes[name].append(value)
        group.add(reading.counted[path_of], event)
        reading.counted[path_of] += 1
        read += 1
        if read % _BLOCK_LINES == 0:
            yield from _blocks(groups, path)
            groups.clear()
    yield from _blocks(groups, path)


def _index_number(value: Any, name: str, reading: Reading, where: str) -> int:
    kind = NUMBER if type(value) is int else TIME
    if reading.known.get(name) != kind or kind == TIME or not FIRST <= value <= LAST:
        text = value if kind == NUMBER or not str(value).strip().lstrip("+-").isdigit() else None
        try:
            number = number_of(text if isinstance(text, str | int) else None, kind, name)
        except DatasetError:
            message = f"{where}: {json.dumps(value)[:60]} is no value of index '{name}'"
            help_text = "an index value is a whole number or a time, 2026-01-31T12:00:00Z"
            raise DatasetError("E852", message, help_text) from None
        reading.check(name, kind, where)
        return number
    return int(value)


def _blocks(groups: dict[tuple[Any, ...], _Group], path: str) -> Iterator[Block]:
    for (segment, entity, _), group in groups.items():
        components = {}
        for name, values in group.components.items():
            values += [None] * (len(group.numbers) - len(values))
            try:
                array = pa.array(values)
            except (pa.ArrowException, OverflowError) as error:
                message = f"{path}: values of '{entity}:{name}' have no common type: {str(error).splitlines()[0]}"
                raise DatasetError("E853", message, _ONE_TYPE) from None
            components[name] = as_kept(array, f"{path}: '{entity}:{name}'")
        indexes = {name: np.array(values, dtype=np.int64) for name, values in group.indexes.items()}
        yield Block(segment, entity, np.array(group.numbers, dtype=np.int64), indexes, components)


_ONE_EVENT = 'an event is an object such as {"segment": "run1", "entity": "/arm", "frame": 10, "v": 100}'
_ONE_TYPE = "a component has values of one type; whole numbers and others may be mixed"


# ----------------------------------------------------------------------- tables


def csv_events(file: IO[bytes], path: str, reading: Reading) -> Iterator[Block]:
    from pyarrow import csv

    convert = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, column_types={SEGMENT: pa.string(), ENTITY: pa.string()}
    )
    reader = csv.open_csv(file, read_options=csv.ReadOptions(block_size=_BLOCK_BYTES), convert_options=convert)
    row = 2
    for batch in reader:
        yield from table_events(batch, reading, path, row)
        row += batch.num_rows


def parquet_events(path: str, reading: Reading) -> Iterator[Block]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        row = 1
        for batch in file.iter_batches(batch_size=1 << 18):
            yield from table_events(batch, reading, path, row)
            row += batch.num_rows


def table_events(batch: pa.RecordBatch, reading: Reading, path: str, first_row: int) -> Iterator[Block]:
    """The events of a table, grouped without looking at single rows."""
    names = batch.schema.names
    for name in (SEGMENT, ENTITY):
        if name not in names:
            message = f"'{path}' has no column '{name}'"
            raise DatasetError("E852", message, "events have columns 'segment' and 'entity', indexes and components")
        if batch.column(name).null_count:
            row = first_row + int(np.flatnonzero(batch.column(name).is_null().to_numpy(zero_copy_only=False))[0])
            raise DatasetError("E852", f"{path}, row {row}: the event has no '{name}'")
    given = {name: _index_numbers(batch.column(name), name, reading, path) for name in reading.names if name in names}
    components = [name for name in names if name not in (SEGMENT, ENTITY, *given)]
    said = np.zeros(batch.num_rows, dtype=bool)
    for name in components:
        said |= pc.is_valid(batch.column(name)).to_numpy(zero_copy_only=False)
    segments = batch.column(SEGMENT).cast(pa.string()).dictionary_encode()
    entities = batch.column(ENTITY).cast(pa.string()).dictionary_encode()
    owner = segments.indices.to_numpy().astype(np.int64) * len(entities.dictionary) + entities.indices.to_numpy()
    code = owner
    for _, there in given.values():
        code = code * 2 + there
    rows = np.flatnonzero(said)
    for of_entity in _groups(owner, rows):
        first = int(of_entity[0])
        segment, text = str(segments[first].as_py()), str(entities[first].as_py())
        if not text.strip("/"):
            message = f"{path}, row {first_row + first}: '{text}' is no entity"
            raise DatasetError("E852", message, "an entity is a path: /arm")
        entity = entity_path(text)
        before = reading.counted[segment, entity]
        reading.counted[segment, entity] += len(of_entity)
        for places in _groups(code, of_entity):
            numbers = before + np.searchsorted(of_entity, places)
            picked = pa.array(places)
            values = {}
            for name in components:
                array = batch.column(name).take(picked)
                if array.null_count < len(array):
                    values[name] = as_kept(array, f"{path}: '{entity}:{name}'")
            indexes = {name: found[places] for name, (found, there) in given.items() if there[places[0]]}
            yield Block(segment, entity, numbers, indexes, values)


def _groups(codes: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """Rows with the same code together, each group in its order."""
    if not len(rows):
        return []
    order = rows[np.argsort(codes[rows], kind="stable")]
    found = codes[order]
    return np.split(order, np.flatnonzero(found[1:] != found[:-1]) + 1)


def _index_numbers(array: pa.Array, name: str, reading: Reading, path: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of an index column, and where there are any."""
    there = pc.is_valid(array).to_numpy(zero_copy_only=False)
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.int64), there
    if pa.types.is_integer(kind):
        reading.check(name, NUMBER, path)
        array = array.cast(pa.int64())
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        reading.check(name, TIME, path)
        # Nanoseconds that are cut off would make one time of two: that is an error here.
        array = array.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=True).view(pa.int64())
    else:
        message = f"'{path}': column '{name}' is {kind}, which cannot be an index"
        raise DatasetError("E852", message, "an index has whole numbers or times, in microseconds at most")
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
    if len(numbers) and (int(numbers.min()) < FIRST or int(numbers.max()) > LAST):
        raise DatasetError("E852", f"'{path}': a value of index '{name}' is too large")
    return numbers, there
