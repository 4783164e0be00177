"""Some records of a source, by their place or their group: the reader gives only these, or all others.

When groups are withheld, their records are a small part of a file. A reader that knows them hands on nothing else,
so that a pass over them costs little more than parsing. What is chosen lies in a folder that every task can read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather

PLACES, GROUPS = "places.arrow", "groups.arrow"
SEPARATOR, NULL = "\x1f", "\0"


@dataclass(frozen=True)
class RowFilter:
    """`keys` are the columns whose values make a group; `keep` says whether the chosen records stay or go."""

    folder: str
    keys: tuple[str, ...]
    keep: bool

    def stay(self, file: int, rows: np.ndarray, keys: Mapping[str, pa.Array]) -> np.ndarray:
        """Which of some neighbouring records stay: their rows, and the values of their keys."""
        now = os.stat(os.path.join(self.folder, PLACES))
        places, groups = _sets(self.folder, (now.st_ino, now.st_mtime_ns))
        found = np.zeros(len(rows), dtype=bool)
        mine = places.get(file)
        if mine is not None and len(rows):
            start, end = np.searchsorted(mine, (rows[0], rows[-1] + 1))
            found[mine[start:end] - rows[0]] = True
        if len(groups) and all(name in keys for name in self.keys):
            texts = group_texts([keys[name] for name in self.keys])
            found |= pc.is_in(texts, value_set=groups).to_numpy(zero_copy_only=False)
        return found if self.keep else ~found


def group_texts(keys: Sequence[pa.Array]) -> pa.Array:
    """One text for the keys of each record; null where all of them are: that is a group of its own.

    >>> group_texts([pa.array([1, 2, None]), pa.array(["a", None, None])]).to_pylist()
    ['1\\x1fa', '2\\x1f\\x00', None]
    """
    texts = [pc.cast(key, pa.string()) for key in keys]
    if len(texts) == 1:
        return texts[0]
    there = reduce(pc.or_, [pc.is_valid(text) for text in texts])
    joined = pc.binary_join_element_wise(*[pc.fill_null(text, NULL) for text in texts], SEPARATOR)
    return pc.if_else(there, joined, pa.scalar(None, pa.string()))


def save_row_filter(folder: Path, table: pa.Table) -> None:
    """Choose the records of a table with `file`, `row` and, if whole groups are chosen, a column for each key."""
    folder.mkdir(parents=True, exist_ok=True)
    places = table.select(["file", "row"]).sort_by([("file", "ascending"), ("row", "ascending")])
    keys = [column.combine_chunks() for column in table.columns[2:]]
    groups = group_texts(keys).unique() if keys else pa.array([], pa.string())
    there = groups.filter(pc.is_valid(groups))
    feather.write_feather(pa.table({"group": there}), str(folder / GROUPS), compression="uncompressed")
    # Last, and as a new file: readers that know this folder see that others are chosen now.
    beside = folder / f"{PLACES}.new"
    feather.write_feather(places, str(beside), compression="uncompressed")
    beside.replace(folder / PLACES)


@lru_cache(maxsize=8)
def _sets(folder: str, version: tuple[int, int]) -> tuple[dict[int, np.ndarray], pa.Array]:
    places = feather.read_table(str(Path(folder) / PLACES))
    files, rows = (places.column(name).to_numpy() for name in ("file", "row"))
    by_file = {int(file): rows[files == file] for file in np.unique(files)}
    groups = feather.read_table(str(Path(folder) / GROUPS)).column("group").combine_chunks()
    return by_file, groups
