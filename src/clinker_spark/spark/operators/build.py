"""The plan as DataFrames: each node is built once for each way it is read, and failures are set aside on the way.

Two passes build the same nodes. The first writes outputs: failed records are counted and dropped. The second runs only
when records failed: it carries where each record was read and what stood there, and keeps nothing but the failures.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from clinker_spark.cxl.hidden import ERROR_COLUMN, variable_column
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.system import Context
from clinker_spark.plan.columns import DOCUMENT_COLUMN, STAGE_COLUMN
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.ledger import End, Ledger, count
from clinker_spark.plan.nodes.base import PlanNode, StreamRef
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.operators.source_columns import read_columns
from clinker_spark.spark.operators.source_order import Points
from clinker_spark.spark.operators.stream import DOCUMENT_BITS, Stream, failed
from clinker_spark.spark.operators.table import operator_of
from clinker_spark.spark.plan_cuts import Shared, counted_behind, cut
from clinker_spark.spark.rejects.dirty_groups import DirtyGroups
from clinker_spark.spark.scan.request import SourceFile
from clinker_spark.spark.scan.row_filter import Chosen

Ports = dict[str | None, Stream]
CHAIN = 16
"""After so many transforms in a row a new plan begins."""
MARKS = 8
"""After so many nodes at which records fail, a pass for letters begins a new plan."""
_PATIENCE = 2.0
"""So many seconds after that of its output, all counts of a job are there."""
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class SetAside:
    """The failures that are set aside at one place of the plan."""

    frame: DataFrame
    node: PlanNode
    stream: Stream
    name: str
    """What they are counted under, in passes that count."""


@dataclass
class Builder:
    """Builds the streams of one pass. `letters` is the pass that keeps the failures."""

    spark: SparkSession
    plan: Plan
    contexts: Mapping[str, Context]
    """What programs of each node read besides columns, by node."""
    files: Mapping[str, tuple[SourceFile, ...]]
    """The files of each source."""
    letters: bool = False
    suspects: frozenset[str] | None = None
    """When letters are collected: the nodes at which records are known to be set aside; None is all."""
    limit: int | None = None
    """At most so many records of each source."""
    writes: bool = False
    """Only outputs are written, and failures only counted: nobody looks at the columns of nodes or at errors."""
    texts: bool = True
    """When letters are collected: do records carry what stood in their files, and errors what went wrong?"""
    chosen: Mapping[str, Chosen] = field(default_factory=dict)
    """By source: the records that are read, or that are not."""
    all_held: bool = False
    """Every record that reaches an output is held back: only such records are read."""
    sets_aside: bool = False
    """Readers that can do so keep bad records in the folder `progress`, instead of passing them on."""
    settled: set[str] = field(default_factory=set)
    """The nodes at which failures, if there are any, are set aside."""
    progress: str | None = None
    """A folder into which readers write how far they are."""
    keeps_progress: bool = True
    """Can readers write there? On other machines they cannot: records are counted after the reader then."""
    meter: str | None = None
    """A folder into which readers write how many bytes they have read, in every pass."""
    values_of: str | None = None
    """A transform whose shared variables stay in its records, to be looked at."""
    file_values: Mapping[str, Mapping[int, Any]] = field(default_factory=dict)
    """Variables of source files: name -> document -> value."""
    measured: dict[str, Any] = field(default_factory=dict)
    """What was found out about the data for the sake of joins; the passes of a run share it."""
    forced_join: str | None = None
    """Join all inputs in this way, whatever the plan says: for tests and benchmarks."""
    unsorted: Mapping[str, Points] = field(default_factory=dict)
    """The sources with files that are not in their declared order, and where to cut their records to sort them."""
    removed: Mapping[str, DataFrame | Sequence[tuple[int, int]]] = field(default_factory=dict)
    """By source: the records (file, row) that were retracted, as if they had never been read."""
    stamp: bool = False
    """Carry correlation columns, even if nothing else asks for them."""
    dirty: DirtyGroups | None = None
    """The groups that are withheld at outputs."""
    left_out: DirtyGroups | None = None
    """Those that relaxed totals are made without, each within its source."""
    without: list[tuple[DataFrame, PlanNode]] = field(default_factory=list)
    """When letters are collected: what was left out of totals for that."""
    few: bool = True
    """Are both few enough to be held by every task?"""
    small: bool = False
    """Are all inputs so small that one task has them?"""
    indexes: dict[str, DataFrame] = field(default_factory=dict)
    """By relaxed aggregate: the numbers that its groups had at first."""
    contributions: dict[str, DataFrame] = field(default_factory=dict)
    """By aggregate: the records that its groups were made of."""
    held: list[tuple[DataFrame, PlanNode, Stream]] = field(default_factory=list)
    """When letters are collected: what is held back at outputs."""
    counts: dict[str, Observation] = field(default_factory=dict)
    """By node: how many of its records failed, known after an action."""
    observed: dict[str, tuple[DataFrame, dict[str, Any]]] = field(default_factory=dict)
    """The same as a DataFrame and what is counted of it: to count again."""
    recounted: dict[str, dict[str, int]] = field(default_factory=dict)
    """What was counted again, in jobs of their own: this is true."""
    facts: dict[str, int] = field(default_factory=dict)
    """Numbers of the ledger that no job counts: what readers say, and what was taken back."""
    ledger: Ledger = field(default_factory=Ledger)
    """How many records each stream has, and what these numbers must fulfil."""
    failures: list[SetAside] = field(default_factory=list)
    keeps: tuple[str, ...] = ()
    """The nodes whose records are kept when they are read for the first time."""
    stored: list[DataFrame] = field(default_factory=list)
    """What is kept while it is read twice; whoever owns the builder lets it go."""
    kept: dict[str, list[DataFrame]] = field(default_factory=dict)
    """By node: what is kept of it, until its last reader is done."""
    watching: set[str] = field(default_factory=set)
    """The sources whose groups are watched by the jobs that are built now."""
    watched: set[str] = field(default_factory=set)
    """Those of which a job has seen all groups."""
    repeats: bool = False
    """Does the pass run more than once, each time without what was retracted meanwhile?"""
    shared_rows: list[Shared] = field(default_factory=list)
    scans: dict[str, Any] = field(default_factory=dict)
    _built: dict[str, Ports] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)
    _known: dict[str, dict[str, int]] = field(default_factory=dict)
    _source_counts: dict[str, int] = field(default_factory=dict)
    _chains: dict[str, int] = field(default_factory=dict)
    """By node: how many stand in a row up to it that records only go through."""
    _heard: dict[str, float] = field(default_factory=dict)
    """By node: when counts of the last job came in that it had a part in."""

    @property
    def traces(self) -> bool:
        """Must failures be traced back through aggregates?"""
        return self.letters and self.plan.facts.correlated

    @property
    def stamps(self) -> bool:
        """Do records carry their correlation columns?"""
        return self.stamp or self.traces or self.dirty is not None or self.left_out is not None or self.plan.shows_keys

    def choose(self, chosen: Mapping[str, Chosen]) -> None:
        """Read some records only, or all but some. The readers' counts are those of all records, and stay so."""
        self.chosen = chosen
        if chosen:
            self.progress = None

    def stream(self, ref: StreamRef) -> Stream:
        """The records of a node, or of one port of it."""
        waiting = [] if ref.node in self._built else [ref.node]
        while waiting:  # not by recursion: a graph may be longer than Python's stack is deep
            name = waiting[-1]
            missing = [r.node for r in self.plan[name].inputs if r.node not in self._built]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if name in self._built:
                continue
            built = self._build(self.plan[name])
            if name in self.keeps:
                built = {port: self._kept(name, stream) for port, stream in built.items()}
            self._built[name] = built
        return self._built[ref.node][ref.port]

    def shared(self, frame: DataFrame) -> DataFrame:
        """Rows that have several readers: of small inputs they are planned and computed once."""
        if not (self.small and (self.writes or self.repeats)):
            return frame
        self.shared_rows.append(Shared(frame.coalesce(1)))
        return self.shared_rows[-1].frame

    def _kept(self, name: str, stream: Stream) -> Stream:
        frame = stream.frame.persist(StorageLevel.MEMORY_AND_DISK)
        self.kept.setdefault(name, []).append(frame)
        return stream.over(frame)

    def release(self, written: Collection[str]) -> None:
        """Let go of what is kept for outputs that are all written."""
        for name in list(self.kept):
            if all(o.name in written for o in self.plan.outputs if self.plan[name] in self.plan.upstream(o.name)):
                for frame in self.kept.pop(name):
                    frame.unpersist()

    def let_go(self) -> None:
        """Of what was kept."""
        for frame in (*self.stored, *(frame for frames in self.kept.values() for frame in frames)):
            frame.unpersist()
        for rows in self.shared_rows:
            rows.unpersist()
        self.stored.clear()
        self.kept.clear()
        self.shared_rows.clear()

    def inputs(self, node: PlanNode) -> list[Stream]:
        return [self.stream(ref) for ref in node.inputs]

    def _build(self, node: PlanNode) -> Ports:
        built = operator_of(type(node))(self, node)
        made: Ports = {None: self._in_chain(node, built)} if isinstance(built, Stream) else built
        readers = self.plan.readers(node.name)
        shared = len(readers) > 1 and len(made) == 1 and not (self.repeats and not node.inputs)
        if shared and self.letters:  # failures and what goes on are both made of it
            made = {port: stream.over(self.shared(stream.frame)) for port, stream in made.items()}
        if not (len(made) == 1 and len(readers) == 1 and readers[0].narrow):
            made = {port: self.settle(node, stream) for port, stream in made.items()}
        if shared and not self.letters:  # what is counted is counted once
            made = {port: stream.over(self.shared(stream.frame)) for port, stream in made.items()}
        entry = self.ledger.entry(node.name)
        for ref in node.inputs:
            stream = self.stream(ref)
            entry.took[str(ref)] = End(stream.flow, stream.carried)
        ports = self.plan.read_ports(node.name) if len(made) > 1 else made
        entry.passed = {port: End(made[port].flow, made[port].carried) for port in made if port in ports}
        return made

    def _in_chain(self, node: PlanNode, stream: Stream) -> Stream:
        """A long row of nodes that records only go through begins a new plan now and then: Spark looks at a whole plan
        again for each step that is added to it, so a thousand of them would cost a thousand times a thousand."""
        if not node.chains:
            return stream
        length = self._chains[node.name] = 1 + self._chains.get(node.inputs[0].node, 0)
        return stream.over(cut(stream.frame)) if length % CHAIN == 0 else stream

    def job_done(self) -> None:
        """Sources need not be watched twice: what the next job reads of them is built without that."""
        if self.watching:
            self.watched |= self.watching
            self.watching.clear()
            self._built.clear()
            self._named.clear()

    def mark(self, node: PlanNode, stream: Stream) -> Stream:
        """Note at which node records failed that had not failed before."""
        if not stream.fallible:
            return stream
        if node.name not in self.plan.facts.fallible:
            assert any(self.stream(ref).fallible for ref in node.inputs), f"records fail at '{node.name}', which cannot"
            return stream
        stream = replace(stream, carried=tuple(dict.fromkeys((*stream.carried, node.name))))
        if not self.letters:
            return stream
        here = F.when(failed(), F.lit(self.plan.places[node.name]))
        if STAGE_COLUMN in stream.frame.columns:
            here = F.coalesce(F.col(quote(STAGE_COLUMN)), here)
        marked = stream.over(stream.frame.withColumn(STAGE_COLUMN, here))
        # Each mark looks at the errors of all nodes before it: put together by Spark, they would double with each one.
        return marked.over(cut(marked.frame)) if len(stream.carried) % MARKS == 0 else marked

    def settle(self, node: PlanNode, stream: Stream, place: str | None = None) -> Stream:
        """Set the failed records aside: what goes on has none. `place` is for nodes that do so more than once."""
        self.settled.add(node.name)
        if not stream.fallible:
            return stream
        frame = stream.frame
        name = node.name if place is None else f"{node.name}.{place}"
        rows, gone = count(f"{name}: rows"), count(f"{name}: failed")
        if self.letters:
            if self.suspects is None or name in self.suspects:
                self.failures.append(SetAside(frame.where(failed()), node, stream, name))
        else:
            frame = self.count(name, frame, rows=F.count(F.lit(1)), failed=F.count(quote(ERROR_COLUMN)))
            where = "" if place is None else f" ({place})"
            what = f"takes {{left}} records, and {{right}} are there where failures are set aside{where}"
            self.ledger.law(node.name, what, stream.flow, rows)
            self.ledger.entry(node.name).failed[name] = gone
        settled = replace(stream, flow=rows - gone, carried=(), pushes=False)
        return settled.over(frame.where(~failed())).without(ERROR_COLUMN, STAGE_COLUMN)

    def absorb(self, node: PlanNode, stream: Stream, place: str) -> Stream:
        """An input whose records do not leave the node as they came: they end here, so it is known how many."""
        if not self.writes or self.ledger.is_counted(stream.flow):
            return stream
        name = f"{node.name}.takes {place}"
        rows = count(f"{name}: rows")
        self.ledger.law(node.name, f"takes {{left}} records of {place}, and {{right}} were counted", stream.flow, rows)
        frame = self.count(name, stream.frame, rows=F.count(F.lit(1)))
        return replace(stream.over(frame), flow=rows, pushes=False)

    def source_count(self, node: SourcePlan) -> int:
        """The exact number of records of a source: a pass of its own, only for programs that read it."""
        if node.name not in self._source_counts:
            files = self.files[node.name]
            frame = read_columns(self.spark, self.plan, node, files, frozenset(), limit=self.limit)
            self._source_counts[node.name] = frame.count()
        return self._source_counts[node.name]

    def with_file_values(self, node: PlanNode, frame: DataFrame) -> DataFrame:
        """The records with the variables of their files that the node's programs read."""
        for namespace, path in dict.fromkeys(node.system_members()):
            name = variable_column(namespace, *path)
            known = self.file_values.get(path[-1]) if namespace == "source" and path else None
            if known is None or name in frame.columns:
                continue
            default = F.lit(self.plan.facts.variable_defaults["source", path[-1]])
            if len(path) == 2:  # that of the named source's last file, whatever the record is
                source = self.plan.source(self.plan.facts.named_sources[node.name][path[0]])
                own = [document for document in known if document >> DOCUMENT_BITS == source.index]
                value = F.lit(known[max(own)]) if own else default
            elif known:
                document = F.col(quote(DOCUMENT_COLUMN))
                pairs = [(F.lit(key).cast("long"), F.lit(value)) for key, value in known.items()]
                values = F.create_map(*[column for pair in pairs for column in pair])
                value = F.when(F.map_contains_key(values, document), F.try_element_at(values, document))
                value = value.otherwise(default)
            else:
                value = default
            frame = frame.withColumn(name, value)
        return frame

    def counted(self, name: str, patience: float | None = None) -> dict[str, int]:
        """What was counted at a node. Nothing, when no job came there: Spark saw that no record can get there and left
        it out, or what follows belongs to an output that is not written yet.

        The counts of a job come in together, some time after its result: those of the output are waited for first
        (`patience`), and long enough, and the others then hardly at all.
        """
        if name in self.recounted:
            return self.recounted[name]
        if name not in self._known and name in self.counts:
            if patience is None:
                heard = self._heard.get(name.split(".")[0])
                patience = 0.0 if heard is None else heard + _PATIENCE - time.monotonic()
            # Nothing follows an output that could be cut off behind it.
            last = name in self.plan.by_name and not self.plan.readers(name)
            found = _observed(self.counts[name], patience, in_job=last)
            if not found:
                return found
            self._known[name] = found
        return self._known.get(name, {})

    def heard(self, output: PlanNode) -> None:
        """The counts of the job of an output come in now: its own is there."""
        for node in (output, *self.plan.upstream(output.name)):
            self._heard[node.name] = time.monotonic()

    def recount(self, name: str) -> None:
        """Count once more, in a job of its own: a task that ran twice may have been counted twice."""
        frame, metrics = self.observed[name]
        row = frame.agg(*[column.alias(key) for key, column in metrics.items()]).first()
        assert row is not None
        self.recounted[name] = row.asDict()

    def count(self, name: str, frame: DataFrame, **metrics: Any) -> DataFrame:
        """Count while the records pass by. A node that is read twice is counted by whoever comes first.

        `name` is that of the node or, for what is counted inside of it, goes on after a dot, which no name of a node
        has: two counts of a pass with one name would be one count less."""
        assert not self.writes or name not in self._named, name
        self._named.add(name)
        observation = self.counts[name] = Observation(f"node:{name}:{next(_NUMBERS)}")
        self.observed[name] = (frame, metrics)
        self.recounted.pop(name, None)
        self._known.pop(name, None)
        return frame.observe(observation, *[column.alias(key) for key, column in metrics.items()])


def _observed(observation: Observation, patience: float, *, in_job: bool) -> dict[str, int]:
    java = getattr(observation, "_jo", None)
    if java is None:  # Spark Connect brings the counts with the result
        return dict(observation.get)
    # `get` would wait for ever for counts that no job delivers.
    until = time.monotonic() + patience
    while not java.future().isCompleted():
        behind = None if in_job else counted_behind(observation._name or "")
        if behind is not None:
            return behind
        if time.monotonic() > until:
            return {}
        time.sleep(0.01)
    # A node that Spark left out of its plan gives a row without a schema, which `get` does not expect.
    row = java.getRow()
    return {} if row is None or row.schema() is None else dict(observation.get)
