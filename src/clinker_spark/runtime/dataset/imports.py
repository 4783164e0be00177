"""Importing events, compacting chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.files.chunk_bytes import check, decode
from clinker_spark.dataset.files.manifest import Catalogue, read_manifest
from clinker_spark.dataset.files.store import FolderStore
from clinker_spark.dataset.indexes import NUMBER
from clinker_spark.runtime.commit.seam import SYSTEM, Files
from clinker_spark.runtime.dataset.event_files import indexes_of, read_events
from clinker_spark.runtime.dataset.events import ENTITY, SEGMENT, Reading
from clinker_spark.runtime.dataset.writer import DatasetWriter, load_catalogue, locked, strays


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    events: int
    segments: int
    chunks: int
    size: int
    removed: int = 0
    """Files of earlier imports that did not end."""
    notes: tuple[Diagnostic, ...] = ()


def import_events(
    place: str,
    paths: Sequence[str],
    indexes: Sequence[str] = (),
    form: str | None = None,
    files: Files = SYSTEM,
) -> Imported:
    """Add the events of files to a dataset, which is made if it is not there. All of them, or none."""
    folder = _folder(place)
    with locked(folder, files):
        known = load_catalogue(folder)
        timelines = [name for path in paths for name in indexes_of(path, form)]
        names = _indexes(known, [*indexes, *timelines], place)
        left = strays(folder, known, files)
        for stray in left:
            files.unlink(stray)
        writer = DatasetWriter(folder, replace(known or Catalogue(), indexes=dict.fromkeys(names, NUMBER)), files)
        reading = Reading(tuple(names), _index_types(known), types=writer.components)
        events = 0
        try:
            for path in paths:
                for block in read_events(path, reading, form):
                    events += len(block.numbers)
                    writer.add(block)
            # An index of which no value was seen is one of numbers until there is one.
            writer.publish({name: reading.known.get(name, NUMBER) for name in names})
        except Exception:
            writer.abandon()
            raise
        chunks = [chunk for found in writer.added.values() for chunk in found]
        size = sum(chunk.length for chunk in chunks)
        return Imported(events, len(writer.added), len(chunks), size, len(left), tuple(reading.notes))


def compact(place: str, files: Files = SYSTEM) -> tuple[int, int]:
    """Write all chunks again, full and in order of their first index; how many there were, and how many there are.

    The rows and their ids stay. Queries that began before read the old files, which the next import or compaction
    removes."""
    folder = _folder(place)
    with locked(folder, files):
        known = load_catalogue(folder)
        if known is None:
            raise DatasetError("E850", f"'{place}' is no dataset: there is no dataset.json")
        for path in strays(folder, known, files):
            files.unlink(path)
        writer = DatasetWriter(folder, known, files)
        store = FolderStore(str(folder))
        before = 0
        try:
            for segment in known.segments.values():
                chunks = read_manifest(store, segment)
                before += len(chunks)
                for chunk in sorted(chunks, key=lambda c: [c.indexes[i][0] for i in known.indexes if i in c.indexes]):
                    content = store.read(chunk.pack, chunk.offset, chunk.length)
                    check(content, chunk)
                    writer.add_rows(segment.name, decode(content, chunk, chunk.components))
                writer.flush()
            writer.publish(known.indexes, replaces=True)
        except Exception:
            writer.abandon()
            raise
        return before, sum(len(chunks) for chunks in writer.added.values())


def _indexes(known: Catalogue | None, asked: Sequence[str], place: str) -> list[str]:
    names = list(dict.fromkeys([*({} if known is None else known.indexes), *asked]))
    if not names:
        help_text = "name at least one: --index frame"
        raise DatasetError("E854", f"'{place}' is a new dataset, and has no index yet", help_text)
    for name in names:
        if name in (SEGMENT, ENTITY) or not name:
            raise DatasetError("E854", f"'{name}' cannot be an index", "it says which recording and entity is meant")
    return names


def _index_types(known: Catalogue | None) -> dict[str, str]:
    """The types of the indexes that have values: one without any may still become one of times."""
    if known is None:
        return {}
    used = {name for segment in known.segments.values() for name in segment.ranges}
    return {name: kind for name, kind in known.indexes.items() if name in used}


def _folder(place: str) -> Path:
    if "://" in place and not place.startswith("file://"):
        raise DatasetError(
            "E850", f"'{place}' cannot be written", "import into a folder, and copy that; queries read it"
        )
    return Path(place.removeprefix("file://")).absolute()
