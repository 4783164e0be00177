"""Dead letters that lie in Parquet files of an attempt: small questions about them need no Spark job.

The files are read in batches and only in the columns that matter, so nothing here grows with the letters except one
bit for each record of a source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from clinker_spark.spark.operators.letters import LetterCount


@dataclass(frozen=True)
class Saved:
    """A DataFrame over the files in `place`."""

    place: Path
    frame: Any

    def batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        yield from pads.dataset(self.place, format="parquet").to_batches(columns=list(columns))

    def rows(self) -> int:
        return int(pads.dataset(self.place, format="parquet").count_rows())

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


def save(frame: Any, place: Path) -> Saved:
    """Run the job."""
    frame.write.mode("overwrite").parquet(str(place))
    return Saved(place, frame.sparkSession.read.schema(frame.schema).parquet(str(place)))


def count_saved(letters: Saved) -> list[LetterCount]:
    """The counts by source, stage and category."""
    counts = letters.tally("source", "stage", "category")
    found = [LetterCount(source, stage, category, n) for (source, stage, category), n in counts.items()]
    return sorted(found, key=lambda c: (c.source is None, c.source or 0, c.stage, c.category))


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
