"""The plan as DataFrames: each node is built once for each way it is read, and failures are diverted on the way.

A pass that writes outputs counts failed records and drops them. One that finds rejects runs only when records failed:
it carries where each record was read and what stood there, and keeps nothing but the failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from clinker_spark.core.fast_paths import taken
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ERROR_COLUMN, variable_column
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.cxl.system import Context
from clinker_spark.plan.columns import DOCUMENT_COLUMN, STAGE_COLUMN
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.ledger import End, Ledger, count
from clinker_spark.plan.nodes.base import PlanNode, StreamRef
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.build.memo import Memo, Ports
from clinker_spark.spark.build.metrics import Metrics
from clinker_spark.spark.build.passes import Pass, RunContext
from clinker_spark.spark.build.source_columns import read_columns
from clinker_spark.spark.build.stream import DOCUMENT_BITS, FAILED, Stream, not_failed
from clinker_spark.spark.build.table import operator_of
from clinker_spark.spark.plan_cuts import cut
from clinker_spark.spark.rejects.collected import Rejects, Diverted
from clinker_spark.spark.scan.request import Scan

CHAIN = 16
"""After so many transforms in a row a new plan begins."""
MARKS = 8
"""After so many nodes at which records fail, a pass for letters begins a new plan."""


@dataclass(frozen=True, eq=False)
class Builder:
    """Builds the streams of one pass."""

    run: RunContext
    asked: Pass = field(default_factory=Pass)
    memo: Memo = field(default_factory=Memo)
    metrics: Metrics = field(init=False)
    rejects: Rejects = field(default_factory=Rejects)

    def __post_init__(self) -> None:
        metrics = Metrics(self.plan, once=self.writes, wanted=self.asked.counted)
        metrics.facts.update({f"{name}: left out": count for name, count in self.asked.retraction.counts.items()})
        object.__setattr__(self, "metrics", metrics)

    @property
    def spark(self) -> SparkSession:
        return self.run.spark

    @property
    def plan(self) -> Plan:
        return self.run.plan

    @property
    def writes(self) -> bool:
        return self.asked.writes

    @property
    def finds(self) -> bool:
        return self.asked.finds

    @property
    def ledger(self) -> Ledger:
        return self.metrics.ledger

    @property
    def scans(self) -> Mapping[str, Scan]:
        return self.memo.scans

    @property
    def progress(self) -> Path | None:
        """Where readers write how far they are; nowhere when they do not give all records."""
        return None if self.run.folder is None or self.asked.row_filters else Path(self.run.folder)

    @property
    def traces(self) -> bool:
        """Must failures be traced back through aggregates?"""
        return self.finds and self.plan.facts.correlation.correlated

    @property
    def stamps(self) -> bool:
        """Do records carry their correlation columns?"""
        return self.asked.keys or self.traces or self.plan.shows_keys

    @property
    def stays_in_workers(self) -> bool:
        """Can fragments do what this pass is about? One that leaves records out, looks for rejects or shows records is
        Spark's: then columns are needed that no fragment has."""
        asked, run = self.asked, self.run
        if not asked.writes or asked.limit is not None or asked.row_filters:
            return False
        gone = asked.retraction
        untouched = gone.withheld is None and gone.left_out is None and not gone.removed
        return untouched and not (self.stamps or run.opened or run.found.unsorted or any(run.found.values.values()))

    def context(self, node: PlanNode) -> Context:
        """What the programs of a node read besides columns."""
        return self.run.contexts[node.name]

    def stream(self, ref: StreamRef) -> Stream:
        """The records of a node, or of one port of it."""
        waiting = [] if ref.node in self.memo.built else [ref.node]
        while waiting:  # not by recursion: a graph may be longer than Python's stack is deep
            name = waiting[-1]
            missing = [r.node for r in self.plan[name].inputs if r.node not in self.memo.built]
            if missing and not self._from_workers(name):
                waiting += missing
                continue
            waiting.pop()
            if name in self.memo.built:
                continue
            built = self._build(self.plan[name])
            if self.asked.materializes(name):
                on_disk = self.plan.file.settings.memory.backpressure == "spill"
                built = {
                    port: stream.over(self.memo.store(name, stream.frame, on_disk=on_disk))
                    for port, stream in built.items()
                }
            self.memo.built[name] = built
        return self.memo.built[ref.node][ref.port]

    def _from_workers(self, name: str) -> bool:
        """May the records of a node come from workers, so that its inputs need not be built?"""
        return name in self.plan.facts.flow.totals and self.stays_in_workers and not self.run.small

    def shared(self, frame: DataFrame) -> DataFrame:
        """Rows that have several readers: of small inputs they are planned and computed once."""
        once = self.run.small and (self.writes or self.asked.repeats) and taken("shared_rows")
        return self.memo.share(frame) if once else frame

    def inputs(self, node: PlanNode) -> list[Stream]:
        return [self.stream(ref) for ref in node.inputs]

    def _build(self, node: PlanNode) -> Ports:
        built = operator_of(type(node))(self, node)
        made: Ports = {None: self._in_chain(node, built)} if isinstance(built, Stream) else built
        readers = self.plan.readers(node.name)
        shared = len(readers) > 1 and len(made) == 1 and not (self.asked.repeats and not node.inputs)
        if shared and self.finds:  # failures and what goes on are both made of it
            made = self._computed_once(made)
        if not (len(made) == 1 and len(readers) == 1 and readers[0].narrow):
            made = {port: self.divert(node, stream) for port, stream in made.items()}
        if shared and not self.finds:  # what is counted is counted once
            made = self._computed_once(made)
        self._enter(node, made)
        return made

    def _computed_once(self, made: Ports) -> Ports:
        return {port: stream.over(self.shared(stream.frame)) for port, stream in made.items()}

    def _enter(self, node: PlanNode, made: Ports) -> None:
        """Write into the ledger what a node took and passed on."""
        entry = self.ledger.entry(node.name)
        for ref in node.inputs if node.name not in self.memo.in_workers else ():
            stream = self.stream(ref)
            entry.took[str(ref)] = End(stream.flow, stream.carried)
        ports = self.plan.read_ports(node.name) if len(made) > 1 else made
        entry.passed = {port: End(made[port].flow, made[port].carried) for port in made if port in ports}

    def _in_chain(self, node: PlanNode, stream: Stream) -> Stream:
        """A long row of nodes that records only go through begins a new plan now and then: Spark looks at a whole plan
        again for each step that is added to it, so a thousand of them would cost a thousand times a thousand."""
        if not node.chains:
            return stream
        length = self.memo.chains[node.name] = 1 + self.memo.chains.get(node.inputs[0].node, 0)
        return stream.over(cut(stream.frame)) if length % CHAIN == 0 else stream

    def job_done(self) -> None:
        """Sources need not be watched twice: what the next job reads of them is built without that."""
        memo = self.memo
        if memo.watching:
            memo.watched.update(memo.watching)
            memo.watching.clear()
            memo.built.clear()
            self.metrics.built_anew()

    def mark(self, node: PlanNode, stream: Stream) -> Stream:
        """Note at which node records failed that had not failed before."""
        if not stream.fallible:
            return stream
        if node.name not in self.plan.facts.fallible:
            assert any(self.stream(ref).fallible for ref in node.inputs), f"records fail at '{node.name}', which cannot"
            return stream
        stream = replace(stream, carried=tuple(dict.fromkeys((*stream.carried, node.name))))
        if not self.finds:
            return stream
        here = f"CASE WHEN {FAILED} THEN {self.plan.places[node.name]} END"
        if STAGE_COLUMN in stream.frame.columns:
            here = f"coalesce({quote(STAGE_COLUMN)}, {here})"
        marked = stream.over(stream.frame.withColumn(STAGE_COLUMN, F.expr(here)))
        # Each mark looks at the errors of all nodes before it: put together by Spark, they would double with each one.
        return marked.over(cut(marked.frame)) if len(stream.carried) % MARKS == 0 else marked

    def divert(self, node: PlanNode, stream: Stream, place: str | None = None) -> Stream:
        """Divert the failed records: what goes on has none. `place` is for nodes that do so more than once."""
        self.rejects.diverting.add(node.name)
        if not stream.fallible:
            return stream
        frame = stream.frame
        name = node.name if place is None else f"{node.name}.{place}"
        rows, gone = count(f"{name}: rows"), count(f"{name}: failed")
        if self.finds:
            if self.asked.suspects(name):
                self.rejects.failures.append(Diverted(frame.where(FAILED), node, stream, name))
        else:
            frame = self.metrics.count(name, frame, rows=F.count(F.lit(1)), failed=F.count(quote(ERROR_COLUMN)))
            where = "" if place is None else f" ({place})"
            what = f"takes {{left}} records, and {{right}} are there where failures are set aside{where}"
            self.ledger.law(node.name, what, stream.flow, rows)
            self.ledger.entry(node.name).failed[name] = gone
        fine = replace(stream, flow=rows - gone, carried=(), pushes=False)
        return fine.over(frame.where(not_failed(self.asked.strict))).without(ERROR_COLUMN, STAGE_COLUMN)

    def absorb(self, node: PlanNode, stream: Stream, place: str) -> Stream:
        """An input whose records do not leave the node as they came: they end here, so it is known how many."""
        if not self.writes or self.ledger.is_counted(stream.flow):
            return stream
        name = f"{node.name}.takes {place}"
        rows = count(f"{name}: rows")
        self.ledger.law(node.name, f"takes {{left}} records of {place}, and {{right}} were counted", stream.flow, rows)
        frame = self.metrics.count(name, stream.frame, rows=F.count(F.lit(1)))
        return replace(stream.over(frame), flow=rows, pushes=False)

    def source_count(self, node: SourcePlan) -> int:
        """The exact number of records of a source: a pass of its own, only for programs that read it."""
        if node.name not in self.memo.source_counts:
            files = self.run.files[node.name]
            frame = read_columns(self.spark, self.plan, node, files, frozenset(), limit=self.asked.limit)
            self.memo.source_counts[node.name] = frame.count()
        return self.memo.source_counts[node.name]

    def _of_document(self, known: Mapping[int, Any], default: Column | None = None) -> Column:
        """The value of the file that a record belongs to."""
        otherwise = F.lit(None) if default is None else default
        if not known:
            return otherwise
        document = F.col(quote(DOCUMENT_COLUMN))
        pairs = [(F.lit(key).cast("long"), _literal(value)) for key, value in known.items()]
        values = F.create_map(*[column for pair in pairs for column in pair])
        return F.when(F.map_contains_key(values, document), F.try_element_at(values, document)).otherwise(otherwise)

    def with_file_values(self, node: PlanNode, frame: DataFrame) -> DataFrame:
        """The records with the variables of their files that the node's programs read."""
        for namespace, path in dict.fromkeys(node.system_members()):
            name = variable_column(namespace, *path)
            if namespace == "doc" and name not in frame.columns:
                value = self._of_document(self.run.found.values.get(".".join(path), {}))
                types = self.plan.envelope_types
                frame = frame.withColumn(name, value.cast(physical(types[".".join(path)])))
                continue
            known = self.run.found.values.get(path[-1]) if namespace == "source" and path else None
            if known is None or name in frame.columns:
                continue
            default = F.lit(self.plan.facts.variables.defaults["source", path[-1]])
            if len(path) == 2:  # that of the named source's last file, whatever the record is
                source = self.plan.source(self.plan.facts.variables.named_sources[node.name][path[0]])
                own = [document for document in known if document >> DOCUMENT_BITS == source.index]
                value = F.lit(known[max(own)]) if own else default
            else:
                value = self._of_document(known, default)
            frame = frame.withColumn(name, value)
        return frame


def _literal(value: Any) -> Column:
    """A value as a constant; of values with others in them Spark takes the parts."""
    if isinstance(value, list):
        return F.array(*map(_literal, value))
    if isinstance(value, dict):
        return F.create_map(*[_literal(part) for pair in value.items() for part in pair])
    return F.lit(value)
