"""What a pass over the data is to build, and what all passes of a run have in common: values that nobody changes.

A stage of a run says what it wants as a `Pass`, and a `Builder` builds it over a `RunContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from clinker_spark.cxl.system import Context
from clinker_spark.plan.graph import Plan
from clinker_spark.spark.rejects.dirty_groups import DirtyGroups
from clinker_spark.spark.scan.request import ReadRequest, Scan, SourceFile
from clinker_spark.spark.scan.row_filter import RowFilter

Points = tuple[tuple[str | None, ...], ...]
"""Keys, as texts, that cut the records of a source into ranges of about the same size."""


@dataclass(frozen=True)
class FileFacts:
    """What somebody had to look for in the files of sources."""

    values: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)
    """Variables of source files: name -> document -> value."""
    unsorted: Mapping[str, Points] = field(default_factory=dict)
    """The sources with files that are not in their declared order, and where to cut their records to sort them."""


@dataclass(frozen=True)
class RunContext:
    """What all passes of a run have in common."""

    spark: SparkSession
    plan: Plan
    contexts: Mapping[str, Context]
    """What programs of each node read besides columns, by node."""
    files: Mapping[str, tuple[SourceFile, ...]]
    """The files of each source."""
    found: FileFacts = FileFacts()
    """What was found in files before the first pass."""
    small: bool = False
    """Are all inputs so small that one task has them?"""
    folder: str | None = None
    """Readers write here how far they are, and keep bad records."""
    parts: Callable[[str], str] | None = None
    """The folder for the parts of an output, where somebody makes files of them."""
    local: bool = True
    """Do readers run on this machine? Elsewhere they cannot write there: records are counted after the reader then."""
    measured: dict[str, Any] = field(default_factory=dict)
    """What was found out about the data by one pass, for the next ones."""
    opened: Mapping[str, Callable[[ReadRequest], Scan]] = field(default_factory=dict)
    """By source: who opens it, where that is not the reader of its format."""
    forced_join: str | None = None
    """Join all inputs in this way, whatever the plan says: for tests and benchmarks."""


@dataclass(frozen=True)
class Show:
    """The records of nodes, for whoever wants to look at them."""

    keys: bool = False
    """Do records carry correlation columns, even if nothing else asks for them?"""
    values_of: str | None = None
    """A transform whose shared variables stay in its records."""


@dataclass(frozen=True)
class Write:
    """Outputs are written, and failures only counted: nobody looks at the columns of nodes or at errors."""

    sets_aside: bool = False
    """Do readers that can do so keep bad records in files of their own, instead of passing them on?"""
    materialized: tuple[str, ...] = ()
    """The nodes whose records are kept when they are read for the first time."""
    strict: bool = False
    """Does the first record that fails end the job? Streams with `fail_fast`: nothing of that batch is written."""
    audited: bool = True
    """Must the numbers of records add up? In a stream, which keeps no such books, only failures are counted: each count
    ends a block of Spark's generated code."""


@dataclass(frozen=True)
class Find:
    """Rejects are found: records that fail, and what is withheld because of them."""

    suspects: frozenset[str] | None = None
    """The places of the plan at which records are known to be diverted; None is all."""
    texts: bool = True
    """Do records carry what stood in their files, and errors what went wrong?"""
    all_held: bool = False
    """Is every record that reaches an output withheld? Then only such records are read, or somebody else decides."""
    repeats: bool = False
    """Does the pass run more than once, each time without what was retracted meanwhile?"""


@dataclass(frozen=True)
class Numbers:
    """The numbers of the groups of an aggregate, by the texts of their keys."""

    count: int
    known: Mapping[str, int] | DataFrame
    """While they are few, or the columns `id` and `number`."""


@dataclass(frozen=True)
class Retraction:
    """What a pass does without, because of failures that earlier ones found."""

    removed: Mapping[str, DataFrame | Sequence[tuple[int, int]]] = field(default_factory=dict)
    """By source: the records (file, row) that are filtered out, as if they had never been read."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By source: how many records are left out, by a filter or by the reader."""
    withheld: DirtyGroups | None = None
    """The groups that are withheld at outputs."""
    left_out: DirtyGroups | None = None
    """Those that relaxed totals are made without, each within its source."""
    broadcastable: bool = True
    """Are they all few enough to be held by every task?"""
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    """By relaxed aggregate: the numbers that its groups had at first."""


@dataclass(frozen=True)
class Pass:
    """What one pass is for, and which records it reads."""

    task: Show | Write | Find = Show()
    limit: int | None = None
    """At most so many records of each source."""
    row_filters: Mapping[str, RowFilter] = field(default_factory=dict)
    """By source: the records that readers give, or leave out. Their counts are those of all records, and stay so."""
    retraction: Retraction = Retraction()

    @property
    def writes(self) -> bool:
        return isinstance(self.task, Write)

    @property
    def finds(self) -> bool:
        return isinstance(self.task, Find)

    @property
    def texts(self) -> bool:
        """Do records that fail say what they were, and why?"""
        return self.task.texts if isinstance(self.task, Find) else not self.writes

    @property
    def strict(self) -> bool:
        return isinstance(self.task, Write) and self.task.strict

    @property
    def counted(self) -> frozenset[str] | None:
        """What is counted of records; None is everything."""
        if not isinstance(self.task, Write) or self.task.audited:
            return None
        return frozenset() if self.task.strict else frozenset({"failed"})

    @property
    def sets_aside(self) -> bool:
        return isinstance(self.task, Write) and self.task.sets_aside

    @property
    def all_held(self) -> bool:
        return isinstance(self.task, Find) and self.task.all_held

    @property
    def repeats(self) -> bool:
        return isinstance(self.task, Find) and self.task.repeats

    @property
    def values_of(self) -> str | None:
        return self.task.values_of if isinstance(self.task, Show) else None

    @property
    def keys(self) -> bool:
        """Does it need correlation columns, whatever the plan shows?"""
        shown = isinstance(self.task, Show) and self.task.keys
        return shown or self.retraction.withheld is not None or self.retraction.left_out is not None

    def suspects(self, place: str) -> bool:
        """Is it looked for failures at a place of the plan?"""
        return isinstance(self.task, Find) and (self.task.suspects is None or place in self.task.suspects)

    def materializes(self, node: str) -> bool:
        return isinstance(self.task, Write) and node in self.task.materialized
