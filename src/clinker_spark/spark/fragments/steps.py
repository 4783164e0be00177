"""The nodes of a fragment as steps of a worker, and where each of them counts.

Places and counts have the names that the operators of Spark give them, so that accounting, rates and the search for
rejects need not know which engine ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clinker_spark.core.types import STRING
from clinker_spark.cxl import ir
from clinker_spark.cxl.lower.aggregates import lower_aggregate
from clinker_spark.cxl.system import default_context
from clinker_spark.plan.columns import CELLS_PREFIX, WIDENED_COLUMN
from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.aggregate import AggregatePlan
from clinker_spark.plan.nodes.base import PlanNode, StreamRef
from clinker_spark.plan.nodes.combine import CombinePlan
from clinker_spark.plan.nodes.merge import MergePlan
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.route import RoutePlan
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.plan.nodes.transform import TransformPlan
from clinker_spark.spark.columns.undeclared import Widened, names_of
from clinker_spark.spark.fragments.joins.steps import Tables, join_step
from clinker_spark.spark.fragments.members import base_style, cells_of, member_runs, unread_columns
from clinker_spark.spark.fragments.task import (
    WRITTEN_BYTES,
    Cell,
    CheckStep,
    FragmentTask,
    LineFormat,
    Members,
    MergeStep,
    RouteStep,
    Settle,
    Step,
    TotalsStep,
    TransformStep,
    WriteStep,
)

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


ROWS = "rows"
"""The place in an aggregate where records fail before they are grouped."""


@dataclass
class Places:
    """What is counted where: the metrics of each place, and which of the counts each is."""

    metrics: dict[str, dict[str, int]] = field(default_factory=dict)
    size: int = 0

    def add(self, place: str, *names: str) -> tuple[int, ...]:
        """The numbers of counts. The workers of all sources of a fragment count under the same ones."""
        known = self.metrics.setdefault(place, {})
        for name in names:
            if name not in known:
                known[name] = self.size
                self.size += 1
        return tuple(known[name] for name in names)


class FragmentSteps:
    """Makes the task of a source of a fragment. Undeclared columns come with types or as texts."""

    def __init__(
        self,
        builder: Builder,
        fragment: Fragment,
        places: Places,
        widened: Widened,
        tables: Tables | None = None,
        *,
        typed: bool = False,
        pieces: int = 1,
    ) -> None:
        self.builder = builder
        self.pieces = pieces
        self.plan = builder.plan
        self.fragment = fragment
        self.places = places
        self.widened = widened
        self.tables = tables or {}
        self.typed = typed
        self.streams: dict[tuple[str, str | None], int] = {}
        self.runs: dict[str, dict[int, Members]] = {}
        self.members: tuple[Members, ...] = ()
        self.unread: frozenset[str] = frozenset()

    def task(self, source: SourcePlan) -> FragmentTask:
        [given] = self.places.add(f"{source.name}.source", "rows")
        settle = self._settle(source)
        self._stream(source)
        others = [node for name in self.fragment.nodes if (node := self.plan[name]).inputs]
        if len(self.fragment.sources) == 1:
            self._find_members(source)
        made = [_STEPS[type(node)](self, node) for node in others if self._input(node) is not None]
        # Last, as a batch with too many matches is taken again from its beginning, in halves.
        steps = tuple(sorted(made, key=lambda step: isinstance(step, TotalsStep)))
        asked = self.plan.file.settings.declared_batch_size
        together = FragmentTask.together if asked is None else asked
        rank = self.fragment.sources.index(source.name)
        return FragmentTask(given, settle, steps, self.places.size, together, self.members, self.unread, rank=rank)

    def _find_members(self, source: SourcePlan) -> None:
        outputs = [self.plan.output(name) for name in self.fragment.outputs]
        self.runs = {output.name: member_runs(self.plan, output, source) for output in outputs}
        self.members = tuple(dict.fromkeys(run for runs in self.runs.values() for run in runs.values()))
        if self.members:
            self.unread = unread_columns(self.plan, source, self.runs)

    def _stream(self, node: PlanNode, port: str | None = None) -> int:
        """A new stream with the records that leave a node."""
        number = len(self.streams)
        self.streams[node.name, port] = number
        return number

    def _taken(self, node: PlanNode) -> int:
        """The stream that a node reads. The records of one source come to each node by one input."""
        came = self._input(node)
        assert came is not None, node.name
        return self.streams[came.node, came.port]

    def _input(self, node: PlanNode) -> StreamRef | None:
        """By which the records of the source come."""
        return next((ref for ref in node.inputs if (ref.node, ref.port) in self.streams), None)

    def _settle(self, node: PlanNode) -> Settle | None:
        """Failures are diverted where several nodes, or none that records just go through, come next."""
        if not settles(self.builder, node):
            return None
        return Settle(*self.places.add(node.name, "rows", "failed"))

    def transform(self, node: TransformPlan) -> Step:
        filters = [self.places.add(name, "rows", "kept") for name in filter_places(node)]
        context = self.builder.context(node)
        checks = []
        for i, check in enumerate(node.checks):
            warns = check.severity != "error"
            warned = self.places.add(f"{node.name}.check {i}", "warned")[0] if warns else None
            checks.append(CheckStep(check.program.typed, context, warned))
        settle = self._settle(node)
        pairs = tuple((rows, kept) for rows, kept in filters)
        taken, given = self._taken(node), self._stream(node)
        return TransformStep(taken, given, node.program.typed, context, pairs, tuple(checks), settle)

    def route(self, node: RoutePlan) -> Step:
        came = self.places.add(f"{node.name}.takes its input", "rows")[0] if node.inclusive else None
        settle = Settle(*self.places.add(node.name, "rows", "failed"))
        taken = self._taken(node)
        read = self.plan.read_ports(node.name)
        ports = tuple(self._stream(node, port) if port in read else None for port in node.ports)
        return RouteStep(taken, ports, node.program.typed, self.builder.context(node), node.inclusive, came, settle)

    def merge(self, node: MergePlan) -> Step:
        came = self._input(node)
        assert came is not None
        given = self.plan[came.node].schema
        types = tuple((name, t) for name, t in node.schema.items() if given[name].kind is not t.kind)
        rows = self.places.add(taking(node, came), "rows")[0] if is_counted_anew(came) else None
        return MergeStep(self._taken(node), self._stream(node), types, rows)

    def combine(self, node: CombinePlan) -> Step:
        streams = self._taken(node), self._stream(node)
        filters = tuple(
            (rows, kept) for rows, kept in (self.places.add(n, "rows", "kept") for n in filter_places(node))
        )
        return join_step(self.builder, node, streams, self.tables, self.places.add, filters, self._settle(node))

    def totals(self, node: AggregatePlan) -> Step:
        filters = tuple(
            (rows, kept) for rows, kept in (self.places.add(n, "rows", "kept") for n in filter_places(node))
        )
        came = self.places.add(taking_all(node), "rows")[0] if is_counted_anew(node.inputs[0]) else None
        place = f"{node.name}.{ROWS}"
        settle = Settle(*self.places.add(place, "rows", "failed")) if sets_rows_aside(node) else None
        context = self.builder.context(node)
        number = self.fragment.totals.index(node.name)
        return TotalsStep(self._taken(node), number, node.program.typed, context, self.pieces, came, filters, settle)

    def output(self, node: OutputPlan) -> Step:
        ends = Settle(*self.places.add(node.name, "rows", "failed"))
        [size] = self.places.add(node.name, WRITTEN_BYTES)
        return WriteStep(self._taken(node), self.fragment.outputs.index(node.name), self._lines(node), ends, size)

    def _lines(self, node: OutputPlan) -> LineFormat:
        base = base_style(node)
        cells = cells_of(node)
        for at, members in sorted(self.runs.get(node.name, {}).items(), reverse=True):
            done = Cell("", f"{CELLS_PREFIX}{self.members.index(members)}", STRING, base, finished=True)
            cells[at : at + len(members.cells)] = [done]
        for run in sorted(self.plan.facts.columns.cells.get(node.name, ()), key=lambda run: -run.at):
            done = Cell("", f"{CELLS_PREFIX}{run.number}", STRING, base, finished=True)
            cells[run.at : run.at + len(run.run.columns)] = [done]
        for name in undeclared_columns(self.plan, node, self.widened):
            column = f"{WIDENED_COLUMN}.{name}"
            cells.append(Cell(name, column, STRING, base, finished=self.typed, undeclared=name))
        if node.config.type == "csv":
            return LineFormat("csv", tuple(cells), node.config.options.delimiter)
        separator = "\n" if node.config.options.format == "ndjson" else ",\n"
        return LineFormat("json", tuple(cells), nulls=node.config.preserve_nulls, separator=separator)


_STEPS: dict[type[PlanNode], Callable[[FragmentSteps, Any], Step]] = {
    TransformPlan: FragmentSteps.transform,
    RoutePlan: FragmentSteps.route,
    MergePlan: FragmentSteps.merge,
    CombinePlan: FragmentSteps.combine,
    OutputPlan: FragmentSteps.output,
    AggregatePlan: FragmentSteps.totals,
}


def undeclared_columns(plan: Plan, node: OutputPlan, widened: Widened) -> list[str]:
    """The undeclared columns that an output writes after its own."""
    if not node.config.include_unmapped:
        return []
    taken = {name for name, _ in node.columns} | set(node.schema) | set(node.config.exclude)
    return [name for name in names_of(plan, node.inputs[0].node, widened) if name not in taken]


def is_counted_anew(given: StreamRef) -> bool:
    """Must whoever takes these records count them? A route counts only how many come to it."""
    return given.port is not None


def taking(node: PlanNode, given: StreamRef) -> str:
    """Where the records of an input are counted whose number nobody else knows."""
    return f"{node.name}.takes {given}"


def taking_all(node: AggregatePlan) -> str:
    """Where the records of an aggregate are counted whose number nobody else knows."""
    return f"{node.name}.takes all"


def sets_rows_aside(node: AggregatePlan) -> bool:
    """Can records fail before they are grouped?"""
    return lower_aggregate(node.program.typed, default_context(node.name)).row_error is not None


def settles(builder: Builder, node: PlanNode) -> bool:
    """Are failures set aside behind a node that has one stream?"""
    readers = builder.plan.readers(node.name)
    return not (len(readers) == 1 and readers[0].narrow)


def filter_places(node: TransformPlan | AggregatePlan | CombinePlan) -> list[str]:
    """What the filters of a program are called where records are counted."""
    seen: Counter[str] = Counter()
    found: list[str] = []
    if node.program is None:
        return found
    for statement in node.program.typed.statements:
        if isinstance(statement, ir.TFilter):
            seen["filter"] += 1
            found.append(f"{node.name}.filter" + (f" {seen['filter']}" if seen["filter"] > 1 else ""))
    return found
