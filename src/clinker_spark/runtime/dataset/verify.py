"""Is everything as it was written, and as the manifests say?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow.compute as pc

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.files.chunk_bytes import check, decode
from clinker_spark.dataset.files.manifest import Chunk, Dataset


def verify(dataset: Dataset) -> Iterator[str]:
    """What is wrong, in words; nothing, if all is well."""
    for segment in dataset.catalogue.segments.values():
        try:
            chunks = dataset.chunks(segment.name)
        except DatasetError as error:
            yield str(error)
            continue
        if len(chunks) != segment.chunks or sum(chunk.rows for chunk in chunks) != segment.rows:
            yield f"segment '{segment.name}': the catalogue counts other chunks or rows than the manifest"
        for chunk in chunks:
            where = f"segment '{segment.name}', '{chunk.pack}' at byte {chunk.offset}"
            try:
                content = dataset.store.read(chunk.pack, chunk.offset, chunk.length)
                check(content, chunk)
            except (OSError, DatasetError) as error:
                yield f"{where}: {error}"
                continue
            yield from (f"{where}: {problem}" for problem in _contradictions(content, chunk))


def _contradictions(content: bytes, chunk: Chunk) -> Iterator[str]:
    rows = decode(content, chunk, chunk.components)
    if len(rows.ids) != chunk.rows:
        yield f"it has {len(rows.ids)} rows, and the manifest says {chunk.rows}"
        return
    for name, span in chunk.indexes.items():
        numbers = rows.indexes.get(name)
        if numbers is None or (int(numbers.min()), int(numbers.max())) != span:
            yield f"its values of index '{name}' are not from {span[0]} to {span[1]}, as the manifest says"
    for name, component in chunk.components.items():
        values = rows.components.get(name)
        if values is None or len(values) - values.null_count != component.count:
            yield f"it does not have {component.count} values of '{name}', as the manifest says"
            continue
        logged = np.flatnonzero(pc.is_valid(values).to_numpy(zero_copy_only=False))
        for index, span in component.ranges.items():
            numbers = rows.indexes[index][logged]
            if (int(numbers.min()), int(numbers.max())) != span:
                yield f"values of '{name}' are not at {index} {span[0]} to {span[1]}, as the manifest says"
