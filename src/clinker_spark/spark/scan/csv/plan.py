"""The plan of a read: what every task must know, made once on the driver and sent along with the query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clinker_spark.spark.scan.csv.dialect import CsvDialect
from clinker_spark.spark.scan.csv.header import CsvFile
from clinker_spark.spark.scan.request import CsvExtras
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning
from clinker_spark.spark.scan.text.values import TextColumn


@dataclass(frozen=True)
class CsvSplit:
    """A part of a file for one task: bytes, or the whole file as a stream (`end` None)."""

    file: int
    start: int = 0
    end: int | None = None
    skip: int = 0
    """Records to pass over: the header of a stream."""
    first_row: int = 1
    """The number of the first record in its file, when positions are wanted."""
    take: int | None = None
    """The most records to give."""
    clean: bool = False
    """Are all its quotes known to be closed?"""


@dataclass(frozen=True)
class CsvPlan:
    """Everything the tasks share."""

    files: tuple[CsvFile, ...]
    columns: tuple[TextColumn, ...]
    selected: frozenset[str]
    dialect: CsvDialect
    splits: tuple[CsvSplit, ...] = ()
    widened: tuple[str, ...] = ()
    positions: bool = False
    record: bool = False
    row_offsets: tuple[int, ...] = ()
    """With positions: the records of the files before each file."""
    extras: CsvExtras = field(default_factory=CsvExtras)
    cleaning: Cleaning = NO_CLEANING

    def key(self, split: CsvSplit) -> tuple[Any, ...]:
        """What a split is, for passes that may cut files in other places."""
        return self.files[split.file].path, split.start, split.end, split.skip
