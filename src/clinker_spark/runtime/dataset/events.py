"""Events: records with a segment, an entity, index values and components, read from files in blocks."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.indexes import FIRST, LAST, NUMBER, TIME, number_of
from clinker_spark.runtime.dataset.component_types import kept

SEGMENT, ENTITY = "segment", "entity"
FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_BLOCK_LINES = 100_000
_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class Block:
    """Events of one entity of one segment with the same indexes, in the order of the file."""

    segment: str
    entity: str
    indexes: dict[str, np.ndarray]
    components: dict[str, pa.Array]
    rows: int


@dataclass
class IndexTypes:
    """The indexes of a dataset and their types, as far as a value was seen."""

    names: tuple[str, ...]
    known: dict[str, str] = field(default_factory=dict)

    def check(self, name: str, kind: str, where: str) -> None:
        before = self.known.setdefault(name, kind)
        if before != kind:
            words = {NUMBER: "whole numbers", TIME: "times"}
            message = f"{where}: the values of index '{name}' are {words[kind]} here, and {words[before]} elsewhere"
            raise DatasetError("E852", message, "an index has values of one type")


def read_events(path: str, types: IndexTypes, form: str | None = None) -> Iterator[Block]:
    """The events of a file. Raises DatasetError, with the place of what is wrong."""
    name = Path(path).name.removesuffix(".gz").removesuffix(".bz2")
    form = form or FORMATS.get(Path(name).suffix.lower())
    try:
        if form == "jsonl":
            with _open(path) as file:
                yield from _json_events(file, path, types)
        elif form == "csv":
            with _open(path) as file:
                yield from _csv_events(file, path, types)
        elif form == "parquet":
            yield from _parquet_events(path, types)
        else:
            help_text = "events are read from .jsonl, .csv and .parquet files; or say --format"
            raise DatasetError("E852", f"'{path}': it is not known how to read this file", help_text)
    except OSError as error:
        raise DatasetError("E852", f"cannot read '{path}': {(error.strerror or str(error)).lower()}") from None
    except (pa.ArrowException, UnicodeDecodeError, EOFError) as error:
        raise DatasetError("E852", f"cannot read '{path}': {str(error).splitlines()[0]}") from None


def _open(path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return bz2.open(path, "rb") if path.endswith(".bz2") else open(path, "rb")


def entity_path(text: str) -> str:
    """`arm/left` as `/arm/left`."""
    return "/" + text.strip("/")


# ----------------------------------------------------------------------- JSON lines


@dataclass
class _Group:
    """Events with the same segment, entity and indexes."""

    indexes: dict[str, list[Any]]
    components: dict[str, list[Any]] = field(default_factory=dict)
    rows: int = 0

    def add(self, event: dict[str, Any]) -> None:
        for name, value in event.items():
            column = self.components.get(name)
            if column is None:
                column = self.components[name] = []
            if len(column) < self.rows:
                column.extend([None] * (self.rows - len(column)))
            column.append(value)
        self.rows += 1


def _json_events(file: IO[bytes], path: str, types: IndexTypes) -> Iterator[Block]:
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
        given = tuple(name for name in types.names if name in event)
        key = (str(segment), entity_path(entity), given)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group({name: [] for name in given})
        for name in given:
            value = event.pop(name)
            if type(value) is not int:
                value = _time(value, name, types, f"{path}:{number}")
            elif types.known.get(name) != NUMBER:
                types.check(name, NUMBER, f"{path}:{number}")
            if not FIRST <= value <= LAST:
                raise DatasetError("E852", f"{path}:{number}: {value} is too large for index '{name}'")
            group.indexes[name].append(value)
        group.add(event)
        read += 1
        if read % _BLOCK_LINES == 0:
            yield from _blocks(groups, path)
            groups.clear()
    yield from _blocks(groups, path)


def _time(value: Any, name: str, types: IndexTypes, where: str) -> int:
    try:
        if not isinstance(value, str) or value.strip().lstrip("+-").isdigit():
            raise DatasetError("E852", "")
        number = number_of(value, TIME, name)
    except DatasetError:
        message = f"{where}: {json.dumps(value)[:60]} is no value of index '{name}'"
        raise DatasetError(
            "E852", message, "an index value is a whole number or a time, 2026-01-31T12:00:00Z"
        ) from None
    types.check(name, TIME, where)
    return number


def _blocks(groups: dict[tuple[Any, ...], _Group], path: str) -> Iterator[Block]:
    for (segment, entity, _), group in groups.items():
        components = {}
        for name, values in group.components.items():
            values += [None] * (group.rows - len(values))
            try:
                array = pa.array(values)
            except (pa.ArrowException, OverflowError) as error:
                message = f"{path}: values of '{entity}:{name}' have no common type: {str(error).splitlines()[0]}"
                raise DatasetError("E853", message, _ONE_TYPE) from None
            components[name] = array if array.type == (kind := kept(array.type)) else array.cast(kind)
        indexes = {name: np.array(values, dtype=np.int64) for name, values in group.indexes.items()}
        yield Block(segment, entity, indexes, components, group.rows)


_ONE_EVENT = 'an event is an object such as {"segment": "run1", "entity": "/arm", "frame": 10, "v": 100}'
_ONE_TYPE = "a component has values of one type; whole numbers and others may be mixed"


# ----------------------------------------------------------------------- tables


def _csv_events(file: IO[bytes], path: str, types: IndexTypes) -> Iterator[Block]:
    from pyarrow import csv

    convert = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, column_types={SEGMENT: pa.string(), ENTITY: pa.string()}
    )
    reader = csv.open_csv(file, read_options=csv.ReadOptions(block_size=_BLOCK_BYTES), convert_options=convert)
    row = 2
    for batch in reader:
        yield from table_events(batch, types, path, row)
        row += batch.num_rows


def _parquet_events(path: str, types: IndexTypes) -> Iterator[Block]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        row = 1
        for batch in file.iter_batches(batch_size=1 << 18):
            yield from table_events(batch, types, path, row)
            row += batch.num_rows


def table_events(batch: pa.RecordBatch, types: IndexTypes, path: str, first_row: int) -> Iterator[Block]:
    """The events of a table, grouped without looking at single rows."""
    names = batch.schema.names
    for name in (SEGMENT, ENTITY):
        if name not in names:
            message = f"'{path}' has no column '{name}'"
            raise DatasetError("E852", message, "events have columns 'segment' and 'entity', indexes and components")
        if batch.column(name).null_count:
            row = first_row + int(np.flatnonzero(batch.column(name).is_null().to_numpy(zero_copy_only=False))[0])
            raise DatasetError("E852", f"{path}, row {row}: the event has no '{name}'")
    if not batch.num_rows:
        return
    segments = batch.column(SEGMENT).cast(pa.string()).dictionary_encode()
    entities = batch.column(ENTITY).cast(pa.string()).dictionary_encode()
    given = {name: _index_numbers(batch.column(name), name, types, path) for name in types.names if name in names}
    code = segments.indices.to_numpy().astype(np.int64) * len(entities.dictionary) + entities.indices.to_numpy()
    for _, there in given.values():
        code = code * 2 + there
    order = np.argsort(code, kind="stable")
    cuts = np.flatnonzero(np.append(True, code[order][1:] != code[order][:-1]))
    components = [name for name in names if name not in (SEGMENT, ENTITY, *given)]
    for start, stop in zip(cuts, np.append(cuts[1:], len(order)), strict=True):
        places = order[start:stop]
        first = int(places[0])
        picked = pa.array(places)
        values = {}
        for name in components:
            array = batch.column(name)
            array = array if len(cuts) == 1 else array.take(picked)
            if array.null_count < len(array):
                values[name] = array if array.type == (kind := kept(array.type)) else array.cast(kind)
        entity = str(entities[first].as_py())
        if not entity.strip("/"):
            raise DatasetError(
                "E852", f"{path}, row {first_row + first}: '{entity}' is no entity", "write a path: /arm"
            )
        indexes = {name: numbers[places] for name, (numbers, there) in given.items() if there[first]}
        yield Block(str(segments[first].as_py()), entity_path(entity), indexes, values, len(places))


def _index_numbers(array: pa.Array, name: str, types: IndexTypes, path: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of an index column, and where there are any."""
    there = pc.is_valid(array).to_numpy(zero_copy_only=False)
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), dtype=np.int64), there
    if pa.types.is_integer(kind):
        types.check(name, NUMBER, path)
        array = array.cast(pa.int64())
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        types.check(name, TIME, path)
        # Nanoseconds that are cut off would make one time of two: that is an error here.
        array = array.cast(pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=True).view(pa.int64())
    else:
        message = f"'{path}': column '{name}' is {kind}, which cannot be an index"
        raise DatasetError("E852", message, "an index has whole numbers or times, in microseconds at most")
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
    if len(numbers) and (int(numbers.min()) < FIRST or int(numbers.max()) > LAST):
        raise DatasetError("E852", f"'{path}': a value of index '{name}' is too large")
    return numbers, there


def formats() -> Sequence[str]:
    return sorted(set(FORMATS.values()))
