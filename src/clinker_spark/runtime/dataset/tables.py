"""Events as tables: CSV and Parquet."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.indexes import FIRST, LAST, NUMBER, TIME, number_of
from clinker_spark.runtime.dataset.component_types import as_kept
from clinker_spark.runtime.dataset.events import ENTITY, INDEX_VALUE, SEGMENT, Block, Reading, entity_path

_BLOCK_BYTES = 32 << 20
_NAMED = {SEGMENT: "a segment is the name of a recording: run1", ENTITY: "an entity is a path: /arm"}


def csv_events(file: IO[bytes], path: str, reading: Reading) -> Iterator[Block]:
    """Cells of a CSV file are texts; what they mean is decided for each component of each entity by itself."""
    from pyarrow import csv  # Arrow's formats are loaded by who asks for them

    read = csv.ReadOptions(block_size=_BLOCK_BYTES)
    parse = csv.ParseOptions(newlines_in_values=True)
    names = csv.open_csv(io.BytesIO(_header(file, path)), parse_options=parse).schema.names
    file.seek(0)
    convert = csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, column_types=dict.fromkeys(names, pa.string())
    )
    row = 2
    for batch in csv.open_csv(file, read_options=read, parse_options=parse, convert_options=convert):
        yield from table_events(batch, reading, path, row, of_text)
        row += batch.num_rows


def _header(file: IO[bytes], path: str) -> bytes:
    """The first line that is not empty; a quoted name may have several lines."""
    found = b""
    for line in file:
        found += line
        if line.strip() and found.count(b'"') % 2 == 0:
            return found
    if not found.strip():
        raise DatasetError("E852", f"'{path}' is empty", "a CSV file begins with the names of its columns")
    return found


def parquet_events(path: str, reading: Reading) -> Iterator[Block]:
    import pyarrow.parquet as pq  # Arrow's formats are loaded by who asks for them

    with pq.ParquetFile(path) as file:
        row = 1
        for batch in file.iter_batches(batch_size=1 << 18):
            yield from table_events(batch, reading, path, row)
            row += batch.num_rows


def table_events(
    batch: pa.RecordBatch,
    reading: Reading,
    path: str,
    first_row: int,
    meant: Callable[[pa.Array, pa.DataType | None], pa.Array] = lambda values, known: values,
) -> Iterator[Block]:
    """The events of a table, grouped without looking at single rows. `meant` says what the values of a component of an
    entity are, whose type may be known."""
    names = batch.schema.names
    _check_names(names, path)
    given = {
        name: _index_numbers(batch.column(name), name, reading, path, first_row)
        for name in reading.names
        if name in names
    }
    components = [name for name in names if name not in (SEGMENT, ENTITY, *given)]
    said = np.zeros(batch.num_rows, dtype=bool)
    for name in components:
        said |= pc.is_valid(batch.column(name)).to_numpy(zero_copy_only=False)
    segments, segment_of = _named(batch.column(SEGMENT), SEGMENT, path, first_row)
    entities, entity_of = _named(batch.column(ENTITY), ENTITY, path, first_row)
    owner = segment_of * len(entities) + entity_of
    code = owner
    for _, there in given.values():
        code = code * 2 + there
    for of_entity in _groups(entity_of, np.flatnonzero(said)):
        entity = entities[entity_of[of_entity[0]]]
        known = reading.types.get(entity, {})
        picked = pa.array(of_entity)
        read = _with_values({name: batch.column(name).take(picked) for name in components})
        values = {name: as_kept(meant(v, known.get(name)), f"{path}: '{entity}:{name}'") for name, v in read.items()}
        for of_segment in _groups(owner, of_entity):
            segment = segments[segment_of[of_segment[0]]]
            before = reading.counted[segment, entity]
            reading.counted[segment, entity] += len(of_segment)
            for places in _groups(code, of_segment):
                indexes = {name: found[places] for name, (found, there) in given.items() if there[places[0]]}
                taken = pa.array(np.searchsorted(of_entity, places))
                logged = {name: v.take(taken) for name, v in values.items()} if len(places) < len(picked) else values
                rows = before + np.searchsorted(of_segment, places)
                yield Block(segment, entity, rows, indexes, _with_values(logged))


def _check_names(names: Sequence[str], path: str) -> None:
    """Are the columns there that events must have, and each once?"""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise DatasetError("E852", f"'{path}' has two columns '{twice[0]}'", "give each column its own name")
    for name in (SEGMENT, ENTITY):
        if name not in names:
            message = f"'{path}' has no column '{name}'"
            raise DatasetError("E852", message, "events have columns 'segment' and 'entity', indexes and components")


def _with_values(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Those of which at least one record says something."""
    return {name: values for name, values in columns.items() if values.null_count < len(values)}


def _named(column: pa.Array, name: str, path: str, first_row: int) -> tuple[list[str], np.ndarray]:
    """The different segments or entities of a column, and for each row the place of its own among them."""
    coded = column.cast(pa.string()).dictionary_encode()
    texts = [str(text) for text in coded.dictionary.to_pylist()]
    bad = coded.is_null().to_numpy(zero_copy_only=False).copy()
    found: dict[str, int] = {}
    places = np.zeros(max(len(texts), 1), dtype=np.int64)
    for i, text in enumerate(texts):
        if not (text.strip("/") if name == ENTITY else text):
            bad |= (coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)) == i
        places[i] = found.setdefault(entity_path(text) if name == ENTITY else text, len(found))
    if bad.any():
        row = first_row + int(np.flatnonzero(bad)[0])
        raise DatasetError("E852", f"{path}, row {row}: the event has no '{name}'", _NAMED[name])
    return list(found), places[coded.indices.to_numpy(zero_copy_only=False)]


def _groups(codes: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """Rows with the same code together, each group in its order."""
    if not len(rows):
        return []
    order = rows[np.argsort(codes[rows], kind="stable")]
    found = codes[order]
    return np.split(order, np.flatnonzero(found[1:] != found[:-1]) + 1)


def of_text(values: pa.Array, known: pa.DataType | None = None) -> pa.Array:
    """Texts as what all of them are: whole numbers, numbers, truth values; else, or if that is known, they are texts.

    >>> [str(of_text(pa.array(values)).type) for values in (["1", None], ["1", "2.5"], ["true"], ["007"], ["1", "x"])]
    ['int64', 'double', 'bool', 'string', 'string']
    """
    if known is not None and pa.types.is_string(known):
        return values
    for pattern, kind in _CELLS.items():
        if pc.all(pc.match_substring_regex(values, pattern)).as_py():  # cells without a text do not count
            try:
                return values.cast(kind)
            except pa.ArrowInvalid:  # too many digits
                continue
    return values


_WHOLE = r"^-?(0|[1-9][0-9]*)$"
_CELLS = {
    _WHOLE: pa.int64(),
    r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$": pa.float64(),
    "^(true|false)$": pa.bool_(),
}


def _index_numbers(
    array: pa.Array, name: str, reading: Reading, path: str, first_row: int
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of an index column, and where there are any."""
    there = pc.is_valid(array).to_numpy(zero_copy_only=False)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = _times_of_text(array, name, path, first_row)
    kind = array.type
    if pa.types.is_null(kind) or not there.any():
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


def _times_of_text(texts: pa.Array, name: str, path: str, first_row: int) -> pa.Array:
    """Whole numbers, or times with or without a zone."""
    if pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py():
        return texts.cast(pa.int64())
    for zone in ("UTC", None):
        try:
            return texts.cast(pa.timestamp("us", tz=zone))
        except pa.ArrowInvalid:
            continue
    found: list[int | None] = []
    for row, text in enumerate(texts.to_pylist(), first_row):
        try:
            if text is not None and re.fullmatch(_WHOLE, text):
                raise DatasetError("E852", "a number among times")
            found.append(None if text is None else number_of(text, TIME, name))
        except DatasetError:
            message = f"{path}, row {row}: '{text}' is no value of index '{name}'"
            raise DatasetError("E852", message, INDEX_VALUE) from None
    return pa.array(found, pa.int64()).view(pa.timestamp("us", tz="UTC"))
