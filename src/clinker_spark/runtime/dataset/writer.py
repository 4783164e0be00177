"""Writing datasets: chunks into packs, manifests, and at last the catalogue, which makes all of it visible at once.

Until the catalogue is replaced nobody knows of the new files; a crash leaves files that nothing names, which the next
import removes. One import at a time: a lock beside the catalogue keeps others out.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.dataset.either import cast, type_text
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.files.chunk_bytes import Rows, encode, id_array
from clinker_spark.dataset.files.manifest import (
    CATALOGUE,
    MANIFESTS,
    PACKS,
    Catalogue,
    Chunk,
    Segment,
    checksum,
    encode_manifest,
    read_manifest,
)
from clinker_spark.dataset.files.store import FolderStore
from clinker_spark.runtime.commit.locks import Locks
from clinker_spark.runtime.commit.seam import SYSTEM, Files
from clinker_spark.runtime.commit.signals import undisturbed
from clinker_spark.runtime.commit.small_files import replace_file
from clinker_spark.runtime.dataset.component_types import common, kept
from clinker_spark.runtime.dataset.events import Block
from clinker_spark.runtime.errors import IoError

CHUNK_ROWS = 1 << 14
CHUNK_BYTES = 4 << 20
PACK_BYTES = 32 << 20
BUFFER_ROWS = 1 << 21
BUFFER_BYTES = 256 << 20
"""Rows of all entities that wait to become chunks, and their bytes."""
_OURS = re.compile(rf"{PACKS}/[0-9a-f]{{16}}\.pack|{MANIFESTS}/[0-9a-f]{{32}}\.json")
"""How packs and manifests are called."""


@contextlib.contextmanager
def locked(folder: Path, files: Files = SYSTEM, wait: float = 10.0) -> Iterator[None]:
    """Keep other imports out. What the system refuses is an `IoError`."""
    made: list[Path] = []
    locks = Locks(files, "dataset", wait, lambda event, details: None)
    try:
        for path in (*reversed(folder.parents), folder):
            if files.stat(path) is None and files.mkdir(path):
                made.append(path)
        locks.take([folder / CATALOGUE])
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"cannot write '{error.filename or folder}': {reason}"
        raise IoError([Diagnostic("E401", message, help="the dataset is as it was")]) from error
    finally:
        locks.release()
        for path in reversed(made):
            with contextlib.suppress(OSError):
                files.rmdir(path)  # only if nothing came of it


def load_catalogue(folder: Path) -> Catalogue | None:
    """The catalogue of a dataset in a folder; None, if there is none."""
    path = folder / CATALOGUE
    return Catalogue.decoded(path.read_bytes(), str(path)) if path.exists() else None


@dataclass
class _Buffer:
    rows: int = 0
    size: int = 0
    blocks: list[Rows] = field(default_factory=list)


@dataclass
class _Pack:
    """The file that is filled now."""

    name: str = field(default_factory=lambda: f"{PACKS}/{os.urandom(8).hex()}.pack")
    contents: list[bytes] = field(default_factory=list)
    size: int = 0


class _Buffers:
    """Rows that wait to become chunks: by segment, entity and indexes."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str, tuple[str, ...]], _Buffer] = {}
        self._rows = self._size = 0

    @property
    def full(self) -> bool:
        return self._rows > BUFFER_ROWS or self._size > BUFFER_BYTES

    def add(self, segment: str, rows: Rows) -> _Buffer:
        """Let rows wait; gives the buffer that they are in."""
        buffer = self._waiting.setdefault((segment, rows.entity, tuple(rows.indexes)), _Buffer())
        buffer.blocks.append(rows)
        count, size = len(rows.ids), sum(values.nbytes for values in rows.components.values())
        buffer.rows, buffer.size = buffer.rows + count, buffer.size + size
        self._rows, self._size = self._rows + count, self._size + size
        return buffer

    def taken(self, buffer: _Buffer) -> list[Rows]:
        """What waited in a buffer, which is empty then."""
        self._rows, self._size = self._rows - buffer.rows, self._size - buffer.size
        found = buffer.blocks
        buffer.rows, buffer.size, buffer.blocks = 0, 0, []
        return found

    def all(self) -> list[tuple[str, _Buffer]]:
        """All buffers, and the segments they belong to. They are forgotten here."""
        found = [(segment, buffer) for (segment, _, _), buffer in self._waiting.items()]
        self._waiting.clear()
        return found


class DatasetWriter:
    """Adds rows to a dataset. Inside of `locked`; nothing is visible before `publish`."""

    def __init__(self, folder: Path, catalogue: Catalogue, files: Files = SYSTEM) -> None:
        self.folder = folder
        self.catalogue = catalogue
        self.files = files
        self.components = {entity: dict(names) for entity, names in catalogue.components.items()}
        self._columns = {
            f"{entity}:{name}": (entity, name) for entity, names in self.components.items() for name in names
        }
        self.added: dict[str, list[Chunk]] = {}
        self._buffers = _Buffers()
        self._before: dict[str, list[Chunk]] = {}
        self._next_id: dict[tuple[str, str], int] = {}
        self._pack = _Pack()
        self._written: list[Path] = []

    # ------------------------------------------------------------ rows

    def add(self, block: Block) -> None:
        """Events, in the order in which they were logged. Their row ids follow those that the entity has."""
        ids = self._first_id(block.segment, block.entity) + block.numbers
        self.add_rows(block.segment, Rows(block.entity, ids, block.indexes, block.components))

    def add_rows(self, segment: str, rows: Rows) -> None:
        """Rows that have ids."""
        types = self.components.setdefault(rows.entity, {})
        for name, values in rows.components.items():
            kind = common(types.get(name, pa.null()), kept(values.type))
            if kind is None:
                before, here = type_text(types[name]), type_text(values.type)
                message = f"'{rows.entity}:{name}' is {before} in the dataset, and {here} here"
                raise DatasetError("E853", message, "a component has values of one type in all segments")
            if not pa.types.is_null(kind):
                self._claim(rows.entity, name)
                types[name] = kind
        buffer = self._buffers.add(segment, rows)
        if buffer.rows >= 4 * CHUNK_ROWS or buffer.size >= 4 * CHUNK_BYTES:
            self._flush(segment, buffer)
        if self._buffers.full:
            self.flush()

    def _claim(self, entity: str, name: str) -> None:
        """`/a` with `b:c` and `/a:b` with `c` would be one column."""
        owner = self._columns.setdefault(f"{entity}:{name}", (entity, name))
        if owner != (entity, name):
            message = f"'{name}' of '{entity}' and '{owner[1]}' of '{owner[0]}' would be the same column"
            raise DatasetError("E853", message, "use other names: columns are called /entity:component")

    def _first_id(self, segment: str, entity: str) -> int:
        if segment not in self._before:
            known = self.catalogue.segments.get(segment)
            chunks = [] if known is None else read_manifest(FolderStore(str(self.folder)), known)
            self._before[segment] = chunks
            for chunk in chunks:
                key = (segment, chunk.entity)
                self._next_id[key] = max(self._next_id.get(key, 0), chunk.last_row + 1)
        return self._next_id.get((segment, entity), 0)

    def flush(self) -> None:
        """Make chunks of all that waits."""
        for segment, buffer in self._buffers.all():
            self._flush(segment, buffer)

    def _flush(self, segment: str, buffer: _Buffer) -> None:
        if not buffer.rows:
            return
        rows = _together(self._buffers.taken(buffer), self.components)
        index = next((name for name in self.catalogue.indexes if name in rows.indexes), None)
        rows = rows.sorted_by(index)
        count = len(rows.ids)
        size = sum(values.nbytes for values in rows.components.values())
        step = max(1, min(CHUNK_ROWS, count * CHUNK_BYTES // max(size, 1)))
        for start in range(0, count, step):
            self._write_chunk(segment, rows.slice(start, min(start + step, count)), index)

    # ------------------------------------------------------------ files

    def _write_chunk(self, segment: str, rows: Rows, index: str | None) -> None:
        content, chunk = encode(rows, self._pack.name, self._pack.size, index)
        self._pack.contents.append(content)
        self._pack.size += len(content)
        self.added.setdefault(segment, []).append(chunk)
        if self._pack.size >= PACK_BYTES:
            self._write_pack()

    def _write_pack(self) -> None:
        if self._pack.contents:
            self._write(self._pack.name, b"".join(self._pack.contents))
        self._pack = _Pack()

    def _write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        self.files.mkdir(path.parent)
        self._written.append(path)
        self.files.write(path, content)
        self.files.sync(path)

    def publish(self, indexes: dict[str, str], *, replaces: bool = False) -> Catalogue:
        """Make everything visible. With `replaces`, the new chunks stand for those that a segment had."""
        self.flush()
        self._write_pack()
        segments = {} if replaces else dict(self.catalogue.segments)
        for name, chunks in sorted(self.added.items()):
            if not replaces:
                self._first_id(name, "")
                chunks = [*self._before[name], *chunks]
            segments[name] = self._write_manifest(name, chunks)
        catalogue = replace(self.catalogue, indexes=indexes, components=self.components, segments=segments)
        for folder in (PACKS, MANIFESTS):
            if self.files.stat(self.folder / folder) is not None:
                self.files.sync(self.folder / folder)
        with undisturbed():
            replace_file(self.folder / CATALOGUE, catalogue.encoded(), self.files)
            self._written = []
            self.files.sync(self.folder)
        return catalogue

    def _write_manifest(self, segment: str, chunks: list[Chunk]) -> Segment:
        content = encode_manifest(segment, chunks)
        found = checksum(content)
        name = f"{MANIFESTS}/{found}.json"
        self._write(name, content)
        ranges: dict[str, tuple[int, int]] = {}
        for chunk in chunks:
            for index, (low, high) in chunk.indexes.items():
                known = ranges.get(index, (low, high))
                ranges[index] = (min(low, known[0]), max(high, known[1]))
        rows, size = sum(chunk.rows for chunk in chunks), sum(chunk.length for chunk in chunks)
        return Segment(segment, name, found, len(chunks), rows, size, ranges)

    def abandon(self) -> None:
        """Remove what was written and not published."""
        for path in self._written:
            with contextlib.suppress(OSError):
                self.files.unlink(path)
        for folder in (PACKS, MANIFESTS):
            with contextlib.suppress(OSError):
                self.files.rmdir(self.folder / folder)
        self._written = []


def _together(blocks: list[Rows], types: dict[str, dict[str, pa.DataType]]) -> Rows:
    first = blocks[0]
    names = sorted({name for block in blocks for name in block.components})
    components = {}
    for name in names:
        kind = types[first.entity].get(name)
        if kind is None:
            continue  # nothing but nulls so far
        parts = [
            _fitted(block, name, kind) if name in block.components else pa.nulls(len(block.ids), kind)
            for block in blocks
        ]
        components[name] = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    indexes = {name: np.concatenate([block.indexes[name] for block in blocks]) for name in first.indexes}
    return Rows(first.entity, np.concatenate([id_array(block.ids) for block in blocks]), indexes, components)


def _fitted(block: Rows, name: str, kind: pa.DataType) -> pa.Array:
    try:
        return cast(block.components[name], kind)
    except pa.ArrowException as error:
        message = f"values of '{block.entity}:{name}' do not fit into {type_text(kind)}: {str(error).splitlines()[0]}"
        raise DatasetError("E853", message, "a component has values of one type in all segments") from None


def strays(folder: Path, catalogue: Catalogue | None, files: Files = SYSTEM) -> list[Path]:
    """Files that an import which did not end has left. Only those with names like ours: others are somebody else's."""
    named: set[str] = set()
    store = FolderStore(str(folder))
    for segment in (catalogue or Catalogue()).segments.values():
        named.add(segment.manifest)
        named |= {chunk.pack for chunk in read_manifest(store, segment)}
    found = []
    for kind in (PACKS, MANIFESTS):
        if files.stat(folder / kind) is not None:
            names = [name for name in files.names(folder / kind) if _OURS.fullmatch(f"{kind}/{name}")]
            found += [folder / kind / name for name in names if f"{kind}/{name}" not in named]
    return found
