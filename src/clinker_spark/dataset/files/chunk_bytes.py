"""A chunk as bytes: one Arrow record batch with the indexes, the row ids and the components."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from clinker_spark.dataset.arrays import has_value, numbers_in, of_numbers
from clinker_spark.dataset.errors import DatasetDamaged
from clinker_spark.dataset.files.manifest import Chunk, Component, checksum

_INDEX, _COMPONENT, _ROW = "i:", "c:", "r"
_WRITE = pa.ipc.IpcWriteOptions(compression="lz4")

Ids = np.ndarray | range
"""Row ids. Those that follow each other are a range, which takes no memory."""


def id_array(ids: Ids) -> np.ndarray:
    return np.arange(ids.start, ids.stop, dtype=np.int64) if isinstance(ids, range) else ids


@dataclass(frozen=True)
class Rows:
    """Rows of one entity of one segment with the same indexes, before they are a chunk."""

    entity: str
    ids: Ids
    indexes: Mapping[str, np.ndarray]
    components: Mapping[str, pa.Array]

    def sorted_by(self, index: str | None) -> Rows:
        """In the order of an index, and of their ids within one time."""
        order = self._order(index)
        return self if order is None else self.take(order)

    def _order(self, index: str | None) -> np.ndarray | None:
        if isinstance(self.ids, range):
            if index is None or _never_falls(times := self.indexes[index]):
                return None
            return np.argsort(times, kind="stable")
        if index is None:
            return None if _ascending(self.ids) else np.argsort(self.ids, kind="stable")
        times = self.indexes[index]
        return None if _in_order(self.ids, times) else np.lexsort((self.ids, times))

    def take(self, order: np.ndarray) -> Rows:
        picked = of_numbers(order)
        return Rows(
            self.entity,
            id_array(self.ids)[order],
            {name: numbers[order] for name, numbers in self.indexes.items()},
            {name: values.take(picked) for name, values in self.components.items()},
        )

    def slice(self, start: int, stop: int) -> Rows:
        return Rows(
            self.entity,
            self.ids[start:stop],
            {name: numbers[start:stop] for name, numbers in self.indexes.items()},
            {name: values.slice(start, stop - start) for name, values in self.components.items()},
        )


def _never_falls(numbers: np.ndarray) -> bool:
    return bool((numbers[1:] >= numbers[:-1]).all())


def _ascending(numbers: np.ndarray) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _in_order(ids: np.ndarray, times: np.ndarray) -> bool:
    later, same = times[1:] > times[:-1], times[1:] == times[:-1]
    return bool((later | (same & (ids[1:] > ids[:-1]))).all())


def encode(rows: Rows, pack: str, offset: int, sorted_by: str | None) -> tuple[bytes, Chunk]:
    """The bytes of a chunk at a place in a pack, and what the manifest says about them."""
    ids = id_array(rows.ids)
    count = len(ids)
    first = int(ids[0])
    running = int(ids[-1]) - first == count - 1 and _ascending(ids)
    columns: dict[str, pa.Array] = {_INDEX + name: pa.array(n, pa.int64()) for name, n in rows.indexes.items()}
    if not running:
        columns[_ROW] = pa.array(ids, pa.int64())
    index_size = sum(column.nbytes for column in columns.values())
    components: dict[str, Component] = {}
    for name, values in rows.components.items():
        found = len(values) - values.null_count
        if not found:
            continue
        ranges = {}
        for index, numbers in rows.indexes.items():
            logged = numbers if found == count else numbers[has_value(values)]
            ranges[index] = (int(logged.min()), int(logged.max()))
        components[name] = Component(found, values.nbytes, ranges)
        columns[_COMPONENT + name] = values
    batch = pa.record_batch(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_WRITE) as writer:
        writer.write_batch(batch)
    content = sink.getvalue().to_pybytes()
    chunk = Chunk(
        rows.entity,
        pack,
        offset,
        len(content),
        checksum(content),
        count,
        {name: (int(numbers.min()), int(numbers.max())) for name, numbers in rows.indexes.items()},
        components,
        sorted_by,
        first if running else None,
        int(ids.max()),
        index_size,
    )
    return content, chunk


def check(content: bytes | memoryview, chunk: Chunk) -> None:
    """Raises DatasetDamaged when the bytes are not those of the chunk."""
    if len(content) != chunk.length or checksum(content) != chunk.checksum:
        message = f"a chunk of '{chunk.entity}' in '{chunk.pack}' (at byte {chunk.offset}) does not have its checksum"
        raise DatasetDamaged("E851", message, "restore the file from a copy, or import the events again")


def decode(
    content: bytes | memoryview, chunk: Chunk, components: Mapping[str, Any], indexes: tuple[str, ...] | None = None
) -> Rows:
    """The rows of a chunk with some of its components and indexes (all, if none are named): other columns are not even
    decompressed."""
    buffer = pa.py_buffer(content)
    names = pa.ipc.open_stream(buffer).schema.names
    wanted = [
        i
        for i, name in enumerate(names)
        if name == _ROW
        or (name.startswith(_INDEX) and (indexes is None or name[len(_INDEX) :] in indexes))
        or (name.startswith(_COMPONENT) and name[len(_COMPONENT) :] in components)
    ]
    options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
    batch = pa.ipc.open_stream(buffer, options=options).read_next_batch()
    numbers: dict[str, np.ndarray] = {}
    values: dict[str, pa.Array] = {}
    ids: Ids | None = None
    for name in batch.schema.names:
        if name == _ROW:
            ids = numbers_in(batch.column(name))
        elif name.startswith(_INDEX):
            numbers[name[len(_INDEX) :]] = numbers_in(batch.column(name))
        else:
            values[name[len(_COMPONENT) :]] = batch.column(name)
    if ids is None:
        first = chunk.first_row or 0
        ids = range(first, first + batch.num_rows)
    return Rows(chunk.entity, ids, numbers, values)
