"""Workers that put the groups of an aggregate together, from the parts of all splits, and give them in their order."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from clinker_spark.cxl.ir import TypedProgram
from clinker_spark.cxl.system import Context

if TYPE_CHECKING:
    import polars as pl

SIZES = (("number", "INT"), ("path", "STRING"), ("rows", "BIGINT"), ("size", "BIGINT"), ("places", "ARRAY<BIGINT>"))
"""What is said of a file of groups; `number` is that of the aggregate, `places` are those of some of its groups, as far
from each other."""
_SIZES = pa.schema(
    [
        ("number", pa.int32()),
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("places", pa.list_(pa.int64())),
    ]
)
MOST_PLACES = 128
_TOGETHER = 1 << 20
"""So many records at least become parts of totals together."""
_ROWS = 1 << 14


@dataclass(frozen=True)
class Grouping:
    """What a task does with the parts that are dealt to it."""

    aggregates: tuple[tuple[TypedProgram, Context, pa.Schema], ...]
    """By number. The schema is that of groups: keys, for each call its value and perhaps whether it is lost, the place
    of the first record."""
    folder: str | None
    """Where groups are kept in files; None: they are given."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from clinker_spark.spark.fragments.totals.states import FIRST  # Polars: workers load it, not this process

        for number, groups in self._groups(batches):
            if self.folder is None:
                yield from _batches(groups, self.aggregates[number][2])
                continue
            groups = groups.sort(FIRST)
            path = os.path.join(self.folder, f"{uuid.uuid4().hex}.groups")
            groups.write_ipc(path)
            places = groups[FIRST].gather_every(max(groups.height // MOST_PLACES, 1)).to_list()
            size = os.path.getsize(path)
            row = {"number": number, "path": path, "rows": groups.height, "size": size, "places": places}
            yield pa.RecordBatch.from_pylist([row], _SIZES)

    def _groups(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pl.DataFrame]]:
        """The groups of each aggregate of which a part came, by its number."""
        import polars as pl  # only workers need it

        from clinker_spark.cxl.vector.totals import lower_totals
        from clinker_spark.spark.fragments.totals.finals import finished
        from clinker_spark.spark.fragments.totals.states import COUNT, merged, states

        totals = [lower_totals(program, context) for program, context, _ in self.aggregates]
        rows: dict[int, list[pl.DataFrame]] = {}
        parts: dict[int, list[pl.DataFrame]] = {}

        def together(number: int) -> None:
            parts.setdefault(number, []).append(states(totals[number], pl.concat(rows.pop(number))))

        for batch in batches:
            for number, content in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                frame = pl.from_arrow(pa.ipc.open_stream(content.as_buffer()).read_all())
                assert isinstance(frame, pl.DataFrame)
                (parts if COUNT in frame.columns else rows).setdefault(number, []).append(frame)
            for number in [each for each, frames in rows.items() if sum(f.height for f in frames) >= _TOGETHER]:
                together(number)
        for number in list(rows):
            together(number)
        for number in sorted(parts):
            yield number, finished(totals[number], merged(totals[number], parts.pop(number)))


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
