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
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.facts import Required
from clinker_spark.plan.nodes.base import PlanNode, Schema
from clinker_spark.plan.query.engine import PlanningEngine, Scan, SparkDataset, plan, prepare
from clinker_spark.plan.query.files import FileSource
from clinker_spark.plan.query.order import ARRIVAL
from clinker_spark.plan.query.patterns import functions_in
from clinker_spark.plan.query.pieces import STEP, view
from clinker_spark.plan.query.values import Rendered, columns_of
from clinker_spark.query.failures import QueryError
from clinker_spark.query.program import compile_query, deep_trees, located
from clinker_spark.query.types import ListType, QType, RecordType, from_core, is_kind, to_core


@dataclass(frozen=True)
class NodeInput:
    """The records of a node as a source of a query."""

    position: int


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryPlan(PlanNode):
    """Asks a query. `text` gives the records, `ordered_text` also gives them their `$arrival`. In both the views of
    the sources are marks (see `pieces`): each pass of a run has views of its own."""

    kind = "query"
    traceable = False
    reads_views = True
    stops_early = True

    text: str
    ordered_text: str
    errors: Mapping[int, tuple[tuple[str, str], ...]]
    """By input: SQL for the reasons why a record of it fails in the query, which sets it aside. Each query that reads
    the input has its own reason, over the record under an alias of its own."""
    origins: Mapping[str, Span]
    """The places in the query that pieces of its text come from."""
    arrays: bool
    """`ordered_text` needs the `$arrival` of its inputs as arrays, to put several of them together."""
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
        called = functions_in("".join([self.text, *(error for pairs in self.errors.values() for _, error in pairs)]))
        return (*reasons, *(f"{call.method}: RE2 runs the pattern {call.pattern!r}" for call in called.values()))


def bind_query(binder: Any, node: QueryNode) -> Any:
    """The streams of a query; None when something is wrong with it, which is noted then."""
    text = binder.file.text_of((*binder.path, "config", "query"))
    engine = PlanningEngine()
    engine.program_text = text.text
    names = {}
    for position, (written, bound) in enumerate(zip(node.inputs, binder.inputs, strict=True)):
        row = RecordType(tuple((name, from_core(t).as_nullable()) for name, t in bound.schema.items()))
        name = query_name(written)
        names[name] = engine.source(name, row, NodeInput(position), (ARRIVAL_COLUMN,))
        scan = engine.scans[-1]
        engine.inputs |= {view(len(engine.scans) - 1, ordered): scan.view for ordered in (False, True)}
    types: dict[str, QType] = {name: ListType(found.relation.row, dataset=True) for name, found in names.items()}
    try:
        program = prepare(compile_query(text.text, binder.name, types), engine, types, names)
        with deep_trees(program.source), located(program.source):
            result = plan(program, engine, names)
            made = _columns(result) if isinstance(result, SparkDataset) else None
    except QueryError as error:
        binder.binder.found += [
            text.relocate(d) if d.source is None or d.source.name == binder.name else d for d in error.diagnostics
        ]
        return None
    if made is None:
        message = "the query of a node must give rows that are known before the run"
        binder.problem("E709", message, "config", "query", help="end it with a query over the inputs")
        return None
    problem = next((f"column '{name}' is {t}" for name, t in made[1].items() if not _fits(t)), None)
    if problem is not None:
        message = f"{problem}, which records of a pipeline cannot hold"
        binder.problem("E708", message, "config", "query", help="convert it: as float, as string")
        return None
    schema: Schema = made[1]
    unordered, ordered = _texts(result, schema, engine.origins)
    made_plan = QueryPlan(
        **binder.common(schema, tuple(schema)),
        text=unordered,
        ordered_text=ordered,
        origins=engine.origins,
        errors={
            scan.content.position: reasons
            for scan in engine.scans
            if (reasons := tuple(engine.reasons.get(scan.view, {}).values()))
        },
        arrays=len(result.relation.build(True).order) > 1,
        scans=tuple(engine.scans),
        reads=tuple(dict.fromkeys(name for bound in binder.inputs for name in bound.schema)),
    )
    return binder.made(made_plan)


def _columns(result: SparkDataset) -> tuple[SparkDataset, dict[str, Type]]:
    return result, {name: to_core(t).as_nullable() for name, t in columns_of(result.relation.row)}


def _fits(t: Type) -> bool:
    """Can a column of a pipeline have this type?"""
    bare = t.unwrap()
    if bare.kind is Kind.ARRAY:
        return bare.element is not None and _fits(bare.element)
    return bare.kind not in (Kind.ANY, Kind.MAP, Kind.NULL) and not (bare.kind is Kind.DECIMAL and bare.scale is None)


def _texts(result: SparkDataset, schema: Schema, origins: dict[str, Span]) -> tuple[str, str]:
    """The rows with the physical types of a pipeline, without and with the column that orders them."""
    casts = {n: f"CAST({quote(n)} AS {physical(t)})" for n, t in schema.items()}
    listed = ", ".join(f"{cast} AS {quote(n)}" for n, cast in casts.items())
    plain = result.relation.build(False)
    rendered = result.relation.build(True)
    for name, cast in casts.items():  # to Spark, what fails in a column fails in the cast of it
        if quote(name) in origins:
            origins[cast] = origins[quote(name)]
    step, arrival = _arrival(rendered)
    ordered = f"{rendered.text}{step}{STEP}SELECT {listed}, {arrival} AS {quote(ARRIVAL_COLUMN)}"
    return f"{plain.text}{STEP}SELECT {listed}", ordered


def _arrival(rendered: Rendered) -> tuple[str, str]:
    """A pipe step (or nothing), and the one value by which a pipeline orders records and tells them apart."""
    order = rendered.order
    if order and all(t.plain and (is_kind(t.type, Kind.INT) or t.type == ARRIVAL) for t in order):
        parts = [t.text if t.type == ARRIVAL else f"array(CAST({t.text} AS BIGINT))" for t in order]
        return "", parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
    # Sorted rows get ascending numbers, partition by partition.
    terms = ", ".join(t.sql() for t in order)
    return f"{STEP}ORDER BY {terms}" if order and not rendered.in_order else "", "monotonically_increasing_id()"
