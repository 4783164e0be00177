"""What a worker does with the batches of a split, as values that travel with the query. No Polars here."""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.types import Type
from clinker_spark.cxl.ir import TypedProgram
from clinker_spark.cxl.system import Context
from clinker_spark.spark.render.cell_text import CellStyle

OUTPUT, PLACE, LINES, COUNTS, TOTALS = "output", "place", "value", "counts", "totals"
LINE_END = "\n"
"""What Spark writes after each text, whatever kind of file it is for: one job writes several."""
WRITTEN_BYTES = "bytes"
"""What is counted at an output besides its records, where workers write its parts."""
FIELDS = ((OUTPUT, "INT"), (PLACE, "BIGINT"), (LINES, "STRING"), (COUNTS, "ARRAY<BIGINT>"), (TOTALS, "BINARY"))
"""What Spark gets: lines of an output, many in one text and in their order; or parts of totals, as Arrow, of an
aggregate (by its number, `OUTPUT`), for one of the tasks that put them together (`PLACE`); and at the end of a split
its counts."""


@dataclass(frozen=True)
class Settle:
    """Failed records are diverted: where all records are counted, and where those."""

    rows: int
    failed: int


@dataclass(frozen=True)
class Cell:
    """A column of the file: a value with its type and style, or a finished text of the reader."""

    name: str
    column: str
    type: Type
    style: CellStyle
    finished: bool = False
    undeclared: str | None = None
    """The name of the column in the source, where no schema has it."""

    @property
    def several(self) -> bool:
        """Are these several members of an object, with their keys?"""
        return self.finished and not self.name


@dataclass(frozen=True)
class Members:
    """Neighbouring members of JSON objects that an output writes as a source has them. A reader that finds them so in
    its lines gives the text of all, and for the others it is made of the values."""

    cells: tuple[Cell, ...]
    nulls: bool
    """Are members without a value written?"""


@dataclass(frozen=True)
class LineFormat:
    """How records become lines."""

    kind: str
    """`csv` or `json`."""
    cells: tuple[Cell, ...]
    delimiter: str = ","
    nulls: bool = True
    """JSON: are members without a value written?"""
    separator: str = LINE_END
    """What stands between two records. It ends with `LINE_END`."""


@dataclass(frozen=True)
class WriteStep:
    """Records become lines of an output."""

    takes: int
    """The number of the stream whose records come."""
    number: int
    lines: LineFormat
    ends: Settle
    """Where written and failed ones are counted."""
    size: int
    """Where the bytes are counted that a worker writes itself."""


@dataclass(frozen=True)
class CheckStep:
    """A condition that each record must meet, or, where failures are only counted, should."""

    program: TypedProgram
    context: Context
    warned: int | None


@dataclass(frozen=True)
class TransformStep:
    """A program over each record; `filters` are the places where what comes to its filters, and goes on, is counted."""

    takes: int
    gives: int
    program: TypedProgram
    context: Context
    filters: tuple[tuple[int, int], ...]
    checks: tuple[CheckStep, ...]
    settle: Settle | None


@dataclass(frozen=True)
class RouteStep:
    """Records part. A record takes the port of its number, or all those whose conditions hold."""

    takes: int
    ports: tuple[int | None, ...]
    """The stream that each port gives, where somebody reads it."""
    program: TypedProgram
    context: Context
    inclusive: bool
    came: int | None
    """Where all records that come are counted, if they are."""
    settle: Settle


@dataclass(frozen=True)
class MergeStep:
    """Records of one input of a merge go on with the types of all."""

    takes: int
    gives: int
    types: tuple[tuple[str, Type], ...]
    """The columns that have another type in this input."""
    came: int | None
    """Where they are counted, if they are."""


@dataclass(frozen=True)
class Table:
    """The records that others are looked up in, in their order: a file that all workers map, or what stands in it."""

    name: str
    """No other table has it, of whatever run."""
    path: str | None
    content: bytes | None = None


@dataclass(frozen=True)
class Lookup:
    """How the records of a stream find their matches in a table."""

    build: str
    table: Table
    keys: TypedProgram
    """Makes the columns `left` and `left_ranges` of the stream."""
    left: tuple[str, ...]
    right: tuple[str, ...]
    """The columns that must be equal, of the stream and of the table."""
    left_ranges: tuple[str, ...]
    right_ranges: tuple[str, ...]
    ops: tuple[str, ...]
    span: tuple[int | None, int | None]
    """Which of the ranges say that a record lies behind a lower end, and before an upper end."""
    residual: TypedProgram | None
    """What else must be true of a pair."""
    settle: Settle | None


@dataclass(frozen=True)
class JoinStep:
    """Records with what is found for them in tables, one after the other, as a program makes them of it."""

    takes: int
    gives: int
    driver: str
    lookups: tuple[Lookup, ...]
    first: bool
    """Does only the first match count?"""
    on_miss: str
    program: TypedProgram
    context: Context
    columns: tuple[str, ...]
    pairs: int | None
    """Where its records are counted, if there must not be too many."""
    filters: tuple[tuple[int, int], ...]
    settle: Settle | None


@dataclass(frozen=True)
class TotalsStep:
    """Records become parts of the totals of their groups."""

    takes: int
    number: int
    program: TypedProgram
    context: Context
    pieces: int
    """Groups are dealt out to so many tasks, those of all aggregates to the same ones."""
    came: int | None
    """Where all records that come are counted, if they are."""
    filters: tuple[tuple[int, int], ...]
    settle: Settle | None


Step = WriteStep | TransformStep | RouteStep | MergeStep | JoinStep | TotalsStep


@dataclass(frozen=True)
class FragmentTask:
    """All that happens to the records of a source: a list, as chains may be longer than what can be pickled nested.

    Each step takes a stream, by its number, and gives others. Stream 0 has the records of the reader.
    """

    given: int
    """Where the records of the reader are counted."""
    settle: Settle | None
    steps: tuple[Step, ...]
    counts: int
    """How many counts there are."""
    together: int = 32_768
    """So many records at least are computed together: some readers give small batches."""
    members: tuple[Members, ...] = ()
    """What the reader shall give as finished members."""
    unread: frozenset[str] = frozenset()
    """Columns of the source that only these members have."""
    parts: str | None = None
    """The folder in which workers write the parts of outputs themselves; None: Spark gets the lines."""
    rank: int = 0
    """Which of the sources of its fragment this is. Spark may read several in one task, one after the other: the number
    of the task does not tell them apart."""
