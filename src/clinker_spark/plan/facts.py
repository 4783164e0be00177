"""What is known about a plan before it runs.

Every fact has one owner: the pass that its docstring names (`plan.passes`), which asks the nodes for their traits.
Explain, the runtime, previews and replays read facts; none of them finds one out by a rule of its own.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.config.model.order import SortField
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.types import Type
from clinker_spark.plan.columns import CK_AGGREGATE_PREFIX
from clinker_spark.plan.memory import Holder
from clinker_spark.plan.stages import Stage

FILE_METADATA, EXEC_SKETCH = "file metadata", "exec sketch"

Sorting = tuple[SortField, ...]
"""By which columns records are sorted, file by file."""


@dataclass(frozen=True)
class Required:
    """What must leave a node for the sake of those that read it. Nobody pays for what nobody reads."""

    columns: frozenset[str] = frozenset()
    arrival: bool = False
    """A column that orders the records."""
    document: bool = False
    """The file that a record belongs to."""
    event: bool = False
    """The time of a record."""
    members: frozenset[str] = frozenset()
    """Members of `$source`."""

    def __or__(self, other: Required) -> Required:
        return Required(
            self.columns | other.columns,
            self.arrival or other.arrival,
            self.document or other.document,
            self.event or other.event,
            self.members | other.members,
        )


@dataclass(frozen=True)
class Keys:
    """The correlation columns of a node's records."""

    columns: Mapping[str, Type] = field(default_factory=dict)
    """All of them, with their types."""
    sources: tuple[str, ...] = ()
    """The sources with a key whose records are in these."""
    single: bool = True
    """Was each record read from one source? Those of joins and aggregates were not."""
    order: tuple[str, ...] = ()
    """All columns that an output can write, the hidden ones at their places."""
    rewritten: frozenset[str] = frozenset()
    """The columns that are not what they were at the source, as far as it is known."""

    @property
    def own(self) -> tuple[str, ...]:
        """The columns that sources stamped."""
        return tuple(name for name in self.columns if not name.startswith(CK_AGGREGATE_PREFIX))


@dataclass(frozen=True)
class Estimate:
    """About how many records, and bytes of text, a node has."""

    rows: int
    bytes: int
    provenance: str

    def __str__(self) -> str:
        return f"{'' if self.provenance == EXEC_SKETCH else '≈'}{self.rows:,} rows [{self.provenance}]"


@dataclass(frozen=True)
class Blame:
    """Whose groups a failure at a node concerns."""

    traced: bool
    """Is it the source that the record was read from, where one is known?"""
    others: tuple[int, ...] = ()
    """Which sources are it, else: all that the record was made of."""


@dataclass(frozen=True)
class Sides:
    """How the records of a source get to outputs. A query with several inputs is both for each of them."""

    probe: bool
    """On their own."""
    build: bool
    """As what others are looked up in."""


@dataclass(frozen=True)
class Component:
    """Nodes that records flow between. Where records become others, as in an aggregate or a query, or are only looked
    up by a combine, one component ends and another one begins."""

    nodes: tuple[str, ...]
    sources: tuple[str, ...]
    outputs: tuple[str, ...]
    conserves: bool
    """Does each record of its sources end in one place: an output, the dead letters, or a counted drop?"""


@dataclass(frozen=True)
class CellRun:
    """Neighbouring cells of an output: columns of a source, by name, joined by the output's delimiter."""

    delimiter: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Cells:
    """A run of cells in an output: the position of its first column, and which of the reader's runs it is."""

    at: int
    number: int
    run: CellRun


@dataclass(frozen=True)
class PassThrough:
    """What the reader of a source sends as finished cells, because outputs write it unchanged."""

    runs: tuple[CellRun, ...]
    columns: frozenset[str]
    """The columns of the source that are needed as values besides."""


@dataclass(frozen=True)
class BufferEdge:
    """Records that wait between two nodes, as a whole."""

    producer: str
    port: str | None
    consumer: str
    slot: int
    """The number of the place where they wait."""
    how: str
    """What is done instead of holding them in memory: `shuffle`, `broadcast` (or one of them, or none, where
    that depends on a size which is not known) and `kept` by Spark; `mapped`, `parts` and
    `files` where workers look up, add up and keep groups (`passes.buffers`)."""


@dataclass(frozen=True)
class Predicted:
    """Bytes that a node is expected to hold, by the sizes of files; 0 where no size is known."""

    peak: int = 0
    """What goes through it."""
    freed: int = 0
    """What it gives back when it is done."""
    subtree_reclaim: int = 0
    """The most that it, or a node of the chain that it begins, gives back."""


@dataclass(frozen=True)
class OrderFacts:
    """How records lie, and where they are moved."""

    exchanges: frozenset[str] = frozenset()
    """The nodes that send records from task to task. `passes.exchanges`"""
    in_order: frozenset[str] = frozenset()
    """The nodes whose records lie in their order, partition by partition, row by row. Those of all others are ordered
    only by a column, and must be sorted where order counts. `passes.order`"""
    sorts: frozenset[str] = frozenset()
    """The nodes that sort what they take: outputs whose records do not lie in the order that they ask for.
    `passes.order`"""
    sorting: Mapping[str, Sorting] = field(default_factory=dict)
    """By which columns the records of each node are known to be sorted. `passes.sorting`"""
    materialized: tuple[str, ...] = ()
    """The nodes whose records are kept because several outputs read them. `passes.materialized`"""


@dataclass(frozen=True)
class Bound:
    """What the records of a source that anybody needs have in common: a column compared with a value."""

    column: str
    op: str
    value: int | str | dt.datetime

    def __str__(self) -> str:
        shown = self.value.isoformat() if isinstance(self.value, dt.datetime) else repr(self.value)
        return f"{self.column} {self.op} {shown}"


@dataclass(frozen=True)
class ColumnFacts:
    """Which columns nodes hand on."""

    required: Mapping[str, Required] = field(default_factory=dict)
    """What must leave each node. `passes.required_columns`"""
    pass_through: Mapping[str, PassThrough] = field(default_factory=dict)
    """By source: the cells that its reader finishes, where it does. `passes.pass_through`"""
    cells: Mapping[str, tuple[Cells, ...]] = field(default_factory=dict)
    """By output: the cells that it takes as its reader finished them. `passes.pass_through`"""
    bounds: Mapping[str, tuple[Bound, ...]] = field(default_factory=dict)
    """By source: what its reader may leave out, because the first thing that happens to all others is that they are
    filtered away. `passes.bounds`"""


@dataclass(frozen=True)
class FileFacts:
    """Which files records belong to."""

    documents: frozenset[str] = frozenset()
    """The nodes whose records may belong to several files. `passes.documents`"""
    mixes_files: Mapping[str, str] = field(default_factory=dict)
    """By node whose records are of no file in particular: the nearest one before it (or itself) that made them of
    several files. `passes.documents`"""


@dataclass(frozen=True)
class CorrelationFacts:
    """What belongs together when a record fails."""

    keys: Mapping[str, Keys] = field(default_factory=dict)
    """The correlation columns of each node. `passes.correlation`"""
    correlated: bool = False
    """Does a failure concern other records: has any source a correlation key, or sets aside whole files?
    `passes.correlation`"""
    relaxed: tuple[str, ...] = ()
    """The aggregates whose groups cut across correlation groups: they lose only what failed. `passes.correlation`"""
    recomputed: tuple[str, ...] = ()
    """The nodes with windows whose partitions can hold records of several groups. `passes.correlation`"""
    carried_keys: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """By source: the columns of its key that a record can have when it fails. A combine may pass only some of them on:
    then all groups are concerned that have these values. `passes.correlation`"""
    strata: Mapping[str, int] = field(default_factory=dict)
    """How many relaxed aggregates stand before each node, on the way with the most of them: failures are judged in this
    order. `passes.judgement`"""
    made_strata: Mapping[str, int] = field(default_factory=dict)
    """The same for the records that the node makes: those of a relaxed aggregate are judged after what they were made
    of. `passes.judgement`"""
    blamed: tuple[Blame, ...] = ()
    """By position of a node: whose groups a failure there concerns. `passes.judgement`"""
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By source: the sources, itself included, whose records with the same key are one group when their number counts.
    `passes.judgement`"""
    by_rows: bool = False
    """Are groups withheld without a look at the others? `passes.row_groups`"""
    writes_every_record: bool = False
    """Is there one output, with one line for each record that does not fail, in source order? `passes.row_groups`"""


@dataclass(frozen=True)
class ResourceFacts:
    """What nodes hold while they run, and in which order jobs start because of that."""

    holders: Mapping[str, Holder] = field(default_factory=dict)
    """What each node does with memory. `passes.buffers`"""
    edges: tuple[BufferEdge, ...] = ()
    """Where records wait between two nodes, by their slots. `passes.buffers`"""
    buffers: Mapping[str, str] = field(default_factory=dict)
    """`streaming` where the records of a node go on as they come, `materialized` where all of them wait, in it or after
    it. `passes.buffers`"""
    predicted: Mapping[str, Predicted] = field(default_factory=dict)
    """How much each node will hold. `passes.predictions`"""
    input_bytes: int | None = None
    """How much there is to read, in all; None where some file is not known before the run. `passes.estimates`"""
    launch_order: tuple[str, ...] = ()
    """The outputs in the order in which their jobs start. `passes.scheduling`"""
    alike: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By output: those after it, in that order, that the same job can write. `passes.scheduling`"""
    ahead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By node where chains meet: the inputs that are made before those which they join. `passes.scheduling`"""


@dataclass(frozen=True)
class Fragment:
    """Nodes whose records stay in the worker that reads them, until they are lines of text or parts of totals."""

    sources: tuple[str, ...]
    """In the order of their records wherever these come together."""
    nodes: tuple[str, ...]
    """The sources and all that follows them."""
    outputs: tuple[str, ...]
    totals: tuple[str, ...] = ()
    """The aggregates at its ends."""


@dataclass(frozen=True)
class FlowFacts:
    """Where records go."""

    components: tuple[Component, ...] = ()
    """Where the numbers of records add up. `passes.balance`"""
    sides: Mapping[str, Sides] = field(default_factory=dict)
    """By source: how its records get to outputs. `passes.sides`"""
    fragments: Mapping[str, Fragment] = field(default_factory=dict)
    """By output that workers write: with which nodes before it. `passes.fragments`"""
    totals: Mapping[str, Fragment] = field(default_factory=dict)
    """By aggregate whose groups workers make: with which nodes before it. `passes.fragments`"""
    unfit: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By source whose records go through Spark: the first node that has no vector form, and why. `passes.fragments`"""
    in_workers: frozenset[str] = frozenset()
    """The nodes whose records stay in workers in a run on this machine. Joins and totals of inputs that are known to be
    small are Spark's: one task has all of them. `passes.fragments`"""
    in_order: frozenset[str] = frozenset()
    """The nodes whose records lie in their order in such a run: besides those of `order.in_order`, all in workers, and
    what follows the groups that they keep in files. `passes.fragments`"""
    sorts: frozenset[str] = frozenset()
    """The nodes that sort what they take in such a run. `passes.fragments`"""


@dataclass(frozen=True)
class VariableFacts:
    """Variables that nodes declare for others."""

    defaults: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    """By scope and name: what a declared variable is before it is written. `passes.variables`"""
    writers: tuple[str, ...] = ()
    """The nodes whose variables must be known before their readers run: init ones first, then as in the plan.
    `passes.variables`"""
    named_sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By node: the sources that `$source.<name>.x` means in its programs, by name. `passes.variables`"""


@dataclass(frozen=True)
class Facts:
    """The result of all passes. Names are those of nodes."""

    fallible: frozenset[str] = frozenset()
    """The nodes at which a record can fail. `passes.fallibility`"""
    python: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The nodes whose records Python touches, in Arrow batches, and why. `passes.python_rows`"""
    estimates: Mapping[str, Estimate | None] = field(default_factory=dict)
    """At most how many records leave each node; None where nobody knows. `passes.estimates`"""
    flow: FlowFacts = FlowFacts()
    order: OrderFacts = OrderFacts()
    columns: ColumnFacts = ColumnFacts()
    files: FileFacts = FileFacts()
    correlation: CorrelationFacts = CorrelationFacts()
    variables: VariableFacts = VariableFacts()
    resources: ResourceFacts = ResourceFacts()
    warnings: tuple[Diagnostic, ...] = ()
    """Keys that have no effect in this graph. `passes.effects`"""
    stages: tuple[Stage, ...] = ()
    """What a run does, in order. `passes.stages`"""
