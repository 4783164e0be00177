"""What a reader is asked for, and what it gives. Every file format has this one interface.

A reader's DataFrame has, in this order, the wanted columns in their physical types and then, where they apply:

- `$error` (not where the reader diverts such records): null, or why the record cannot be used (kind, field, value,
  message). Such a record has null in every column it could not fill. `kind` is a dead-letter category:
  type_coercion_failure, missing_required_field or structural_validation.
- `$cells.0`, `$cells.1`...: finished cells of a CSV output, where `cells` asks for them (only the CSV reader does).
- `$widened`: a map of the cells that no declared column reads, when the source carries them along.
- `$file` (position in `files`) and `$row` (1-based record of that file), when positions are asked for.
- `$record`: a struct with the text of every declared column as it stood in the file, when it is asked for.
- `$line`: with it, the bytes of the record without their line end, in the form of `source_lines`; null where the
  format has none, or where they are not known.
- `$arrival`: a number that grows from record to record over all files, when it is asked for.

Its partitions stand in file order: partition by partition, row by row, is the order of the source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from clinker_spark.config.model.schema import Column
from clinker_spark.plan.facts import Bound, CellRun
from clinker_spark.plan.nodes.source import PlannedKinds
from clinker_spark.spark.fragments.task import FragmentTask
from clinker_spark.spark.scan.files import SourceFile as SourceFile
from clinker_spark.spark.scan.row_filter import RowFilter
from clinker_spark.spark.scan.text.cleaning import NO_CLEANING, Cleaning
from clinker_spark.spark.scan.text.rows_of_values import ValueRows


@dataclass(frozen=True)
class Conventions:
    """How the files of a source are to be understood, besides the options of their format."""

    compression: str = "auto"
    on_unmapped: str = "auto_widen"
    date_formats: tuple[str, ...] = ()
    cleaning: Cleaning = NO_CLEANING
    kinds: PlannedKinds | None = None
    """The kinds of records, where files have several."""
    row_splits: tuple[ValueRows, ...] = ()
    """Fields whose values become records."""
    whole_files: bool = False
    """Is a file that is wrong as a whole a failure of its records, and no reason to stop?"""


@dataclass(frozen=True)
class Readers:
    """How readers work, and what they tell besides the records."""

    progress: str | None = None
    """Where they say how far they are (`scans.progress_path`)."""
    meter: str | None = None
    """Where they say how many bytes they have read (`scans.meter_path`)."""
    known_counts: dict[Any, int] | None = None
    """How many records parts of files have, as far as earlier reads of a run counted them; readers add to it."""
    known_schemas: dict[str, Any] | None = None
    """As what files are read, by the schema that is written in them, as far as a run has asked Spark; readers add to
    it."""
    here: bool = False
    """Is the input so small that this process reads it, before the first job?"""
    bounds: tuple[Bound, ...] = ()
    """Records that are not within these may be left out."""
    limit: int | None = None
    """They stop after so many records."""
    batch_size: int | None = None
    """The most records that are handed on together; None: as many as suit the format."""


NOTHING_TOLD = Readers()


@dataclass(frozen=True)
class CsvExtras:
    """What only the CSV reader can do. Others give all records, with their errors."""

    cells: tuple[CellRun, ...] = ()
    """Finished cells to give besides the wanted columns."""
    only_flags: bool = False
    """Nobody reads the errors, only whether there is one: their texts may be left out."""
    aside: str | None = None
    """Where the records with errors are kept, which are not given then (`kept_rejects`)."""
    watched: tuple[str, ...] = ()
    """The key of groups whose sizes are guessed by readers that keep records (`group_sizes`)."""
    row_filter: RowFilter | None = None
    """Only some records, or all but some."""
    keys: tuple[str, ...] = ()
    """The correlation key: read of broken records, too, where it can be."""


@dataclass(frozen=True)
class ReadRequest:
    """Everything a reader must know. `wanted` None is all declared columns."""

    source: str
    files: tuple[SourceFile, ...]
    columns: tuple[Column, ...]
    options: Any
    conventions: Conventions = Conventions()
    wanted: frozenset[str] | None = None
    arrival: bool = False
    positions: bool = False
    record: bool = False
    readers: Readers = NOTHING_TOLD
    csv: CsvExtras = CsvExtras()
    fragment: Callable[[tuple[str, ...]], FragmentTask | None] | None = None
    """What workers do with the batches of a split, given the undeclared columns of the files; it may say nothing."""
    guess: bool = False
    """May a reader take it that files have no undeclared columns but those that it sees at a few places? Then workers
    look whether that is so, and stop (`Unforeseen`) where it is not."""

    def worker(self, widened: tuple[str, ...]) -> FragmentTask | None:
        """What is to be done with the batches of a split, besides to hand them on."""
        return None if self.fragment is None else self.fragment(widened)

    @property
    def selected(self) -> tuple[Column, ...]:
        """The columns the DataFrame has, in declared order."""
        return tuple(c for c in self.columns if self.wanted is None or c.name in self.wanted)


class Unforeseen(Exception):
    """A record has an undeclared column that nobody expected (`ReadRequest.guess`)."""


@dataclass(frozen=True)
class Scan:
    """What a reader gives. `fallible` says whether there is an `$error` column."""

    frame: DataFrame
    fallible: bool
    in_python: bool
    """Python parses the files, in Arrow batches; explain says so."""
    here: bool = False
    """Were they read by this process, when the DataFrame was made? No job reads them again."""
    widened: tuple[str, ...] = ()
    """The undeclared columns that `$widened` can hold, in file order."""
    row_offsets: tuple[int, ...] = ()
    """With positions: how many records the files before each file have."""
    split_files: tuple[int, ...] | None = None
    """The file of each split, when readers divert the records with errors."""
    split_keys: tuple[Any, ...] = ()
    """By what `ReadRequest.known_counts` knows the splits."""
    splits: int | None = None
    """How many parts the readers read, where each says in the end how many records it gave (`scans.final_counts`)."""
    rows: int | None = None
    """How many records the files say they have, where they do."""
    watches: bool = False
    """Do readers guess the sizes of groups?"""
    headers: tuple[str, ...] = ()
    """The header line of each file, of formats that have one: what the lines of its records mean."""
