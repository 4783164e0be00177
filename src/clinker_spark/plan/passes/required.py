"""What each node must provide for the nodes after it: columns, order, identity. Nobody pays for what nobody reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from clinker_spark.config.templates import PER_FILE, Token, parse_template
from clinker_spark.cxl import ir
from clinker_spark.cxl.hidden import lookup_column
from clinker_spark.cxl.program import Program
from clinker_spark.cxl.system import SOURCE_MEMBERS
from clinker_spark.plan.nodes import (
    AggregatePlan,
    CombinePlan,
    MergePlan,
    OutputPlan,
    Plan,
    PlanNode,
    RoutePlan,
    SourcePlan,
    TransformPlan,
)
from clinker_spark.plan.query.node import QueryPlan


@dataclass
class Need:
    """`columns` that some reader uses, `arrival` (a column that orders the records), `document` (the file a
    record belongs to), `event` (when it happened) and the `$source` members."""

    columns: set[str] = field(default_factory=set)
    arrival: bool = False
    document: bool = False
    event: bool = False
    """The time of a record."""
    members: set[str] = field(default_factory=set)

    def add(self, other: Need) -> None:
        self.columns |= other.columns
        self.arrival |= other.arrival
        self.document |= other.document
        self.event |= other.event
        self.members |= other.members


@dataclass(frozen=True)
class Order:
    """How the records of a node are ordered: by partition and place (`in_place`), or only by their arrival."""

    in_place: bool


def orders(plan: Plan, *, moved: bool = False) -> dict[str, Order]:
    """Whether each node's records stand in their order already, or must be sorted when order counts. `moved`: not
    even those of sources do."""
    result: dict[str, Order] = {}
    for node in plan.nodes:
        before = [result[ref.node] for ref in node.inputs]
        in_place = all(order.in_place for order in before) and not (moved and isinstance(node, SourcePlan))
        if isinstance(node, AggregatePlan | QueryPlan):
            in_place = False
        elif isinstance(node, TransformPlan):
            in_place = in_place and not node.shuffles
        elif isinstance(node, MergePlan):
            in_place = in_place and not node.interleave
        elif isinstance(node, CombinePlan):
            driver = before[node.qualifiers.index(node.driver)]
            in_place = driver.in_place and node.keeps_places
        result[node.name] = Order(in_place)
    return result


def needs(plan: Plan, *, moved: bool = False) -> dict[str, Need]:
    """By node: what must leave it. `moved`: the records of sources do not come in their order."""
    found = {node.name: Need() for node in plan.nodes}
    order = orders(plan, moved=moved)
    for node in reversed(plan.nodes):
        for i, ref in enumerate(node.inputs):
            if isinstance(node, TransformPlan) and i:
                found[ref.node].add(_of_looked_up(node))
            elif isinstance(node, CombinePlan):
                found[ref.node].add(_of_combined(node, node.qualifiers[i], found[node.name]))
            else:
                found[ref.node].add(_of_input(node, found[node.name], order[ref.node]))
        if isinstance(node, SourcePlan) and found[node.name].event:
            found[node.name].columns.add(node.config.watermark.column)
    return found


def _of_input(node: PlanNode, need: Need, order: Order) -> Need:
    """What a node needs of its input, given what is needed of itself."""
    columns = set(need.columns)
    arrival, document = need.arrival, need.document
    members = _source_members(node)
    document |= bool(members - set(SOURCE_MEMBERS))  # a variable of the file
    if isinstance(node, OutputPlan):
        columns = {source for _, source in node.columns} | {item.field for item in node.config.sort_order}
        if node.config.split is not None and node.config.split.group_key is not None:
            columns.add(node.config.split.group_key)
        arrival = bool(node.config.sort_order) or (node.config.order == "source" and not order.in_place)
        document = per_file(node)
    elif isinstance(node, TransformPlan):
        columns = (columns - set(node.program.output)) | _fields(*node.programs)
        columns -= set(node.schema) - _incoming(node)
        scopes = {declared.scope for declared in node.declares}
        arrival |= node.shuffles or bool(scopes & {"pipeline", "source"})
        document |= "source" in scopes
        for log in node.record_logs:
            columns |= set(log.rule.fields) | _fields(*log.programs)
        arrival |= bool(node.record_logs)
        if node.window is not None and node.window.lookup is not None:
            columns -= {lookup_column(i) for i in range(len(node.program.typed.lookups))}
            columns |= _fields(node.window.lookup.keys)
        elif node.window is not None:
            columns |= set(node.window.group_by) | {item.field for item in node.window.sort_by}
    elif isinstance(node, RoutePlan):
        columns |= _fields(node.program)
    elif isinstance(node, AggregatePlan):
        columns = _fields(node.program) | set(node.group_by)
        return Need(columns, True, node.per_document, node.window is not None, members)
    elif isinstance(node, QueryPlan):
        return Need(set(node.reads), True, members=members)
    elif isinstance(node, MergePlan):
        columns = columns or set(node.schema)
        if node.interleave:
            arrival = True
    return Need(columns, arrival, document, need.event, members | need.members)


def _source_members(node: PlanNode) -> set[str]:
    """What is read of a record's own source; `$source.orders.x` is the same for all records."""
    return {path[0] for namespace, path in node.system_members() if namespace == "source" and len(path) == 1}


def _of_looked_up(node: TransformPlan) -> Need:
    """What a transform needs of the records that its window looks into."""
    assert node.window is not None and node.window.lookup is not None
    ordered = {item.field for item in node.window.sort_by}
    return Need(node.window.lookup.reads | set(node.window.group_by) | ordered, arrival=True)


def _of_combined(node: CombinePlan, qualifier: str, need: Need) -> Need:
    """What a combine needs of one of its inputs. Only the driver's records have an identity afterwards."""
    prefix = qualifier + "."
    fields = {name for e in node.expressions() for name in _fields_of(e)}
    columns = {name.removeprefix(prefix) for name in fields if name.startswith(prefix)}
    if qualifier != node.driver:
        if node.match == "collect" and qualifier in need.columns:
            columns = set(node.schemas[qualifier])
        return Need(columns, arrival=True)
    if node.match == "collect":
        columns |= need.columns & set(node.schemas[qualifier])
    members = _source_members(node)
    document = need.document or bool(members - set(SOURCE_MEMBERS))
    arrival = need.arrival or not node.keeps_places
    return Need(columns, arrival, document, need.event, members | need.members)


def per_file(node: OutputPlan) -> bool:
    """Does the output make one file of each input file?"""
    return any(isinstance(part, Token) and part.name in PER_FILE for part in parse_template(node.config.path))


def _incoming(node: TransformPlan) -> set[str]:
    return set(node.program.typed.schema)


def _fields(*programs: Program) -> set[str]:
    names: set[str] = set()
    for program in programs:
        names |= set(program.typed.group_by)
        for expression in program.typed.expressions():
            names |= _fields_of(expression)
    return names


def _fields_of(expression: ir.TExpr) -> set[str]:
    names = {node.name for node in expression.walk() if isinstance(node, ir.Field)}
    return names | {n.field for n in expression.walk() if isinstance(n, ir.WindowRef) and n.field is not None}


def source_columns(plan: Plan, source: SourcePlan) -> frozenset[str]:
    """The columns of a source that anything reads."""
    return frozenset(plan.needs[source.name].columns & set(source.schema))
