"""Workers that put the groups of an aggregate together, from the parts of all splits, and give them in their order."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from clinker_spark.cxl.ir import TypedProgram
from clinker_spark.cxl.system import Context

if TYPE_CHECKING:
    import polars as pl

SIZES = (("number", "INT"), ("path", "STRING"), ("rows", "BIGINT"), ("size", "BIGINT"), ("places", "ARRAY<BIGINT>"))
"""What is said of a file of groups; `number` is that of the aggregate, `places` are those of some of its groups, as far
from each other."""
MOST_PLACES = 128
_TOGETHER = 1 << 20
"""So many records at least become parts of totals together."""
_ROWS = 1 << 14


@dataclass(frozen=True)
class Grouping:
    """What a task does with the parts that are dealt to it, which are all of one aggregate."""

    aggregates: tuple[tuple[TypedProgram, Context, pa.Schema], ...]
    """By number. The schema is that of groups: keys, for each call its value and perhaps whether it is lost, the place
    of the first record."""
    folder: str | None
    """Where groups are kept in files; None: they are given."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from clinker_spark.spark.fragments.totals.states import FIRST  # Polars: workers load it, not this process

        found = self._groups(batches)
        if found is None:
            return
        number, groups = found
        if self.folder is None:
            yield from _batches(groups, self.aggregates[number][2])
            return
        groups = groups.sort(FIRST)
        path = os.path.join(self.folder, f"{uuid.uuid4().hex}.groups")
        groups.write_ipc(path)
        places = groups[FIRST].gather_every(max(groups.height // MOST_PLACES, 1)).to_list()
        row = {"number": number, "path": path, "rows": groups.height, "size": os.path.getsize(path), "places": places}
        kinds = [("number", pa.int32()), ("path", pa.string()), ("rows", pa.int64()), ("size", pa.int64())]
        kinds += [("places", pa.list_(pa.int64()))]
        yield pa.RecordBatch.from_pylist([row], pa.schema(kinds))

    def _groups(self, batches: Iterable[pa.RecordBatch]) -> tuple[int, pl.DataFrame] | None:
        """The number of the aggregate and its groups; None where no part came."""
        import polars as pl  # only workers need it

        from clinker_spark.cxl.vector.totals import lower_totals
        from clinker_spark.spark.fragments.totals.finals import finished
        from clinker_spark.spark.fragments.totals.states import COUNT, merged, states

        parted = iter(batches)
        first = next((batch for batch in parted if batch.num_rows), None)
        if first is None:
            return None
        number: int = first.column(0)[0].as_py()
        totals = lower_totals(*self.aggregates[number][:2])
        rows: list[pl.DataFrame] = []
        parts: list[pl.DataFrame] = []
        for batch in chain([first], parted):
            for content in batch.column(1):
                frame = pl.from_arrow(pa.ipc.open_stream(content.as_buffer()).read_all())
                assert isinstance(frame, pl.DataFrame)
                (parts if COUNT in frame.columns else rows).append(frame)
            if sum(frame.height for frame in rows) >= _TOGETHER:
                parts.append(states(totals, pl.concat(rows)))
                rows = []
        if rows:
            parts.append(states(totals, pl.concat(rows)))
        return number, finished(totals, merged(totals, parts))


@dataclass(frozen=True)
class GroupFiles:
    """Files of groups, each in the order of the groups, as one sequence. `starts` are the places at which the tasks
    begin that read them, but for the first."""

    paths: tuple[str, ...]
    starts: tuple[int, ...]
    schema: pa.Schema

    def __call__(self, tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np  # only workers need them
        import polars as pl

        from clinker_spark.spark.fragments.totals.states import FIRST

        for task in (number for batch in tasks for number in batch.column(0).to_pylist()):
            found = []
            for path in self.paths:
                groups = pl.from_arrow(pa.ipc.open_file(pa.memory_map(path)).read_all())
                assert isinstance(groups, pl.DataFrame)
                cuts = groups[FIRST].to_numpy().searchsorted(np.array(self.starts, dtype=np.int64))
                ends = [0, *cuts.tolist(), groups.height]
                found.append(groups[ends[task] : ends[task + 1]])
            if found:
                yield from _batches(pl.concat(found).sort(FIRST), self.schema)


def starts(files: Sequence[tuple[int, Sequence[int]]], tasks: int) -> tuple[int, ...]:
    """The places at which tasks begin that read about as many groups each; `files` are the numbers of their groups, and
    some of their places.

    >>> starts([(100, [0, 50]), (100, [10, 60])], 2)
    (50,)
    """
    places = sorted((place, rows / len(some)) for rows, some in files for place in some)
    most = sum(rows for rows, _ in files) / tasks
    found: list[int] = []
    before = 0.0
    for place, rows in places:
        if before >= most * (len(found) + 1) and len(found) < tasks - 1:
            found.append(place)
        before += rows
    return tuple(found)


def _batches(groups: pl.DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import polars as pl  # only workers need it

    table = groups.to_arrow(compat_level=pl.CompatLevel.oldest()).rename_columns(schema.names).cast(schema)
    yield from table.to_batches(max_chunksize=_ROWS)
