"""Dead letters that lie in Parquet files of an attempt: small questions about them need no Spark job.

The files are read in batches and only in the columns that matter, so nothing here grows with the letters except one
bit for each record of a source.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from clinker_spark.plan.columns import LINE_COLUMN
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.reject.letter_lines import write_lines
from clinker_spark.runtime.reject.replay_files import Feed
from clinker_spark.runtime.run.assemble import Made
from clinker_spark.spark.parts import DataFrame, part_writer, read_parts
from clinker_spark.spark.rejects.letters import MERGED, LetterCount, letter_header
from clinker_spark.spark.scan.request import SourceFile
from clinker_spark.spark.session.sessions import SparkSession

FEW_LETTERS = 50_000
"""Up to so many are written without a Spark job."""
_ORDER = ("source", "file", "row", "stage", "tie")


@dataclass(frozen=True)
class Saved:
    """Letters that lie in files."""

    place: Path
    spark: SparkSession

    @cached_property
    def frame(self) -> DataFrame:
        """The same as a DataFrame; its schema is that of the files, which costs no job."""
        return read_parts(self.spark, str(self.place), pads.dataset(self.place, format="parquet").schema)

    @property
    def columns(self) -> list[str]:
        return list(pads.dataset(self.place, format="parquet").schema.names)

    def batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        yield from pads.dataset(self.place, format="parquet").to_batches(columns=list(columns))

    def rows(self) -> int:
        return int(pads.dataset(self.place, format="parquet").count_rows())

    def table(self, *columns: str) -> pa.Table:
        """All of it: for letters that are few."""
        return pads.dataset(self.place, format="parquet").to_table(columns=list(columns) or None)

    def only(self, condition: pc.Expression, place: Path) -> Saved:
        """Those that fulfil a condition, in files of their own; without a Spark job, batch by batch."""
        found = pads.dataset(self.place, format="parquet")
        pads.write_dataset(found.scanner(filter=condition, use_threads=False), place, format="parquet")
        return Saved(place, self.spark)

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

    def write(
        self,
        place: Path,
        plan: Plan,
        sources: Sequence[int],
        columns: Sequence[str],
        files: Mapping[str, tuple[SourceFile, ...]],
        headers: Mapping[str, tuple[str, ...]],
        now: dt.datetime,
        handling: Any,
        feed: Feed | None = None,
        *,
        others: bool,
    ) -> Made:
        """The letters of some sources, or of all others and of none, as a CSV file: in source and row order, what was
        made of several records last. For letters that are few."""
        names = [*_ORDER, "route", "category", "field", "value", "message", "trigger", "letter"]
        table = pads.dataset(self.place, format="parquet").to_table(columns=names)
        mine = pc.is_in(table["source"], value_set=pa.array(sources, table["source"].type))
        table = table.filter(pc.invert(mine) if others else mine)
        made = pc.is_null(table["source"]).to_pylist()
        keys = list(zip(made, *(_sortable(table[name].to_pylist()) for name in _ORDER), strict=True))
        table = table.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))
        with open(place, "wb") as out:
            out.write(letter_header(columns, handling))
            if table.num_rows:
                maps = [{} if pairs is None else dict(pairs) for pairs in table["letter"].to_pylist()]
                record = [pa.array([texts.get(name) for texts in maps], pa.string()) for name in columns]
                lines = pa.array([texts.get(LINE_COLUMN) for texts in maps], pa.string())
                engine = _engine_columns(plan, table, files)
                fed = None if feed is None else _fed(feed, plan, table)
                write_lines(out, engine, record, lines, _headers(plan, table, headers), now, handling, fed)
        return Made(place, place.stat().st_size)


def _sortable(values: list[Any]) -> list[Any]:
    """Keys to sort by: nothing comes first, also within lists."""
    return [
        (value is not None, [(v is not None, v) for v in value] if isinstance(value, list) else value)
        for value in values
    ]


def _fed(feed: Feed, plan: Plan, table: pa.Table) -> list[dict[str, str] | None]:
    found: list[dict[str, str] | None] = []
    for source, file, row, stage in zip(*(table[name].to_pylist() for name in _ORDER[:4]), strict=True):
        fed = None if source is None else feed.of(plan.sources[source].name, file, row)
        found.append(None if fed is None else fed.letter(plan.nodes[stage].stage))
    return found


def _headers(plan: Plan, table: pa.Table, headers: Mapping[str, tuple[str, ...]]) -> pa.Array:
    found: list[str | None] = []
    for source, file in zip(table["source"].to_pylist(), table["file"].to_pylist(), strict=True):
        known = () if source is None or file is None else headers.get(plan.sources[source].name, ())
        found.append(known[file] if known else None)
    return pa.array(found, pa.string())


def _engine_columns(plan: Plan, table: pa.Table, files: Mapping[str, tuple[SourceFile, ...]]) -> dict[str, pa.Array]:
    paths: list[str] = []
    names: list[str] = []
    for source, file in zip(table["source"].to_pylist(), table["file"].to_pylist(), strict=True):
        node = None if source is None else plan.sources[source]
        names.append(MERGED if node is None else node.source_name)
        paths.append(MERGED if node is None or file is None else files[node.name][file].name)
    return {
        "source_file": pa.array(paths, pa.string()),
        "source_name": pa.array(names, pa.string()),
        "source_row": _texts(table["row"]),
        "triggering_field": _texts(table["field"]),
        "triggering_value": _texts(table["value"]),
        "error_category": _texts(table["category"]),
        "error_detail": _texts(table["message"]),
        "stage": pa.array([plan.nodes[stage].stage for stage in table["stage"].to_pylist()], pa.string()),
        "route": _texts(table["route"]),
        "trigger": _texts(table["trigger"]),
    }


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return pc.cast(column, pa.string()).combine_chunks()


def save_table(table: pa.Table, place: Path, spark: SparkSession) -> Saved:
    """Letters that are in memory, as files like those of others."""
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place / "part-0.parquet")
    return Saved(place, spark)


def save(frame: DataFrame, place: Path) -> Saved:
    """Run the job."""
    part_writer(frame, str(place)).parquet(str(place))
    return Saved(place, frame.sparkSession)


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
