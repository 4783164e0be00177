"""Parquet parts become files: one, or several that begin where a split or another input file does.

Rows are copied in Arrow batches, which never hold more than a row group. Where a file ends is found with arithmetic on
whole batches, and does not depend on how the rows lie in the parts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clinker_spark.config.model.output import Split
from clinker_spark.plan.columns import BYTES_COLUMN, FILE_KEY_COLUMN
from clinker_spark.runtime.run.files.assemble import Made

_ROW_GROUP = 1 << 17
_NO_LIMIT = 2**63 - 1
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


def one_parquet(parts: list[Path], place: Path, compression: str) -> Made:
    """All parts as one file: their row groups one after the other."""
    schema = pq.read_schema(parts[0])
    with pq.ParquetWriter(place, schema, compression=_codec(compression)) as out:
        for part in parts:
            for batch in pq.ParquetFile(part).iter_batches():
                out.write_batch(batch)
    return Made(place, place.stat().st_size)


class SeveralParquet:
    """Writes rows into one file after the other; `begin` names the next one. Without a split, every key is a file."""

    def __init__(self, split: Split | None, compression: str, begin: Callable[[int, str | None], Path]) -> None:
        self.split = split
        self.compression = compression
        self.begin = begin
        self.made: list[Made] = []
        self.oversize: list[str] = []
        self._file: _File | None = None
        self._key: str | None = None
        self._group = (0, 0)
        """Records and bytes of the group that goes on."""

    def write(self, parts: list[Path]) -> list[Made]:
        self.schema = without_engine_columns(pq.read_schema(parts[0]))
        for part in parts:
            for batch in pq.ParquetFile(part).iter_batches(batch_size=_ROW_GROUP):
                self._add(batch)
        self._note(np.array(self._group)[:, None], [self._key])
        if self._file is None and not self.made:
            self._open(None)
        self._close()
        return self.made

    def _add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        names = batch.schema.names
        keys = batch.column(FILE_KEY_COLUMN) if FILE_KEY_COLUMN in names else None
        sizes = batch.column(BYTES_COLUMN).to_numpy() if BYTES_COLUMN in names else np.zeros(batch.num_rows, np.int64)
        ends = np.cumsum(sizes)
        changes = None if keys is None else self._changes(keys)
        if keys is not None and changes is not None:
            self._watch_groups(keys, changes, ends)
        rows = batch.select(self.schema.names)
        at = 0
        while at < batch.num_rows:
            if self._file is not None and self._ends_before(at, changes):
                self._close()
            if self._file is None:
                self._open(None if keys is None else keys[at].as_py())
            stop = self._stop(at, ends, changes)
            assert self._file is not None
            written = int(ends[stop - 1] - (ends[at - 1] if at else 0))
            self._file.add(rows.slice(at, stop - at), written)
            at = stop
        self._key = None if keys is None else keys[-1].as_py()

    def _changes(self, keys: pa.Array) -> np.ndarray:
        """The rows at which another group begins."""
        values = keys.to_numpy(zero_copy_only=False)
        changed = np.flatnonzero(values[1:] != values[:-1]) + 1
        return np.concatenate(([0], changed)) if values[0] != self._key else changed

    def _ends_before(self, row: int, changes: np.ndarray | None) -> bool:
        """Does the open file end before this row?"""
        assert self._file is not None
        if changes is not None and not np.any(changes == row):
            return False
        return self.split is None or self._file.is_full(self.split)

    def _stop(self, at: int, ends: np.ndarray, changes: np.ndarray | None) -> int:
        """The first row after `at` that belongs to another file, or the end of the batch."""
        assert self._file is not None
        stop, count = at + 1, len(ends)
        if self.split is not None:
            full = []
            if self.split.max_records is not None:
                full.append(at + self.split.max_records - self._file.rows)
            if self.split.max_bytes is not None:
                left = self.split.max_bytes - self._file.size + (int(ends[at - 1]) if at else 0)
                full.append(int(np.searchsorted(ends, left)) + 1)
            stop = max(min(full), at + 1)
        if changes is not None:
            later = changes[np.searchsorted(changes, stop) :]
            stop = int(later[0]) if len(later) else count
        return min(stop, count)

    def _watch_groups(self, keys: pa.Array, changes: np.ndarray, ends: np.ndarray) -> None:
        """Note the groups that do not fit one file. The last one may go on in the next batch."""
        if len(changes) and changes[0] == 0:
            self._note(np.array(self._group)[:, None], [self._key])
            self._group = (0, 0)
        begins = np.unique(np.concatenate(([0], changes)))
        stops = np.append(begins[1:], len(ends))
        before = np.where(begins > 0, ends[begins - 1], 0)
        groups = np.stack([stops - begins, ends[stops - 1] - before])
        groups[:, 0] += self._group
        self._note(groups[:, :-1], keys.take(pa.array(begins[:-1])).to_pylist())
        self._group = (int(groups[0, -1]), int(groups[1, -1]))

    def _note(self, groups: np.ndarray, keys: Sequence[str | None]) -> None:
        if self.split is None:
            return
        limits = [limit if limit is not None else _NO_LIMIT for limit in (self.split.max_records, self.split.max_bytes)]
        large = np.flatnonzero(np.any(groups > np.array(limits)[:, None], axis=0))
        self.oversize += [key for i in large.tolist() if (key := keys[i]) is not None]

    def _open(self, key: str | None) -> None:
        path = self.begin(len(self.made) + 1, key)
        self._file = _File(path, self.schema, self.compression, key if self.split is None else None)

    def _close(self) -> None:
        if self._file is not None:
            self.made.append(self._file.close())
            self._file = None


class _File:
    """A file that is being written; rows wait until they make a row group."""

    def __init__(self, path: Path, schema: pa.Schema, compression: str, key: str | None) -> None:
        self.path = path
        self.key = key
        self.rows = self.size = 0
        self._out = pq.ParquetWriter(path, schema, compression=_codec(compression))
        self._schema = schema
        self._waiting: list[pa.RecordBatch] = []
        self._count = 0

    def is_full(self, split: Split) -> bool:
        records = split.max_records is not None and self.rows >= split.max_records
        return records or (split.max_bytes is not None and self.size >= split.max_bytes)

    def add(self, rows: pa.RecordBatch, size: int) -> None:
        self._waiting.append(rows)
        self._count += rows.num_rows
        self.rows += rows.num_rows
        self.size += size
        if self._count >= _ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting).cast(self._schema)
            self._out.write_table(table, row_group_size=max(table.num_rows, 1))
        self._waiting, self._count = [], 0

    def close(self) -> Made:
        self._flush()
        self._out.close()
        return Made(self.path, self.path.stat().st_size, self.key, self.rows)


def without_engine_columns(schema: pa.Schema) -> pa.Schema:
    """The columns of the file, also in what Spark notes about them: else Spark would look for the others."""
    kept = pa.schema([field for field in schema if field.name not in (FILE_KEY_COLUMN, BYTES_COLUMN)])
    notes: dict[bytes, bytes] = dict(schema.metadata or {})
    if _SPARK_SCHEMA in notes:
        noted: dict[str, Any] = json.loads(notes[_SPARK_SCHEMA])
        noted["fields"] = [field for field in noted["fields"] if field["name"] in kept.names]
        notes[_SPARK_SCHEMA] = json.dumps(noted).encode()
    return kept.with_metadata(notes)


def _codec(compression: str) -> str:
    return "NONE" if compression == "none" else compression
