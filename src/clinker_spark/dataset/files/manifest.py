"""What a dataset has: the catalogue (`dataset.json`) and one manifest for each segment.

Files are never changed. An import adds packs of chunks and new manifests, whose names are made of their content, and
then replaces the catalogue in one step: whoever reads meanwhile has the old dataset or the new one. The catalogue has
a checksum of itself and one of each manifest, a manifest one of each chunk.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from blake3 import blake3

from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.dataset.errors import DatasetDamaged, DatasetError
from clinker_spark.dataset.files.store import Store, open_store

CATALOGUE = "dataset.json"
MANIFESTS, PACKS = "manifests", "packs"
FORMAT, VERSION = "clinker dataset", 1
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Component:
    """One component in one chunk: the rows that have a value, and the times of these."""

    count: int
    size: int
    ranges: dict[str, Range]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of one entity, as they lie in a pack. A chunk without indexes is static."""

    entity: str
    pack: str
    offset: int
    length: int
    checksum: str
    rows: int
    indexes: dict[str, Range]
    components: dict[str, Component]
    sorted_by: str | None
    """The index in whose order the rows stand; rows of one time in the order of their ids."""
    first_row: int | None
    """Row ids that are this one and the numbers after it, row by row; else they are a column of the chunk."""
    last_row: int
    index_size: int
    """Decoded bytes of indexes and row ids."""

    @property
    def is_static(self) -> bool:
        return not self.indexes

    @property
    def size(self) -> int:
        """Decoded bytes."""
        return self.index_size + sum(c.size for c in self.components.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "entity": self.entity,
            "pack": self.pack,
            "offset": self.offset,
            "length": self.length,
            "checksum": self.checksum,
            "rows": self.rows,
            "indexes": {name: list(r) for name, r in self.indexes.items()},
            "components": {
                name: {"count": c.count, "bytes": c.size, "ranges": {i: list(r) for i, r in c.ranges.items()}}
                for name, c in self.components.items()
            },
            "sorted_by": self.sorted_by,
            "first_row": self.first_row,
            "last_row": self.last_row,
            "index_bytes": self.index_size,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Chunk:
        components = {
            name: Component(c["count"], c["bytes"], {i: (r[0], r[1]) for i, r in c["ranges"].items()})
            for name, c in found["components"].items()
        }
        return cls(
            found["entity"],
            found["pack"],
            found["offset"],
            found["length"],
            found["checksum"],
            found["rows"],
            {name: (r[0], r[1]) for name, r in found["indexes"].items()},
            components,
            found["sorted_by"],
            found["first_row"],
            found["last_row"],
            found["index_bytes"],
        )


@dataclass(frozen=True)
class Segment:
    """A recording, as the catalogue knows it."""

    name: str
    manifest: str
    checksum: str
    chunks: int
    rows: int
    size: int
    ranges: dict[str, Range]

    def to_json(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "checksum": self.checksum,
            "chunks": self.chunks,
            "rows": self.rows,
            "bytes": self.size,
            "ranges": {name: list(r) for name, r in self.ranges.items()},
        }


@dataclass(frozen=True)
class Catalogue:
    """`dataset.json`: the types of indexes and components, and the segments in order of their names."""

    indexes: dict[str, str] = field(default_factory=dict)
    components: dict[str, dict[str, pa.DataType]] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)

    def encoded(self) -> bytes:
        fields = [
            pa.field(json.dumps([entity, name]), kind)
            for entity, names in sorted(self.components.items())
            for name, kind in sorted(names.items())
        ]
        body: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "indexes": self.indexes,
            "components": {e: {n: str(t) for n, t in sorted(c.items())} for e, c in sorted(self.components.items())},
            "types": base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode(),
            "segments": {name: segment.to_json() for name, segment in sorted(self.segments.items())},
        }
        body["checksum"] = checksum(_canonical(body))
        return (json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def decoded(cls, content: bytes, shown: str) -> Catalogue:
        try:
            body = json.loads(content)
            if body["format"] != FORMAT:
                raise KeyError("format")
        except (ValueError, KeyError, TypeError):
            raise DatasetDamaged("E851", f"'{shown}' is not the catalogue of a dataset", _AGAIN) from None
        if body["version"] != VERSION:
            message = f"'{shown}' has version {body['version']} of the format; this program knows version {VERSION}"
            raise DatasetError("E850", message, "use a newer clinker")
        said = body.pop("checksum", None)
        if said != checksum(_canonical(body)):
            raise DatasetDamaged("E851", f"'{shown}' does not have its checksum: it is damaged", _AGAIN)
        components: dict[str, dict[str, pa.DataType]] = {}
        for item in pa.ipc.read_schema(pa.py_buffer(base64.b64decode(body["types"]))):
            entity, name = json.loads(item.name)
            components.setdefault(entity, {})[name] = item.type
        segments = {
            name: Segment(
                name,
                s["manifest"],
                s["checksum"],
                s["chunks"],
                s["rows"],
                s["bytes"],
                {index: (r[0], r[1]) for index, r in s["ranges"].items()},
            )
            for name, s in sorted(body["segments"].items())
        }
        return cls(dict(body["indexes"]), components, segments)


_AGAIN = "restore it from a copy; `clinker dataset verify` says what else is damaged"


@dataclass(frozen=True)
class Dataset:
    """A dataset that can be read. `catalogue` is as it was when it was opened."""

    store: Store
    catalogue: Catalogue

    @classmethod
    def open(cls, place: str) -> Dataset:
        store = open_store(place)
        try:
            content = store.read(CATALOGUE)
        except OSError as error:
            reason = "there is no dataset.json" if isinstance(error, FileNotFoundError | NotADirectoryError) else error
            help_text = "clinker dataset import makes one: clinker dataset import FOLDER events.jsonl --index frame"
            raise DatasetError("E850", f"'{place}' is no dataset: {reason}", help_text) from None
        return cls(store, Catalogue.decoded(content, f"{place.rstrip('/')}/{CATALOGUE}"))

    def chunks(self, segment: str) -> list[Chunk]:
        """The manifest of a segment."""
        return read_manifest(self.store, self.catalogue.segments[segment])

    @cached_property
    def entities(self) -> tuple[str, ...]:
        return tuple(sorted(self.catalogue.components))

    def index_type(self, name: str) -> str:
        known = self.catalogue.indexes
        if name not in known:
            help_text = did_you_mean(name, known) or f"it has {', '.join(known)}"
            raise DatasetError("E854", f"the dataset has no index '{name}'", help_text)
        return known[name]


def read_manifest(store: Store, segment: Segment) -> list[Chunk]:
    """The chunks of a segment. Raises DatasetDamaged when the manifest is not the one that the catalogue means."""
    try:
        content = store.read(segment.manifest)
    except OSError as error:
        message = f"the manifest of segment '{segment.name}' cannot be read: {error}"
        raise DatasetDamaged("E851", message, _AGAIN) from None
    if checksum(content) != segment.checksum:
        message = f"'{segment.manifest}', the manifest of segment '{segment.name}', does not have its checksum"
        raise DatasetDamaged("E851", message, _AGAIN)
    return [Chunk.from_json(found) for found in json.loads(content)["chunks"]]


def encode_manifest(segment: str, chunks: Iterable[Chunk]) -> bytes:
    """The content of a manifest, whose checksum is its name."""
    rows = ",\n".join(json.dumps(chunk.to_json(), ensure_ascii=False) for chunk in chunks)
    return f'{{"segment": {json.dumps(segment, ensure_ascii=False)}, "chunks": [\n{rows}\n]}}\n'.encode()


def checksum(content: bytes | memoryview) -> str:
    found: str = blake3(content).hexdigest(length=16)
    return found


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, ensure_ascii=False).encode()
