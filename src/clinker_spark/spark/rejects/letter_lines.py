"""Dead letters as lines of CSV: the one place that says what a line looks like.

Lines are made of Arrow batches. The driver does that for letters that are few, or in order already: a Spark job for
them would only have to be compiled. For many that must be sorted the tasks of a job do it (`sorted_lines`);
`benchmarks/bench_correlation.py --dirty 0.3` shows what that is worth.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.plan.columns import LINE_COLUMN
from clinker_spark.plan.nodes.aggregate import LATE, LATE_STAGE
from clinker_spark.plan.nodes.reshape import CONFLICT
from clinker_spark.spark.arrow_batches import over_batches
from clinker_spark.spark.rejects.letter_marks import PREFIX, source_hash
from clinker_spark.spark.scan.lines import shown_line
from clinker_spark.spark.scan.text.cells import quoted_where_needed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MERGED = "<merged>"
"""The source of a record that was made of several, and its file."""
STAMPS = ("id", "timestamp")
REASON = ("error_category", "error_detail")
SOURCE_COLUMNS = ("source_line", "source_line_encoding", "source_header", "source_hash")
"""With the records themselves: their bytes, what these mean, and a hash that shows whether somebody edited them."""
SHOWN = ("source", "file", "row", "stage", "route", "category", "field", "value", "message", "trigger", "letter")
"""The columns of letters that lines are made of."""
_ENGINE = {
    "source_file": "",
    "source_name": "",
    "source_row": "row",
    "triggering_field": "field",
    "triggering_value": "value",
    "error_category": "category",
    "error_detail": "message",
    "stage": "",
    "route": "route",
    "trigger": "trigger",
}
"""The columns of the file that the engine fills, and those of letters that they show as they are."""
Fed = Sequence[Mapping[str, str] | None]
"""Of each letter in a replay: what the letter of its record said before."""


@dataclass(frozen=True)
class LetterSource:
    """A source as lines name it: its files, and their header lines where the format has some."""

    name: str
    files: tuple[str, ...]
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class LetterLines:
    """The lines of one dead-letter file."""

    columns: tuple[str, ...]
    """Those of the records."""
    sources: tuple[LetterSource, ...]
    stages: tuple[str, ...]
    """By position of a node: what its stage is called."""
    now: dt.datetime
    include_reason: bool = True
    include_source_row: bool = True

    @property
    def header(self) -> bytes:
        """The first line."""
        names = [f"{PREFIX}{name}" for name in (*STAMPS, *self._engine_names)]
        if self.include_source_row:
            names += [*(f"{PREFIX}{name}" for name in SOURCE_COLUMNS), *self.columns]
        return (",".join(quoted_where_needed(pa.array(names), ",").to_pylist()) + "\n").encode()

    @property
    def _engine_names(self) -> list[str]:
        return [name for name in _ENGINE if self.include_reason or name not in REASON]

    def lines(self, letters: pa.RecordBatch, fed: Fed | None = None) -> pa.Array:
        """The lines of some letters, without their ends."""
        rows = letters.num_rows
        engine = self._engine(letters)
        identifiers: list[str] = _identifiers(self.now, rows)
        if fed is not None:
            identifiers = [(known or {}).get("id") or new for new, known in zip(identifiers, fed, strict=True)]
            engine |= _as_before(engine, fed)
        stamp = pa.scalar(self.now.strftime("%Y-%m-%dT%H:%M:%SZ"), pa.string())
        cells = [pa.array(identifiers, pa.string()), pa.repeat(stamp, rows)]
        cells += [engine[name] for name in self._engine_names]
        if self.include_source_row:
            line, *record = map_columns(letters["letter"], (LINE_COLUMN, *self.columns))
            cells += [*_source_columns(record, line, self._headers(letters)), *record]
        quoted = [quoted_where_needed(cell, ",") for cell in cells]
        return pc.binary_join_element_wise(*quoted, ",", null_handling="replace", null_replacement="")

    def _engine(self, letters: pa.RecordBatch) -> dict[str, pa.Array]:
        found = {name: pc.cast(letters[column], pa.string()) for name, column in _ENGINE.items() if column}
        names = pa.array([source.name for source in self.sources], pa.string())
        found["source_name"] = pc.fill_null(names.take(letters["source"]), MERGED)
        files = self._of_files(letters, [source.files for source in self.sources])
        found["source_file"] = pc.fill_null(files, MERGED)
        stages = pa.array(self.stages, pa.string()).take(letters["stage"])
        # Of a conflict between two rules, the stage says which ones.
        rules = pc.binary_join_element_wise(stages, letters["value"], ":")
        stages = pc.if_else(pc.equal(letters["category"], CONFLICT), rules, stages)
        late = pc.replace_substring_regex(stages, "^[a-z]*", LATE_STAGE)
        found["stage"] = pc.if_else(pc.equal(letters["category"], LATE), late, stages)
        return found

    def _headers(self, letters: pa.RecordBatch) -> pa.Array:
        none = [(None,) * len(source.files) for source in self.sources]
        return self._of_files(letters, [s.headers or none[i] for i, s in enumerate(self.sources)])

    def _of_files(self, letters: pa.RecordBatch, texts: Sequence[Sequence[str | None]]) -> pa.Array:
        """Of each letter: the text of its file, among those of each source."""
        ends = np.cumsum([0, *map(len, texts)])
        first = pa.array(ends[:-1], pa.int64()).take(letters["source"])
        every = pa.array([text for mine in texts for text in mine], pa.string())
        return every.take(pc.add(first, pc.cast(letters["file"], pa.int64())))


def map_columns(maps: pa.MapArray, names: Sequence[str]) -> list[pa.Array]:
    """The values of some keys, each as a column.

    >>> maps = pa.array([[("a", "1"), ("b", "2")], [("b", None)], None], pa.map_(pa.string(), pa.string()))
    >>> [column.to_pylist() for column in map_columns(maps, ["b", "a", "c"])]
    [['2', None, None], ['1', None, None], [None, None, None]]
    """
    offsets = maps.offsets.to_numpy()
    start, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys = maps.keys.slice(start, size).dictionary_encode()
    items = maps.items.slice(start, size)
    rows = np.repeat(np.arange(len(maps)), np.diff(offsets))
    codes, known = keys.indices.to_numpy(zero_copy_only=False), keys.dictionary.to_pylist()
    found = []
    for name in names:
        places = np.full(len(maps), -1)
        mine = np.flatnonzero(codes == known.index(name)) if name in known else np.array([], np.int64)
        places[rows[mine]] = mine
        found.append(items.take(pa.array(places, pa.int64(), mask=places < 0)))
    return found


def _as_before(engine: Mapping[str, pa.Array], fed: Fed) -> dict[str, pa.Array]:
    """The row of the file that a record came from, and, if it fails as it did before, the words of that: they can
    name a line of that file."""
    names = ("source_row", "error_category", "triggering_value", "error_detail")
    found: dict[str, list[str | None]] = {"source_row": [], "error_detail": []}
    columns = [engine[name].to_pylist() for name in names]
    for row, category, value, detail, known in zip(*columns, fed, strict=True):
        before = known or {}
        same = before.get("error_category") == category and before.get("triggering_value", "") == (value or "")
        found["source_row"].append(before.get("source_row", row))
        found["error_detail"].append(before.get("error_detail", detail) if same else detail)
    return {name: pa.array(column, pa.string()) for name, column in found.items()}


def _source_columns(record: Sequence[pa.Array], lines: pa.Array, headers: pa.Array) -> list[pa.Array]:
    """`SOURCE_COLUMNS` of some letters."""
    shown = [(None, None) if text is None else shown_line(text) for text in lines.to_pylist()]
    titles = [None if text is None else title for (text, _), title in zip(shown, headers.to_pylist(), strict=True)]
    cells = zip(*(column.to_pylist() for column in record), strict=True) if record else [()] * len(shown)
    hashes = [source_hash(row, text) for row, (text, _) in zip(cells, shown, strict=True)]
    columns = ([text for text, _ in shown], [encoding for _, encoding in shown], titles, hashes)
    return [pa.array(column, pa.string()) for column in columns]


def _identifiers(now: dt.datetime, count: int) -> list[str]:
    """Identifiers that sort by time (version 7)."""
    stamp = f"{int(now.replace(tzinfo=dt.UTC).timestamp() * 1000):012x}"
    start = f"{stamp[:8]}-{stamp[8:]}-7"
    digits = os.urandom(10 * count).hex()
    found = []
    for at in range(0, 20 * count, 20):
        variant = "89ab"[int(digits[at + 3], 16) & 3]
        found.append(f"{start}{digits[at : at + 3]}-{variant}{digits[at + 4 : at + 7]}-{digits[at + 7 : at + 19]}")
    return found


def sorted_lines(letters: DataFrame, lines: LetterLines) -> DataFrame:
    """The lines of letters that are in order, made by the tasks that sorted them."""

    def made(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([lines.lines(batch)], ["value"])

    return over_batches(letters.select(*SHOWN), made, "value STRING")
