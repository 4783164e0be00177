"""What a pass has built already, and what it keeps in memory while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from clinker_spark.spark.build.stream import Stream
from clinker_spark.spark.kept_results import keep
from clinker_spark.spark.plan_cuts import Shared
from clinker_spark.spark.scan.request import Scan

Ports = dict[str | None, Stream]


@dataclass(frozen=True, eq=False)
class Memo:
    """Of one pass."""

    built: dict[str, Ports] = field(default_factory=dict)
    """By node: its streams."""
    scans: dict[str, Scan] = field(default_factory=dict)
    """By source."""
    source_counts: dict[str, int] = field(default_factory=dict)
    """By source: how many records it has, where a job counted them."""
    chains: dict[str, int] = field(default_factory=dict)
    """By node: how many stand in a row up to it that records only go through."""
    watching: set[str] = field(default_factory=set)
    """The sources whose groups are watched by the jobs that are built now."""
    watched: set[str] = field(default_factory=set)
    """Those of which a job has seen all groups."""
    shared: list[Shared] = field(default_factory=list)
    """Rows that several readers of one job have in common."""
    stored: dict[str, list[DataFrame]] = field(default_factory=dict)
    """By node: what is kept while it is read twice; whoever owns the builder lets it go."""

    totals: dict[str, DataFrame] = field(default_factory=dict)
    """By aggregate: what a stream has added up, from which a batch makes its records."""
    in_workers: set[str] = field(default_factory=set)
    """The aggregates whose groups workers make."""
    read_already: set[str] = field(default_factory=set)
    """The sources that a job has read while the pass was built."""
    groups: dict[str, Any] = field(default_factory=dict)
    """By source: what its workers make besides, where they make groups (`fragments.totals`)."""
    fragments: dict[str, Any] = field(default_factory=dict)
    """By source: the outputs that its workers write as text (`operators.output`)."""

    def share(self, frame: DataFrame) -> DataFrame:
        """Rows of one task, planned and computed once."""
        self.shared.append(Shared(frame.coalesce(1)))
        return self.shared[-1].frame

    def store(self, node: str, frame: DataFrame, *, on_disk: bool = False) -> DataFrame:
        """Rows of a node that are kept when they are read for the first time: in memory as far as there is room, or on
        disk alone."""
        kept = keep(frame, node, StorageLevel.DISK_ONLY if on_disk else StorageLevel.MEMORY_AND_DISK)
        self.stored.setdefault(node, []).append(kept)
        return kept

    def release(self, node: str) -> None:
        """Let go of what is kept of one node: its last reader is done."""
        for frame in self.stored.pop(node, ()):
            frame.unpersist()

    def forget(self) -> None:
        """The shared rows: the next job makes them anew, of what its sources hold then."""
        for rows in self.shared:
            rows.forget()

    def let_go(self) -> None:
        """Of what is kept."""
        for node in list(self.stored):
            self.release(node)
        for rows in self.shared:
            rows.unpersist()
        self.shared.clear()
