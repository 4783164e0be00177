"""The stages of a run, as data: what explain prints and what the executor does, in this order.

1. `Find`: the files of each source. `CheckOrder`: are those sorted that are said to be? `Values`: variables that other
   nodes read, each with a job of its own.
2. `Write`: one Spark job for each output, into an attempt folder, with a count of the records that fail.
   `LogRecords`: log lines for single records, each rule with a job of its own.
3. `Letters`: always there; it has something to do only if some failed. What CSV readers kept, if these are all; else
   the same nodes again, for the failures alone.
4. `Publish`: everything is renamed to its place.
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.config.model.order import SortField
from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import Kind
from clinker_spark.cxl.hidden import variable_column
from clinker_spark.plan.bind.scopes import SHARED, shared_writers
from clinker_spark.plan.nodes import AggregatePlan, CombinePlan, OutputPlan, Plan, PlanNode, SourcePlan, TransformPlan
from clinker_spark.plan.passes.correlation import is_correlated
from clinker_spark.plan.passes.required import orders, per_file
from clinker_spark.plan.query.node import QueryPlan


@dataclass(frozen=True)
class Find:
    """List the files of a source."""

    source: str
    pattern: str


@dataclass(frozen=True)
class CheckOrder:
    """Compare neighbours: are the files of a source sorted as declared?"""

    source: str
    order: tuple[str, ...]
    on_unsorted: str


@dataclass(frozen=True)
class Values:
    """Find the last value of the variables that a transform writes for the pipeline or for a file."""

    transform: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Write:
    """One job: from the sources to the lines of an output."""

    output: str
    nodes: tuple[str, ...]
    """The nodes that run in it, sources first."""
    shuffles: tuple[str, ...]
    """Those of them that exchange records between tasks, and the sort at the end if there is one."""
    order: str
    """Why the records come out in order."""
    fallible: tuple[str, ...]
    """The nodes at which a record can fail."""
    python: tuple[str, ...]
    """The nodes that run Python code over Arrow batches."""


@dataclass(frozen=True)
class LogRecords:
    """Jobs that find the records a transform's log speaks of, one for each rule."""

    transform: str
    events: tuple[str, ...]


@dataclass(frozen=True)
class Letters:
    """The second pass."""

    strategy: str
    paths: tuple[str, ...]
    groups: bool = False
    """Records that belong to a failure are held back, and the outputs are written again without them."""


@dataclass(frozen=True)
class Publish:
    """Rename the files to their places."""

    outputs: tuple[str, ...]


Stage = Find | CheckOrder | Values | Write | LogRecords | Letters | Publish


def stages(plan: Plan) -> tuple[Stage, ...]:
    """What a run of the plan does, in order."""
    found: list[Stage] = [Find(source.name, pattern_of(source)) for source in plan.sources]
    for source in plan.sources:
        if source.config.sort_order:
            order = tuple(sort_words(item) for item in source.config.sort_order)
            found.append(CheckOrder(source.name, order, source.config.on_unsorted))
    for node in shared_writers(plan):
        names = tuple(variable_column(d.scope, d.name) for d in node.declares if d.scope in SHARED)
        found.append(Values(node.name, names))
    found += [_write(plan, output) for output in plan.outputs]
    for node in plan.of_kind(TransformPlan):
        if node.record_logs:
            found.append(LogRecords(node.name, tuple(log.rule.name or node.name for log in node.record_logs)))
    handling = plan.file.error_handling
    # Always: whether records failed is counted, and no opinion about it from before the run stands in the way.
    paths = [handling.dlq.path, *(own.path for own in handling.dlq.per_source.values())]
    together = is_correlated(plan) and handling.strategy == "continue"
    found.append(Letters(handling.strategy, tuple(path for path in paths if path), together))
    found.append(Publish(tuple(output.name for output in plan.outputs)))
    return tuple(found)


def sort_words(item: SortField) -> str:
    """`day desc nulls first`: a sort column in words."""
    direction = " desc" if item.order == "desc" else ""
    return f"{item.field}{direction}{' nulls first' if item.null_order == 'first' else ''}"


def pattern_of(source: SourcePlan) -> str:
    config = source.config
    return str(config.path or config.glob or config.regex or ", ".join(config.paths or ()))


def _write(plan: Plan, output: OutputPlan) -> Write:
    nodes = [*plan.upstream(output.name), output]
    ordered = orders(plan)[output.inputs[0].node].in_place
    shuffles = [n.name for n in nodes if exchanges(n)]
    if output.config.sort_order:
        order = "sorted by " + ", ".join(item.field for item in output.config.sort_order) + ", then by arrival"
        shuffles.append("sort")
    elif output.config.order == "any" and (ordered or not per_file(output)):
        order = "any"
    elif output.config.order == "any":
        order = "any, but file by file"
        shuffles.append("sort")
    elif ordered:
        order = "source order, kept in place"
    else:
        order = "sorted by arrival"
        shuffles.append("sort")
    return Write(
        output.name,
        tuple(n.name for n in nodes),
        tuple(shuffles),
        order,
        tuple(n.name for n in nodes if can_fail(n)),
        tuple(n.name for n in nodes if runs_python(n)),
    )


def exchanges(node: PlanNode) -> bool:
    """Does the node send records from task to task?"""
    if isinstance(node, CombinePlan):
        return not node.keeps_places
    return isinstance(node, AggregatePlan | QueryPlan) or (isinstance(node, TransformPlan) and node.shuffles)


def can_fail(node: PlanNode) -> bool:
    """May a record fail at this node?"""
    if isinstance(node, SourcePlan):
        return str(node.config.type) != "parquet" or any(checked_in_parquet(column) for column in node.columns)
    if isinstance(node, OutputPlan):  # a NaN has no JSON, a long text no room in a fixed-width field
        return str(node.config.type) != "parquet"
    if isinstance(node, QueryPlan):
        return bool(node.errors)
    if isinstance(node, CombinePlan) and (node.on_miss == "error" or any(e.fallible for e in node.conditions)):
        return True
    checks = any(check.severity == "error" for check in node.checks) if isinstance(node, TransformPlan) else False
    if isinstance(node, TransformPlan) and node.window is not None and node.window.lookup is not None:
        checks = checks or node.window.lookup.values.fallible  # a sum of floats that does not exist
    return checks or any(program.fallible for program in node.programs)


def checked_in_parquet(column: Column) -> bool:
    """Can a value of a Parquet file be wrong for a column? A null where none may be, or a number with more digits."""
    kind = column.data_type
    return not kind.is_dynamic and (not kind.nullable or (kind.kind is Kind.DECIMAL and kind.scale is not None))


def runs_python(node: PlanNode) -> bool:
    """Does Python touch the records, in Arrow batches?"""
    return bool(node.python_reasons)
