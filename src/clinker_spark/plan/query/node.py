"""`type: query` in the plan: the query is checked against its inputs' columns and lowered, without Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clinker_spark.config.model.query import QueryNode, query_name
from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.plan.facts import Required
from clinker_spark.plan.nodes.base import PlanNode, Schema
from clinker_spark.query.failures import QueryError
from clinker_spark.query.files.formats import FileSource
from clinker_spark.query.lower.guards import Diversions
from clinker_spark.query.lower.order import ARRIVAL, ASCENDING_ID
from clinker_spark.query.lower.values import Lowered, SparkDataset, columns_of, list_type, sorted_by
from clinker_spark.query.prepare import Queries, plan, prepare
from clinker_spark.query.program import compile_query, deep_trees, located
from clinker_spark.query.sources import Scan
from clinker_spark.query.types import QType, RecordType, from_core, is_kind, to_core
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import BIGINT, call
from clinker_spark.sql.render import Printed, render


@dataclass(frozen=True)
class NodeInput:
    """The records of a node as a source of a query."""

    position: int


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryPlan(PlanNode):
    """Asks a query. `query` gives the records, `ordered` also gives them their `$arrival`. The views of the sources
    have no names in them: each pass of a run has views of its own."""

    kind = "query"
    traceable = False
    reads_views = True
    stops_early = True

    query: Printed
    ordered: Printed
    errors: Mapping[int, tuple[tuple[str, str], ...]]
    """By input: SQL for the reasons why a record of it fails in the query, which diverts it. Each query that reads
    the input has its own reason, over the record under an alias of its own."""
    functions: Mapping[str, Any]
    """The functions that the session must know, by name."""
    arrays: bool
    """`ordered` needs the `$arrival` of its inputs as arrays, to put several of them together."""
    scans: tuple[Scan, ...]
    reads: tuple[str, ...]
    """All columns of its inputs. Those that the query does not use are left out by Catalyst."""

    @property
    def sql_origins(self) -> Mapping[str, Span]:
        return self.origins

    @property
    def can_fail(self) -> bool:
        return bool(self.errors)

    def is_build_side(self, i: int) -> bool:
        return len(self.inputs) > 1  # nobody knows what it does with them

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        return Required(frozenset(self.reads), arrival=True)

    @property
    def python_reasons(self) -> tuple[str, ...]:
        files = [scan.content for scan in self.scans if isinstance(scan.content, FileSource)]
        reasons = ["CSV files are parsed by Python"] if any(f.format in ("csv", "tsv") for f in files) else []
        called = self.functions.values()
        return (*reasons, *(f"{call.method}: RE2 runs the pattern {call.pattern!r}" for call in called))

    @property
    def text(self) -> str:
        """The query as people read it."""
        return self.query.text(self._view)

    @property
    def ordered_text(self) -> str:
        return self.ordered.text(self._view)

    @property
    def origins(self) -> Mapping[str, Span]:
        """The places in the query that pieces of its text come from."""
        return {**self.query.origins, **self.ordered.origins}

    def _view(self, source: sql.Source) -> str:
        return self.scans[source.number].name(source.ordered)


def bind_query(binder: Any, node: QueryNode) -> Any:
    """The streams of a query; None when something is wrong with it, which is noted then."""
    text = binder.file.text_of((*binder.path, "config", "query"))
    queries = Queries(Diversions(text.text))
    names = {}
    for position, (written, bound) in enumerate(zip(node.inputs, binder.inputs, strict=True)):
        row = RecordType(tuple((name, from_core(t).as_nullable()) for name, t in bound.schema.items()))
        name = query_name(written)
        names[name] = queries.source(name, row, NodeInput(position), (ARRIVAL_COLUMN,))
        queries.diversions.inputs[len(queries.scans) - 1] = position
    types: dict[str, QType] = {name: list_type(found.relation) for name, found in names.items()}
    try:
        program = prepare(compile_query(text.text, binder.name, types), queries, types, names)
        with deep_trees(program.source), located(program.source):
            result = plan(program, queries, names)
    except QueryError as error:
        binder.binder.found += [
            text.relocate(d) if d.source is None or d.source.name == binder.name else d for d in error.diagnostics
        ]
        return None
    if not isinstance(result, SparkDataset):
        message = "the query of a node must give rows that are known before the run"
        binder.problem("E709", message, "config", "query", help="end it with a query over the inputs")
        return None
    schema: Schema = {name: to_core(t).as_nullable() for name, t in columns_of(result.relation.row)}
    problem = next((f"column '{name}' is {t}" for name, t in schema.items() if not _fits(t)), None)
    if problem is not None:
        message = f"{problem}, which records of a pipeline cannot hold"
        binder.problem("E708", message, "config", "query", help="convert it: as float, as string")
        return None
    unordered, ordered = render(_records(result, schema)), render(_ordered(result, schema))
    errors = {
        position: [(reason.alias, render(reason.error)) for reason in reasons.values()]
        for position, reasons in queries.diversions.reasons.items()
    }
    called = [unordered, *(error for pairs in errors.values() for _, error in pairs)]
    made_plan = QueryPlan(
        **binder.common(schema, tuple(schema)),
        query=unordered,
        ordered=ordered,
        errors={position: tuple((alias, str(error)) for alias, error in pairs) for position, pairs in errors.items()},
        functions={name: what for printed in called for name, what in printed.functions.items()},
        arrays=len(result.relation.build(True).order) > 1,
        scans=tuple(queries.scans),
        reads=tuple(dict.fromkeys(name for bound in binder.inputs for name in bound.schema)),
    )
    return binder.made(made_plan)


def _fits(t: Type) -> bool:
    """Can a column of a pipeline have this type?"""
    bare = t.unwrap()
    if bare.kind is Kind.ARRAY:
        return bare.element is not None and _fits(bare.element)
    return bare.kind not in (Kind.ANY, Kind.MAP, Kind.NULL) and not (bare.kind is Kind.DECIMAL and bare.scale is None)


def _records(result: SparkDataset, schema: Schema) -> sql.Query:
    """The rows with the physical types of a pipeline."""
    query = result.relation.build(False).query
    return query.then(sql.Select(_converted(query, schema)))


def _ordered(result: SparkDataset, schema: Schema) -> sql.Query:
    """The same rows with the column that orders them."""
    rows = result.relation.build(True)
    steps, arrival = _arrival(rows)
    return rows.query.then(*steps, sql.Select((*_converted(rows.query, schema), sql.As(arrival, ARRIVAL_COLUMN))))


def _converted(query: sql.Query, schema: Schema) -> tuple[sql.As, ...]:
    # To Spark, what fails in a column fails in the cast of it.
    spans = {found.name: found.span for found in sql.walk(query) if isinstance(found, sql.As) and found.span}
    casts = [(n, sql.Cast(sql.Column(n), sql.Named(physical(t)), span=spans.get(n))) for n, t in schema.items()]
    return tuple(sql.As(cast, name) for name, cast in casts)


def _arrival(rows: Lowered) -> tuple[tuple[sql.Step, ...], sql.Expr]:
    """A pipe step (or nothing), and the one value by which a pipeline orders records and tells them apart."""
    order = rows.order
    if order and all(t.plain and (is_kind(t.type, Kind.INT) or t.type == ARRIVAL) for t in order):
        parts = [t.sql if t.type == ARRIVAL else call("array", sql.Cast(t.sql, BIGINT)) for t in order]
        return (), parts[0] if len(parts) == 1 else call("concat", *parts)
    # Sorted rows get ascending numbers, partition by partition.
    return ((sorted_by(order),) if order and not rows.in_order else ()), ASCENDING_ID
