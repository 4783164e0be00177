"""Plan nodes: what each node of a pipeline does, checked and with its schema. One class per node type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from clinker_spark.config.load import LoadedFile
from clinker_spark.config.model.aggregate import Hopping, Session, Tumbling
from clinker_spark.config.model.order import SortField
from clinker_spark.config.model.schema import Column
from clinker_spark.config.model.transform import Declaration, LogRule
from clinker_spark.config.tree.yaml import KeyPath
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.types import Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.lower.python_calls import python_reason
from clinker_spark.cxl.program import Program
from clinker_spark.plan.bind.conjuncts import Equality, Range

if TYPE_CHECKING:
    from clinker_spark.plan.passes.correlation import Keys
    from clinker_spark.plan.passes.estimates import Estimate
    from clinker_spark.plan.run_statistics import Remembered

Schema = Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A stream: the output of a node, or of one port of it."""

    node: str
    port: str | None = None

    def __str__(self) -> str:
        return self.node if self.port is None else f"{self.node}.{self.port}"


@dataclass(frozen=True, eq=False, kw_only=True)
class PlanNode:
    """What all nodes share. Nodes of a composition are named after its call: `call/node`."""

    kind: ClassVar[str]

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

    @property
    def programs(self) -> tuple[Program, ...]:
        return ()

    def diagnostic(self, code: str, message: str, *inside: str | int, help: str | None = None) -> Diagnostic:
        """A finding about this node, or about a key of it."""
        return self.file.diagnostic(code, message, (*self.path, *inside), help)

    def expressions(self) -> Iterator[ir.TExpr]:
        """All expressions of its programs."""
        for program in self.programs:
            yield from program.typed.expressions()

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        """The inputs whose undeclared columns the records of this node carry on."""
        return self.inputs

    @property
    def python_reasons(self) -> tuple[str, ...]:
        """Why Python touches the records of this node, in Arrow batches; empty when all of it runs on Spark."""
        reasons = (python_reason(part) for expression in self.expressions() for part in expression.walk())
        return tuple(dict.fromkeys(reason for reason in reasons if reason is not None))

    def system_members(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The system variables that the programs read: namespace and path."""
        for expression in self.expressions():
            for node in expression.walk():
                if isinstance(node, ir.SystemRef):
                    yield node.namespace, node.path


@dataclass(frozen=True, eq=False, kw_only=True)
class SourcePlan(PlanNode):
    """Reads files. `config` is the model with the format, the matcher and the options."""

    kind = "source"

    config: Any
    columns: tuple[Column, ...]
    source_name: str
    index: int
    """The position among the sources: dead letters come in this order."""

    @property
    def stage(self) -> str:
        return "source"

    @property
    def python_reasons(self) -> tuple[str, ...]:
        kind = str(self.config.type)
        return () if kind == "parquet" else (f"{kind} files are parsed by Python",)

    @property
    def several_files(self) -> bool:
        """May it read more than one file? Then every file is a document of its own."""
        return self.config.path is None


@dataclass(frozen=True, eq=False, kw_only=True)
class Check:
    """A validation: a condition (as one `$ok` column) that every record must meet."""

    name: str
    field: str | None
    program: Program
    severity: str
    message: str


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowLookup:
    """How a record finds its partition among the records of another node."""

    schema: Schema
    """The columns of those records."""
    keys: Program
    """What stands on the side of the record, as `$key.0`, `$key.1`..."""
    there: Program
    """The columns to compare with, under the same names and in the same types."""
    values: Program
    """The `$window` functions over those records, as the columns that the transform reads."""

    @property
    def reads(self) -> set[str]:
        """The columns of those records that are needed."""
        fields = {n.name for p in (self.there, self.values) for e in p.typed.expressions() for n in _fields_in(e)}
        rows = (n for e in self.values.typed.expressions() for n in e.walk() if isinstance(n, ir.WindowRef))
        return fields | {n.field for n in rows if n.field is not None}


def _fields_in(e: ir.TExpr) -> Iterator[ir.Field]:
    return (n for n in e.walk() if isinstance(n, ir.Field))


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowPlan:
    """The records that `$window` functions see."""

    group_by: tuple[str, ...]
    sort_by: tuple[SortField, ...]
    lookup: WindowLookup | None = None
    """For windows over the records of another node."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordLog:
    """A log rule for records, and its condition (as one `$log` column)."""

    rule: LogRule
    condition: Program | None

    @property
    def programs(self) -> tuple[Program, ...]:
        return () if self.condition is None else (self.condition,)


@dataclass(frozen=True, eq=False, kw_only=True)
class TransformPlan(PlanNode):
    """Runs a program over each record."""

    kind = "transform"

    program: Program
    window: WindowPlan | None = None
    checks: tuple[Check, ...] = ()
    declares: tuple[Declaration, ...] = ()
    phase: str = "runtime"
    log: tuple[LogRule, ...] = ()
    record_logs: tuple[RecordLog, ...] = ()

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        # It may also look into other records, of which it only has what its program takes.
        return self.inputs[:1]

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program, *(check.program for check in self.checks))

    def expressions(self) -> Iterator[ir.TExpr]:
        yield from super().expressions()
        for log in self.record_logs:  # what they read must be there, but no record fails by them
            for program in log.programs:
                yield from program.typed.expressions()

    @property
    def distinct(self) -> bool:
        return ir.has_statement(self.program.typed.statements, (ir.TDistinct,))

    @property
    def expands(self) -> bool:
        return ir.has_statement(self.program.typed.statements, (ir.TEach,))

    @property
    def shuffles(self) -> bool:
        """Do records leave in an order of their own?"""
        return self.distinct or self.window is not None


@dataclass(frozen=True, eq=False, kw_only=True)
class RoutePlan(PlanNode):
    """Sends each record to the ports whose conditions it meets.

    `program` has one column: `$port`, the position of the first match, or, when all matches count, one
    column `$port.N` for each condition.
    """

    kind = "route"

    program: Program
    conditions: tuple[str, ...]
    default: str
    inclusive: bool

    @property
    def stage(self) -> str:
        return "route_eval"

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)

    @property
    def ports(self) -> tuple[str, ...]:
        return (*self.conditions, self.default)


@dataclass(frozen=True, eq=False, kw_only=True)
class MergePlan(PlanNode):
    """Several streams as one."""

    kind = "merge"

    interleave: bool = False
    seed: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class AggregatePlan(PlanNode):
    """One record per group, in order of first appearance."""

    kind = "aggregate"

    program: Program
    group_by: tuple[str, ...]
    strategy: str
    """`streaming` where the records of a group are known to stand together, else `hash`. Spark runs both alike."""
    per_document: bool
    """Groups do not reach over files."""
    window: Tumbling | Hopping | Session | None = None
    """Groups over time as well."""

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        return ()

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)


@dataclass(frozen=True, eq=False, kw_only=True)
class CombineStep:
    """One input joined to what the driver has become so far. `build` is the input that is looked up."""

    build: str
    equalities: tuple[Equality, ...]
    ranges: tuple[Range, ...]
    residual: ir.TExpr | None
    """What must also be true of a pair."""
    only: ir.TExpr | None
    """What must be true of a record of the input to be looked at at all. It cannot fail."""
    strategy: str
    """How Spark joins: `broadcast`, `grace_hash`, `sort_merge`, `adaptive`, `range`, `latest` or `nested_loop`."""
    estimate: Estimate | None


@dataclass(frozen=True, eq=False, kw_only=True)
class CombinePlan(PlanNode):
    """Looks up the records of one input, the driver, in the others. Columns are named `input.column` inside."""

    kind = "combine"

    qualifiers: tuple[str, ...]
    """The names of the inputs, in the order of `inputs`."""
    schemas: Mapping[str, Schema]
    driver: str
    steps: tuple[CombineStep, ...]
    match: str
    on_miss: str
    program: Program | None
    """What each pair becomes; None when matches are collected."""
    config: Any
    driver_estimate: Estimate | None = None
    lifted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By build: the undeclared columns of it that the program names."""

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        return (self.inputs[self.qualifiers.index(self.driver)],)

    @property
    def programs(self) -> tuple[Program, ...]:
        return () if self.program is None else (self.program,)

    def expressions(self) -> Iterator[ir.TExpr]:
        yield from super().expressions()
        yield from self.conditions

    @property
    def conditions(self) -> Iterator[ir.TExpr]:
        """Every expression of the condition."""
        for step in self.steps:
            for comparison in (*step.equalities, *step.ranges):
                yield comparison.left
                yield comparison.right
            yield from (e for e in (step.residual, step.only) if e is not None)

    @property
    def keeps_places(self) -> bool:
        """Do records leave where they came in? Only if each becomes one, and none is sent to another task."""
        return self.match in ("first", "collect") and all(
            step.strategy == "broadcast" and not by_driver(self, step) for step in self.steps
        )


def by_driver(node: CombinePlan, step: CombineStep) -> bool:
    """Are the matches of a driver's record sorted out after the join? Else a key has one match at most."""
    return step.strategy != "latest" and node.match != "all" and bool(step.ranges or step.residual is not None)


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputPlan(PlanNode):
    """Writes records. `columns` pairs each column of the file with the column it comes from."""

    kind = "output"

    config: Any
    columns: tuple[tuple[str, str], ...]
    declared: tuple[Column, ...] | None
    output_name: str

    @property
    def stage(self) -> str:
        return f"output:{self.name}"


@dataclass(frozen=True, eq=False)
class Plan:
    """All nodes so that each comes after what it reads, and what the passes found out about them."""

    file: Any
    """The pipeline file (config.PipelineFile)."""
    nodes: tuple[PlanNode, ...]
    warnings: tuple[Diagnostic, ...] = ()
    vars: Mapping[str, Any] = field(default_factory=dict)
    needs: Mapping[str, Any] = field(default_factory=dict)
    """What each node must provide for those after it (`plan.passes.required.Need`), by name."""
    estimates: Mapping[str, Estimate | None] = field(default_factory=dict)
    """How many records each source probably has; None where nobody knows."""
    keys: Mapping[str, Keys] = field(default_factory=dict)
    """The correlation columns of each node."""
    remembered: Remembered | None = None
    """What the last run found out."""
    rules: Path | None = None
    """The folder of the CXL modules."""

    @property
    def shows_keys(self) -> bool:
        """Does an output write correlation columns?"""
        return any(output.config.include_correlation_keys for output in self.outputs)

    def __getitem__(self, name: str) -> PlanNode:
        return self.by_name[name]

    @cached_property
    def by_name(self) -> Mapping[str, PlanNode]:
        return {node.name: node for node in reversed(self.nodes)}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each node stands among all."""
        return {node.name: i for i, node in enumerate(self.nodes)}

    def of_kind(self, kind: type[Any]) -> Sequence[Any]:
        return [node for node in self.nodes if isinstance(node, kind)]

    def readers(self, name: str) -> list[PlanNode]:
        """Who reads a node, once for each input that does."""
        return list(self._readers.get(name, ()))

    def read_ports(self, name: str) -> set[str | None]:
        """The ports of a node that somebody reads."""
        return {ref.port for node in self.readers(name) for ref in node.inputs if ref.node == name}

    @cached_property
    def _readers(self) -> Mapping[str, list[PlanNode]]:
        found: dict[str, list[PlanNode]] = {}
        for node in self.nodes:
            for ref in node.inputs:
                found.setdefault(ref.node, []).append(node)
        return found

    @property
    def sources(self) -> Sequence[SourcePlan]:
        return self.of_kind(SourcePlan)

    @property
    def outputs(self) -> Sequence[OutputPlan]:
        return self.of_kind(OutputPlan)

    def upstream(self, name: str) -> list[PlanNode]:
        """Everything that a node's records come from, itself not included."""
        found: dict[str, PlanNode] = {}
        todo = [ref.node for ref in self[name].inputs]
        while todo:
            node = self[todo.pop()]
            if node.name not in found:
                found[node.name] = node
                todo += [ref.node for ref in node.inputs]
        return sorted(found.values(), key=lambda node: self.places[node.name])
