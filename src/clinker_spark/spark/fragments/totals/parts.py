"""What the worker of a split makes for those that put groups together: parts of totals, or the records themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from clinker_spark.cxl.vector.totals import VectorTotals, lower_totals
from clinker_spark.spark.fragments.part_files import number_of_task
from clinker_spark.spark.fragments.task import TotalsStep
from clinker_spark.spark.fragments.totals.states import FIRST, keys_of, merged, states

ENOUGH = 1 << 17
"""So many records are looked at together."""
PAYS = 0.5
"""Parts of totals are made when there are at most so many of them for each record. Else others can do it as well, and
then it is done once."""
TASK_BITS = 33
"""The place of a record: that of its task among the tasks, then its own."""

Part = tuple[int, int, bytes]
"""Of which aggregate, for which of the tasks, as Arrow."""


class Parts:
    """The records of one split, as far as they go on to an aggregate; `rank` is the place of its source among those of
    the fragment."""

    def __init__(self, step: TotalsStep, rank: int = 0) -> None:
        self.place = number_of_task(rank) << TASK_BITS
        self.totals: VectorTotals = lower_totals(step.program, step.context)
        self.number = step.number
        self.pieces = step.pieces
        self.waiting: list[pl.DataFrame] = []
        self.made: list[pl.DataFrame] = []
        self.pays = True

    def add(self, frame: pl.DataFrame) -> Iterator[Part]:
        """Takes records of which the program has made keys and arguments; gives what can go on already."""
        places = pl.Series(FIRST, np.arange(self.place, self.place + frame.height))
        self.place += frame.height
        self.waiting.append(frame.select(self.totals.columns).with_columns(places))
        if _rows(self.waiting) >= ENOUGH:
            yield from self._taken()

    def rest(self) -> Iterator[Part]:
        """What is left at the end of the split."""
        yield from self._taken()
        if self.made:
            yield from self._dealt(merged(self.totals, self.made))
        self.made = []

    def _taken(self) -> Iterator[Part]:
        if not self.waiting:
            return
        rows, self.waiting = pl.concat(self.waiting), []
        if self.pays:
            groups = states(self.totals, rows)
            self.pays = groups.height <= rows.height * PAYS
            if self.pays:
                self.made.append(groups)
                yield from self._together()
                return
        yield from self._dealt(rows)

    def _together(self) -> Iterator[Part]:
        """Parts of many groups go on before they are too many."""
        before = _rows(self.made)
        if before < ENOUGH:
            return
        self.made = [merged(self.totals, self.made)]
        if self.made[0].height > before * PAYS:
            yield from self._dealt(self.made.pop())

    def _dealt(self, frame: pl.DataFrame) -> Iterator[Part]:
        if self.pieces == 1 or not frame.height:
            yield from ((self.number, 0, packed(frame)) for _ in range(min(frame.height, 1)))
            return
        keys = [pl.col(name).hash(seed) for seed, name in enumerate(keys_of(self.totals))]
        piece = (pl.sum_horizontal(keys) if len(keys) > 1 else keys[0]) % self.pieces
        for [piece_number], part in (
            frame.with_columns(piece.alias("$")).partition_by("$", include_key=False, as_dict=True).items()
        ):
            yield self.number, piece_number, packed(part)


def _rows(frames: Sequence[pl.DataFrame]) -> int:
    return sum(frame.height for frame in frames)


def packed(frame: pl.DataFrame) -> bytes:
    """Records as Arrow. Texts are put together first: as Polars keeps them, each part would have those of all."""
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content
