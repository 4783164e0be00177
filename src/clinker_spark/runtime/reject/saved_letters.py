"""Dead letters that lie in Parquet files of an attempt: small questions about them need no Spark job.

The files are read in batches and only in the columns that matter, so nothing here grows with the letters except one
bit for each record of a source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clinker_spark.core.fast_paths import taken
from clinker_spark.spark.parts import DataFrame, part_writer, read_parts
from clinker_spark.spark.rejects.letters import LetterCount
from clinker_spark.spark.session.sessions import SparkSession

FEW_LETTERS = 50_000
"""Up to so many are looked at without a Spark job."""
ORDER = ("source", "file", "row", "stage", "tie")
_MOST_OF_ONE = 1_000
"""So many letters of one record at most: it can fail in many ways, but hardly in so many."""


class Letters:
    """The store of failed records, and of those that are withheld with them. Whoever found them says where they are;
    their columns are those of `spark.rejects.letters.letters`."""

    ordered = False
    """Do they come in source and row order?"""

    def batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        """Some columns of them."""
        raise NotImplementedError

    def tally(self, *columns: str) -> Counter[tuple[Any, ...]]:
        """How often each combination of values occurs: for columns that have few."""
        found: Counter[tuple[Any, ...]] = Counter()
        for batch in self.batches(*columns):
            counted = pa.Table.from_batches([batch]).group_by(list(columns)).aggregate([([], "count_all")])
            for row in counted.to_pylist():
                found[tuple(row[name] for name in columns)] += row["count_all"]
        return found

    def places(self, source: int, offsets: Sequence[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The letters of a source: their places, counted over its files from 0, and which of them failed."""
        before = np.array(offsets or (0,), dtype=np.int64)
        for batch in self.batches("source", "file", "row", "trigger"):
            mine = batch.filter(pc.fill_null(pc.equal(batch["source"], source), False))
            if mine.num_rows:
                places = before[mine["file"].to_numpy()] + mine["row"].to_numpy() - 1
                yield places, mine["trigger"].to_numpy(zero_copy_only=False)

    def places_of(self, source: int) -> pa.Table:
        """`file` and `row` of all records of a source."""
        schema = pa.schema([("file", pa.int32()), ("row", pa.int64())])
        found = []
        for batch in self.batches("source", "file", "row"):
            mine = batch.filter(pc.fill_null(pc.equal(batch["source"], source), False))
            found.append(mine.select(schema.names).cast(schema))
        return pa.Table.from_batches(found, schema)

    def built_places(self, source: int, offsets: Sequence[int]) -> Iterator[np.ndarray]:
        """The records of a source that a combine matched with a record that failed then."""
        before = np.array(offsets or (0,), dtype=np.int64)
        for batch in self.batches("built"):
            origins = batch["built"].flatten()
            found, file, row = (pc.struct_field(origins, name) for name in ("source", "file", "row"))
            mine = pc.fill_null(pc.equal(found, source), False)
            yield before[file.filter(mine).to_numpy()] + row.filter(mine).to_numpy() - 1

    def in_order(self, *columns: str) -> pa.Table:
        """All of it in source and row order, what was made of several records last: for letters that are few."""
        table = pa.Table.from_batches(self.batches(*dict.fromkeys((*ORDER, *columns))))
        keys = _sort_keys(table)
        return table.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))

    def first(self, category: str | None = None) -> dict[str, Any]:
        """The first letter in that order, of a category if one is given: for messages."""
        best: tuple[Any, dict[str, Any]] | None = None
        for batch in self.batches(*ORDER, "category", "field", "message"):
            mine = batch if category is None else batch.filter(pc.equal(batch["category"], category))
            by_place = [(name, "ascending") for name in ORDER[:-1]]
            # Only the letters of the first record are compared one by one.
            chosen = mine.take(pc.sort_indices(mine, sort_keys=by_place)[:_MOST_OF_ONE])
            for key, row in zip(_sort_keys(chosen), chosen.to_pylist(), strict=True):
                if best is None or key < best[0]:
                    best = key, row
        assert best is not None
        return best[1]

    def counts(self) -> list[LetterCount]:
        """How many there are, by source, stage and category."""
        counts = self.tally("source", "stage", "category")
        found = [LetterCount(source, stage, category, n) for (source, stage, category), n in counts.items()]
        return sorted(found, key=lambda c: (c.source is None, c.source or 0, c.stage, c.category))


@dataclass(frozen=True)
class Saved(Letters):
    """Letters that a pass wrote into files."""

    place: Path
    spark: SparkSession

    def _files(self) -> Any:
        from pyarrow import dataset  # it loads pandas: 50 MB, for runs in which nothing may have failed

        return dataset.dataset(self.place, format="parquet")

    @cached_property
    def frame(self) -> DataFrame:
        """The same as a DataFrame; its schema is that of the files, which costs no job."""
        return read_parts(self.spark, str(self.place), self._files().schema)

    @property
    def columns(self) -> list[str]:
        return list(self._files().schema.names)

    def batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        yield from self._files().to_batches(columns=list(columns))

    def rows(self) -> int:
        return int(self._files().count_rows())

    def table(self, *columns: str) -> pa.Table:
        """All of it: for letters that are few."""
        return self._files().to_table(columns=list(columns) or None)

    def only(self, chosen: Callable[[pa.RecordBatch], pa.Array], place: Path) -> Saved:
        """Those that are `chosen` of each batch, in files of their own; without a Spark job, batch by batch."""
        place.mkdir(parents=True, exist_ok=True)
        found = self._files()
        with pq.ParquetWriter(place / "part-0.parquet", found.schema) as out:
            for batch in found.to_batches():
                out.write_batch(batch.filter(chosen(batch)))
        return Saved(place, self.spark)


def _sortable(values: list[Any]) -> list[Any]:
    """Keys to sort by: nothing comes first, also within lists."""
    return [
        (value is not None, [(v is not None, v) for v in value] if isinstance(value, list) else value)
        for value in values
    ]


def _sort_keys(table: pa.Table | pa.RecordBatch) -> list[tuple[Any, ...]]:
    made = pc.is_null(table["source"]).to_pylist()
    return list(zip(made, *(_sortable(table[name].to_pylist()) for name in ORDER), strict=True))


def few(letters: Iterable[Saved], known: int = 0) -> bool:
    """Are these so few, with others that are `known`, that the driver decides what follows from them?"""
    return taken("listed_groups") and known + sum(found.rows() for found in letters) <= FEW_LETTERS


def save_table(table: pa.Table, place: Path, spark: SparkSession) -> Saved:
    """Letters that are in memory, as files like those of others."""
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place / "part-0.parquet")
    return Saved(place, spark)


def save(frame: DataFrame, place: Path) -> Saved:
    """Run the job."""
    part_writer(frame, str(place)).parquet(str(place))
    return Saved(place, frame.sparkSession)


def last_clean_row(letters: Saved, source: int, offsets: Sequence[int], records: int) -> int:
    """The last record of a source, counted over its files, that is no dead letter and was not matched with one by a
    combine; 0 when there is none."""
    bits = np.zeros(records // 8 + 1, dtype=np.uint8)
    for places in chain((p for p, _ in letters.places(source, offsets)), letters.built_places(source, offsets)):
        np.bitwise_or.at(bits, places >> 3, (1 << (places & 7)).astype(np.uint8))
    row = records
    while row and bits[row - 1 >> 3] >> (row - 1 & 7) & 1:
        # Whole bytes of letters are passed over at once.
        row -= 8 if row % 8 == 0 and bits[(row >> 3) - 1] == 255 else 1
    return row
