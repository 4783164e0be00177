"""What all nodes of a plan share, and their traits: what each type of node says about itself.

A pass (`plan.passes`) asks the traits of one node after the other and makes facts of the answers. A type that says
nothing promises nothing: its records are new ones, in no order, of which nobody knows where they come from.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from clinker_spark.config.load import LoadedFile
from clinker_spark.config.model.transform import Declaration, LogRule
from clinker_spark.config.tree.yaml import KeyPath
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.span import Span
from clinker_spark.core.types import Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.lower.expressions.python_calls import python_reason
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import SOURCE_MEMBERS
from clinker_spark.plan.facts import Estimate, Keys, Required, Sorting
from clinker_spark.plan.memory import HASH_AGGREGATE, NOTHING, Holder
from clinker_spark.plan.nodes.fields import program_fields
from clinker_spark.plan.nodes.framing import Sections
from clinker_spark.plan.nodes.record_rules import Check, RecordLog
from clinker_spark.plan.nodes.shown import ShownNode

Schema = Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A stream: the output of a node, or of one port of it."""

    node: str
    port: str | None = None

    def __str__(self) -> str:
        return self.node if self.port is None else f"{self.node}.{self.port}"


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanNode(ShownNode):
    """What all nodes share. Nodes of a composition are named after its call: `call/node`."""

    kind: ClassVar[str]
    mark: ClassVar[str] = "│"
    """What stands before it in the drawing of `--explain`."""
    shape: ClassVar[str | None] = None
    """Its shape in Graphviz."""
    verb: ClassVar[str] = "go on"
    """What its records do, in reports."""
    category: ClassVar[str | None] = "type_coercion_failure"
    """The category of a record that fails here; None is what the error itself says."""
    made_category: ClassVar[str | None] = "type_coercion_failure"
    """That of a record which the node made of others."""
    failure_key: ClassVar[tuple[str, ...]] = ("config",)
    """The key of the node that a failure is shown at."""
    totals: ClassVar[bool] = False
    """Is each of its records the total of a group?"""
    made: ClassVar[bool] = False
    """Is each of its records made of several, so that its dead letter shows the record itself?"""
    unites: ClassVar[bool] = False
    """Do its inputs become one stream, so that their correlation groups are one?"""
    traceable: ClassVar[bool] = True
    """Is it known which records its records are made of?"""
    reads_views: ClassVar[bool] = False
    """Does it read its inputs as views? Spark Connect does not bring back what was counted behind one."""
    stops_early: ClassVar[bool] = False
    """May it stop to read an input before its end, or not begin?"""
    chains: ClassVar[bool] = False
    """Does it only add steps to the plan of its first input?"""
    audits: ClassVar[bool] = False
    """Does it say in `$meta` what it did with each record?"""
    uses_statistics: ClassVar[bool] = False
    """Is it planned by how many records its inputs have?"""
    name: str
    inputs: tuple[StreamRef, ...]
    schema: Schema
    """The columns of the records that leave the node."""
    emitted: tuple[str, ...]
    """The columns that an output with `include_unmapped: false` writes."""
    file: LoadedFile
    path: KeyPath

    @property
    def stage(self) -> str:
        """What dead letters call the node."""
        return f"{self.kind}:{self.name}"

    def stage_of(self, category: str) -> str:
        """What dead letters of a category call it."""
        return self.stage

    @property
    def programs(self) -> tuple[Program, ...]:
        return ()

    def diagnostic(self, code: str, message: str, *inside: str | int, help: str | None = None) -> Diagnostic:
        """A finding about this node, or a key of it."""
        return self.file.diagnostic(code, message, (*self.path, *inside), help)

    def expressions(self) -> Iterator[ir.TExpr]:
        for program in self.programs:
            yield from program.typed.expressions()

    def system_members(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The system variables that the programs read: namespace and path."""
        for node in (part for expression in self.expressions() for part in expression.walk()):
            if isinstance(node, ir.SystemRef):
                yield node.namespace, node.path

    @property
    def source_members(self) -> frozenset[str]:
        """What is read of a record's own source; `$source.orders.x` is the same for all records."""
        return frozenset(path[0] for space, path in self.system_members() if space == "source" and len(path) == 1)

    @property
    def reads_file_values(self) -> bool:
        """Does it read a variable of the file that a record belongs to?"""
        return any(s == "doc" for s, _ in self.system_members()) or bool(self.source_members - set(SOURCE_MEMBERS))

    # ------------------------------------------------------------ streams
    @property
    def ports(self) -> tuple[str, ...]:
        """The names of its streams, if it has more than one."""
        return ()

    @property
    def streams(self) -> tuple[str | None, ...]:
        """What other nodes can read of it."""
        return self.ports or (None,)

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        """The inputs whose records go through it one by one, with all that they carry."""
        return ()

    @property
    def whole_records(self) -> bool:
        """Do those records leave it as they were read, with their undeclared columns and in their groups?"""
        return False

    @property
    def made_of(self) -> tuple[StreamRef, ...]:
        """The inputs that its records were read from, or made of."""
        return self.inputs

    @property
    def input_names(self) -> tuple[str, ...]:
        """What programs after it may call its inputs, in their order."""
        return ()

    def is_probe_side(self, i: int) -> bool:
        """Do the records of an input lead to records that leave the node?"""
        return True

    def is_build_side(self, i: int) -> bool:
        """Is an input what the records of others are looked up in?"""
        return False

    # ------------------------------------------------------------ records
    @property
    def narrow(self) -> bool:
        """Does each record go through by itself and in its place, whatever the others do?"""
        return False

    @property
    def takes_each_alone(self) -> bool:
        """Is what it does with a record the same, whatever the other records are?"""
        return self.narrow

    @property
    def adds_up(self) -> bool:
        """Is what it makes of a file the same, whatever other files the run reads?"""
        return self.takes_each_alone

    @property
    def can_fail(self) -> bool:
        """May a record fail at this node?"""
        return any(program.fallible for program in self.programs)

    @property
    def exchanges(self) -> bool:
        """Does it send records from task to task?"""
        return True

    @property
    def multiplies(self) -> bool:
        """May one record become several in the same stream?"""
        return True

    @property
    def conserves(self) -> bool:
        """Is each record that it takes one that it passes, one that fails, or one that is counted as left out?"""
        return False

    @property
    def one_for_one(self) -> bool:
        """Does exactly one record leave it for each that comes and does not fail?"""
        return False

    @property
    def python_reasons(self) -> tuple[str, ...]:
        """Why Python touches the records of this node, in Arrow batches; empty when all of it runs on Spark."""
        found = (python_reason(part) for expression in self.expressions() for part in expression.walk())
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def vector_reason(self) -> str | None:
        """Why its records cannot stay in the worker that read them; None if they can."""
        return f"nodes of type {self.kind} have no vector form"

    @property
    def totals_reason(self) -> str | None:
        """Why workers cannot add up, as far as they have them, the records that come to it; None if they can."""
        return self.vector_reason

    @property
    def sql_origins(self) -> Mapping[str, Span] | None:
        """For nodes that a value can make fail as a whole: the places in their text that their SQL comes from."""
        return None

    @property
    def max_output_rows(self) -> int | None:
        """The most records that it may make."""
        return None

    @property
    def holder(self) -> Holder:
        """What it does with memory."""
        return HASH_AGGREGATE if self.exchanges else NOTHING

    @property
    def worker_holder(self) -> Holder:
        """The same where its records stay in workers."""
        return NOTHING if self.inputs else self.holder

    def moved(self, i: int) -> str | None:
        """How the records of an input get to other tasks: `shuffle`, `broadcast` (to all), `shuffle, then broadcast`;
        None if they stay. Where a size decides that only the run finds out: `shuffle or broadcast`, `shuffle or none`.
        """
        return "shuffle" if self.exchanges else None

    @property
    def convergences(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """Where inputs meet that may be made in any order: those that have met before, and the one that joins them."""
        return ()

    def held(self, before: Sequence[int]) -> int:
        """How many bytes it holds when all of its inputs were read, given how much they are."""
        return sum(before) if self.holder.accumulates else 0

    def sorts(self, *, in_order: bool) -> bool:
        """Does it sort what it takes, given whether that lies in its order?"""
        return False

    # ------------------------------------------------------------ what passes ask

    def in_order(self, before: Sequence[bool]) -> bool:
        """Do its records lie in their order, if those of its inputs do?"""
        return False

    def sorting(self, before: Sequence[Sorting]) -> Sorting:
        """By which columns its records are sorted, given that of its inputs."""
        return ()

    def keys(self, before: Sequence[Keys]) -> Keys:
        """The correlation columns of its records, given those of its inputs."""
        return Keys(order=tuple(self.schema))

    @property
    def stateful(self) -> bool:
        """Can it go on over records that never end by holding those that wait for others?"""
        return False

    @property
    def timed_by(self) -> tuple[StreamRef, ...]:
        """The inputs whose records give its own their time."""
        return self.carried_from

    def state_details(self) -> dict[str, object]:
        """In streams: what the records that it holds depend on, besides the columns of its inputs."""
        return self.details()

    @property
    def lag(self) -> dt.timedelta:
        """In streams: how much further than the delays of its sources the watermark stays behind for its sake."""
        return dt.timedelta(0)

    @property
    def reach(self) -> dt.timedelta:
        """In streams: for how long after its time it holds a record."""
        return dt.timedelta(0)

    def not_in_streams(self) -> Iterator[Diagnostic]:
        """What it cannot do over records that never end."""
        yield from ()

    def event_column(self, before: Sequence[str | None]) -> str | None:
        """The column with the time of its records, given those of its inputs; None where there is none."""
        return None

    @property
    def rewritten(self) -> frozenset[str]:
        """The columns that it gives other values."""
        return frozenset()

    @property
    def shows_keys(self) -> bool:
        """Does it write correlation columns, or read those that its user names?"""
        return False

    @property
    def partitioned_by(self) -> tuple[str, ...] | None:
        """The columns whose values records share that are looked at together, one by one; None if none are."""
        return None

    @property
    def written(self) -> frozenset[str]:
        """The columns that it gives values, the same or others."""
        return frozenset()

    def estimate(self, before: Sequence[Estimate | None]) -> Estimate | None:
        """At most how many records leave it; None where nobody knows."""
        return None

    def several_documents(self, before: Sequence[bool]) -> bool:
        """May its records belong to several files, given whether those of its inputs do?"""
        return any(before)

    @property
    def mixes_files(self) -> bool:
        """Are its records made of several files, so that they belong to none?"""
        return True

    @property
    def envelope(self) -> Sections | None:
        """The headers and footers that it makes for outputs; None if it makes none."""
        return None

    @property
    def widens(self) -> bool:
        """May it add columns that no schema declares?"""
        return False

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        """What it requires of an input, given what is required of itself, and whether that input lies in its order."""
        columns = need.columns | program_fields(*self.programs)
        return Required(columns, True, need.document or self.reads_file_values, need.event, self.source_members)

    def completed(self, need: Required) -> Required:
        """What it must read itself to provide what is required of it."""
        return need

    def idle_keys(self, before: Sequence[Keys]) -> Iterator[Diagnostic]:
        """Keys of its configuration that have no effect in this graph, given the correlation columns of its inputs."""
        yield from ()

    def idle_key(self, key: str, why: str) -> Diagnostic:
        path = (*self.path, "config", key)
        return self.file.diagnostic("W027", f"'{key}' has no effect here: {why}", path, "remove the key", key=True)

    @property
    def checks(self) -> tuple[Check, ...]:
        """Conditions that every record must meet."""
        return ()

    @property
    def declares(self) -> tuple[Declaration, ...]:
        """The variables that its program writes."""
        return ()

    @property
    def written_variables(self) -> tuple[tuple[str, str], ...]:
        """Those that it does write, declared or not: scope and name."""
        return ()

    @property
    def phase(self) -> str:
        """`init` runs before everything else."""
        return "runtime"

    @property
    def log(self) -> tuple[LogRule, ...]:
        """Log rules of all kinds."""
        return ()

    @property
    def record_logs(self) -> tuple[RecordLog, ...]:
        """Those that speak of single records."""
        return ()

    def sketched_keys(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Keys that are counted for the next plan: the name of the count, and what run statistics call each key."""
        yield from ()
