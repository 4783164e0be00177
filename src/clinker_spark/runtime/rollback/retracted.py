"""The records that are read no more, as if they had never been: those that failed, and those of totals that failed.

While they are few they are known here, and a reader or a filter leaves them out. Many stay in files, and Spark does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.passes.correlation import BROADCASTABLE
from clinker_spark.runtime.reject.saved_letters import Saved, few, save
from clinker_spark.spark.build.passes import Numbers, Retraction
from clinker_spark.spark.scan.row_filter import RowFilter, save_row_filter
from clinker_spark.spark.session.sessions import is_local

if TYPE_CHECKING:
    from clinker_spark.runtime.run.state import RunState

_PLACE = ("source", "file", "row")
_LISTED = 2_000
"""Up to so many records of a source, a filter names them."""


class Retracted:
    """What was retracted up to now."""

    def __init__(self, state: RunState, folder: Path) -> None:
        self.state = state
        self.folder = folder
        self.counts: Counter[int] = Counter()
        """By source."""
        self.numbers: dict[str, Numbers] = {}
        """By relaxed aggregate: the numbers that its groups had when nothing was retracted."""
        self.iteration = 0
        self._told = -1
        """The iteration up to which readers know them."""
        self._known: set[tuple[int, int, int]] | None = set()
        """The places while they are few."""
        self._saved: Saved | None = None
        """The places when they are many."""

    def add(self, letters: Sequence[Saved]) -> None:
        """The records of some letters; those that were made of several are not read."""
        self.iteration += 1
        if self._known is not None and few(letters, len(self._known)):
            for found in letters:
                columns = (found.table(*_PLACE)[name].to_pylist() for name in _PLACE)
                self._known |= {place for place in zip(*columns, strict=True) if place[0] is not None}
            self.counts = Counter(source for source, _, _ in self._known)
            return
        frames = [found.frame.select(*_PLACE) for found in letters]
        if self._saved is not None:
            frames.append(self._saved.frame)
        elif self._known:
            schema = "source INT, file INT, row BIGINT"
            frames.append(self.state.spark.createDataFrame(sorted(self._known), schema))
        rows: Any = reduce(lambda a, b: a.unionByName(b), frames)
        everything = save(rows.where("source IS NOT NULL").distinct(), self.folder / f"removed-{self.iteration}")
        self._known, self._saved = None, everything
        self.counts = Counter({source: count for (source,), count in everything.tally("source").items()})

    def left_out(self, *, later: bool = False) -> tuple[Retraction, dict[str, RowFilter]]:
        """What a pass does without, by a filter or by its readers; `later`: also without what is retracted before it
        runs, as far as readers can do it."""
        removed: dict[str, Any] = {}
        row_filters: dict[str, RowFilter] = {}
        for node in self.state.plan.sources:
            count = self.counts[node.index]
            if self._by_reader(node) and (count or later):
                row_filters[node.name] = RowFilter(str(self._folder(node)), (), keep=False)
            elif count and self._known is not None and count <= _LISTED:
                removed[node.name] = sorted((f, row) for source, f, row in self._known if source == node.index)
            elif count:
                removed[node.name] = self._frame().where(f"source = {node.index}")
        self.tell_readers()
        counts = {node.name: count for node in self.state.plan.sources if (count := self.counts[node.index])}
        return Retraction(removed, counts), row_filters

    def by_readers(self) -> bool:
        """Is everything left out by readers? Then a pass that was built before leaves out what was retracted since."""
        return all(self._by_reader(node) for node in self.state.plan.sources)

    def tell_readers(self) -> None:
        """Jobs that run from now on read what was retracted up to now no more."""
        if self._told != self.iteration:
            self._told = self.iteration
            for node in self.state.plan.sources:
                if self._by_reader(node):
                    save_row_filter(self._folder(node), self._places(node.index))

    def _by_reader(self, node: SourcePlan) -> bool:
        return node.reader == "csv" and self.counts[node.index] <= BROADCASTABLE and is_local(self.state.spark)

    def _folder(self, node: SourcePlan) -> Path:
        return self.folder / f"left-out-{node.index}"

    def _places(self, source: int) -> pa.Table:
        if self._saved is not None:
            return self._saved.places_of(source)
        assert self._known is not None
        mine = sorted((file, row) for index, file, row in self._known if index == source)
        fields = [("file", pa.int32()), ("row", pa.int64())]
        return pa.table(
            [pa.array([place[i] for place in mine], kind) for i, (_, kind) in enumerate(fields)], pa.schema(fields)
        )

    def _frame(self) -> Any:
        if self._saved is None:
            assert self._known is not None
            return self.state.spark.createDataFrame(sorted(self._known), "source INT, file INT, row BIGINT")
        return self._saved.frame
