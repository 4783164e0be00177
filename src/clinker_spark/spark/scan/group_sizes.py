"""How large groups are, guessed by readers while they read: is it possible that one has too many records?

Of every `ONE_IN` neighbouring records one is looked at, chosen by chance, so that no order of the records can hide a
group from it. Each task leaves the most frequent groups of its split in a file. What is left out of that is counted
for all groups, so the guess is rather too high; only if it comes near the limit, groups are counted exactly.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from clinker_spark.spark.scan.row_filter import group_texts

ONE_IN = 64
MOST_NAMED = 16_384
"""So many groups of a split are named in its file."""
MOST_COMPARED = 262_144
"""So many groups of all splits are held by the driver at once."""
_FOLDED = 262_144
_SIZES = "groups-"
_REST = b"rest"


class _Frequent:
    """The most frequent of many groups. What a group had when it was dropped is at most `rest`, all times together."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.rest = 0

    def add(self, groups: Iterable[str], counts: Iterable[int], most: int) -> None:
        for group, count in zip(groups, counts, strict=True):
            self.counts[group] = self.counts.get(group, 0) + count
        if len(self.counts) > most:
            ranked = sorted(self.counts.items(), key=lambda item: -item[1])
            self.counts = dict(ranked[:most])
            self.rest += ranked[most][1]


class GroupSizes:
    """Looks at the groups of one split. As a context manager: the file is there only if all went well."""

    def __init__(self, prefix: str, split: int) -> None:
        self._path = f"{prefix}{_SIZES}{split}"
        self._chance = np.random.default_rng(split)
        self._seen: list[pa.Array] = []
        self._waiting = 0
        self._found = _Frequent()

    def __enter__(self) -> GroupSizes:
        return self

    def sample(self, rows: int) -> pa.Array:
        """Which of the next records to look at."""
        starts = np.arange(0, rows, ONE_IN)
        places = starts + self._chance.integers(0, ONE_IN, len(starts))
        return pa.array(places[places < rows])

    def add(self, keys: Sequence[pa.Array]) -> None:
        """The keys of the records that `sample` chose."""
        texts = group_texts(keys)
        self._seen.append(texts)
        self._waiting += len(texts)
        if self._waiting > _FOLDED:
            self._fold()

    def _fold(self) -> None:
        # A record without a key is a group of its own.
        counted = pc.value_counts(pa.chunked_array(self._seen, pa.string()).drop_null())
        self._found.add(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), MOST_NAMED)
        self._seen, self._waiting = [], 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            return
        self._fold()
        table = pa.table(
            {
                "group": pa.array(self._found.counts, pa.string()),
                "count": pa.array(self._found.counts.values(), pa.int64()),
            }
        )
        own = f"{self._path}.{os.getpid()}"
        with contextlib.suppress(OSError):  # a task on another machine may have no such folder
            feather.write_feather(table.replace_schema_metadata({_REST: str(self._found.rest).encode()}), own)
            os.replace(own, f"{self._path}.arrow")


def largest_group(prefix: str, splits: int) -> int | None:
    """About how many records the largest group can have; None when a split did not say."""
    found = _Frequent()
    for split in range(splits):
        try:
            table = feather.read_table(f"{prefix}{_SIZES}{split}.arrow")
        except OSError:
            return None
        metadata: Mapping[bytes, bytes] = table.schema.metadata
        found.rest += int(metadata[_REST])
        found.add(table["group"].to_pylist(), table["count"].to_pylist(), MOST_COMPARED)
    return (max(found.counts.values(), default=0) + found.rest) * ONE_IN
