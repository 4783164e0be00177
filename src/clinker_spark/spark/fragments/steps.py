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
from clinker_spark.plan.columns import CELLS_PREFIX, WIDENED_COLUMN
from clinker_spark.plan.facts import Fragment
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.output import OutputPlan
from clinker_spark.plan.nodes.route import RoutePlan
from clinker_spark.plan.nodes.transform import TransformPlan
from clinker_spark.spark.fragments.task import (
    Cell,
    CheckStep,
    FragmentTask,
    LineFormat,
    RouteStep,
    Settle,
    Step,
    TransformStep,
    WriteStep,
)
from clinker_spark.spark.render.cell_text import CellStyle, declared

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


@dataclass
class Places:
    """What is counted where: the metrics of each place, and which of the counts each is."""

    metrics: dict[str, dict[str, int]] = field(default_factory=dict)
    size: int = 0

    def add(self, place: str, *names: str) -> tuple[int, ...]:
        found = tuple(range(self.size, self.size + len(names)))
        self.metrics.setdefault(place, {}).update(zip(names, found, strict=True))
        self.size += len(names)
        return found


class FragmentSteps:
    """Makes the task of a fragment. `widened` are the undeclared columns of the files, which come with types or as
    texts."""

    def __init__(self, builder: Builder, fragment: Fragment, widened: tuple[str, ...], *, typed: bool) -> None:
        self.builder = builder
        self.plan = builder.plan
        self.fragment = fragment
        self.widened = widened
        self.typed = typed
        self.places = Places()
        self.streams: dict[tuple[str, str | None], int] = {}

    def task(self) -> FragmentTask:
        source, *others = (self.plan[name] for name in self.fragment.nodes)
        [given] = self.places.add(f"{source.name}.source", "rows")
        settle = self._settle(source)
        self._stream(source)
        steps = tuple(_STEPS[type(node)](self, node) for node in others)
        asked = self.plan.file.settings.declared_batch_size
        together = FragmentTask.together if asked is None else asked
        return FragmentTask(given, settle, steps, self.places.size, together)

    def _stream(self, node: PlanNode, port: str | None = None) -> int:
        """A new stream with the records that leave a node."""
        number = len(self.streams)
        self.streams[node.name, port] = number
        return number

    def _taken(self, node: PlanNode) -> int:
        """The stream that a node reads."""
        given = node.inputs[0]
        return self.streams[given.node, given.port]

    def _settle(self, node: PlanNode) -> Settle | None:
        """Failures are set aside where several nodes, or none that records just go through, come next."""
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
        read = {reader.inputs[0].port for reader in self.plan.readers(node.name)}
        ports = tuple(self._stream(node, port) if port in read else None for port in node.ports)
        return RouteStep(taken, ports, node.program.typed, self.builder.context(node), node.inclusive, came, settle)

    def output(self, node: OutputPlan) -> Step:
        ends = Settle(*self.places.add(node.name, "rows", "failed"))
        return WriteStep(self._taken(node), self.fragment.outputs.index(node.name), self._lines(node), ends)

    def _lines(self, node: OutputPlan) -> LineFormat:
        known = declared(node.declared or ())
        base = CellStyle(between="T") if node.config.type == "csv" else CellStyle()
        cells = [Cell(name, column, node.schema[column], base.of(known.get(name))) for name, column in node.columns]
        for run in sorted(self.plan.facts.columns.cells.get(node.name, ()), key=lambda run: -run.at):
            done = Cell("", f"{CELLS_PREFIX}{run.number}", STRING, base, finished=True)
            cells[run.at : run.at + len(run.run.columns)] = [done]
        for name in self._undeclared(node):
            column = f"{WIDENED_COLUMN}.{name}"
            cells.append(Cell(name, column, STRING, base, finished=self.typed, undeclared=name))
        if node.config.type == "csv":
            return LineFormat("csv", tuple(cells), node.config.options.delimiter)
        separator = "\n" if node.config.options.format == "ndjson" else ",\n"
        return LineFormat("json", tuple(cells), nulls=node.config.preserve_nulls, separator=separator)

    def _undeclared(self, node: OutputPlan) -> list[str]:
        return undeclared_columns(node, self.widened)


_STEPS: dict[type[PlanNode], Callable[[FragmentSteps, Any], Step]] = {
    TransformPlan: FragmentSteps.transform,
    RoutePlan: FragmentSteps.route,
    OutputPlan: FragmentSteps.output,
}


def undeclared_columns(node: OutputPlan, widened: tuple[str, ...]) -> list[str]:
    """The undeclared columns that an output writes after its own."""
    if not node.config.include_unmapped:
        return []
    taken = {name for name, _ in node.columns} | set(node.schema) | set(node.config.exclude)
    return [name for name in dict.fromkeys(widened) if name not in taken]


def settles(builder: Builder, node: PlanNode) -> bool:
    """Are failures set aside behind a node that has one stream?"""
    readers = builder.plan.readers(node.name)
    return not (len(readers) == 1 and readers[0].narrow)


def filter_places(node: TransformPlan) -> list[str]:
    """What the filters of a program are called where records are counted."""
    seen: Counter[str] = Counter()
    found = []
    for statement in node.program.typed.statements:
        if isinstance(statement, ir.TFilter):
            seen["filter"] += 1
            found.append(f"{node.name}.filter" + (f" {seen['filter']}" if seen["filter"] > 1 else ""))
    return found
