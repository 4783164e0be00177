"""How large groups are, guessed by readers while they read: is it possible that one has too many records?

Of every `ONE_IN` neighbouring records one is looked at, chosen by chance, so that no order of the records can hide a
group from it. Each task leaves the most frequent groups of its split in a file. What is left out of that is counted
for all groups, so the guess is rather too high; only if it comes near the limit, groups are counted exactly.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

from clinker_spark.spark.sources.chosen import group_texts

ONE_IN = 64
MOST_NAMED = 16_384
"""So many groups of a split are named in its file."""
_FOLDED = 262_144
_SIZES = "groups-"
_REST = b"rest"


class GroupSizes:
    """Looks at the groups of one split. As a context manager: the file is there only if all went well."""

    def __init__(self, prefix: str, split: int) -> None:
        self._path = f"{prefix}{_SIZES}{split}"
        self._chance = np.random.default_rng(split)
        self._seen: list[pa.Array] = []
        self._waiting = 0
        self._counts: dict[str, int] = {}
        self._rest = 0

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
        """Keep the most frequent groups. What is dropped had at most `_rest` records then."""
        if not self._seen:
            return
        for entry in pc.value_counts(pa.chunked_array(self._seen)).to_pylist():
            if entry["values"] is not None:  # a record without a key is a group of its own
                self._counts[entry["values"]] = self._counts.get(entry["values"], 0) + entry["counts"]
        if len(self._counts) > MOST_NAMED:
            ranked = sorted(self._counts.items(), key=lambda item: -item[1])
            self._counts = dict(ranked[:MOST_NAMED])
            self._rest += ranked[MOST_NAMED][1]
        self._seen, self._waiting = [], 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            return
        self._fold()
        table = pa.table(
            {"group": pa.array(self._counts, pa.string()), "count": pa.array(self._counts.values(), pa.int64())}
        )
        own = f"{self._path}.{os.getpid()}"
        with contextlib.suppress(OSError):  # a task on another machine may have no such folder
            feather.write_feather(table.replace_schema_metadata({_REST: str(self._rest).encode()}), own)
            os.replace(own, f"{self._path}.arrow")


def largest_group(prefix: str, splits: int) -> int | None:
    """About how many records the largest group can have; None when a split did not say."""
    counts: dict[str, int] = {}
    rest = 0
    for split in range(splits):
        try:
            table = feather.read_table(f"{prefix}{_SIZES}{split}.arrow")
        except OSError:
            return None
        metadata: Mapping[bytes, bytes] = table.schema.metadata
        rest += int(metadata[_REST])
        for group, count in zip(table["group"].to_pylist(), table["count"].to_pylist(), strict=True):
            counts[group] = counts.get(group, 0) + count
    return (max(counts.values(), default=0) + rest) * ONE_IN
