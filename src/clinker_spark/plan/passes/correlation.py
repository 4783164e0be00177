"""Correlation keys along the plan: which hidden `$ck.*` columns each node's records have, and where they come from.

A source with a `correlation_key` stamps a column for each field of it. Aggregates whose `group_by` covers all keys are
*strict*: their records belong to one group, as their inputs did. The others are *relaxed*: their records belong to no
group, but to all the records they were made of; they carry `$ck.aggregate.<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clinker_spark.core.types import INT, Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.plan.columns import CK_AGGREGATE_PREFIX, CK_PREFIX
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
from clinker_spark.plan.passes.required import per_file

ONE_TEXT = (Kind.INT, Kind.STRING, Kind.DATE, Kind.BOOL)
"""Keys of these kinds are equal if their texts are: 0.0 and -0.0 are one key with two."""

FEW = 200_000
"""Up to so many taken back records, or dirty groups, are held by every task."""
MOST_FAILURES = 2_000_000
"""Up to so many failed records, their places and keys are handed to the readers."""


@dataclass(frozen=True)
class Keys:
    """The correlation columns of a node's records."""

    columns: Mapping[str, Type] = field(default_factory=dict)
    """All of them, with their types."""
    sources: tuple[str, ...] = ()
    """The sources with a key whose records are in these."""
    single: bool = True
    """Was each record read from one source? Those of joins and aggregates were not."""
    order: tuple[str, ...] = ()
    """All columns that an output can write, the hidden ones at their places."""

    @property
    def own(self) -> tuple[str, ...]:
        """The columns that sources stamped."""
        return tuple(name for name in self.columns if not name.startswith(CK_AGGREGATE_PREFIX))


def key_columns(source: SourcePlan) -> tuple[str, ...]:
    """`$ck.order_id` for a source with `correlation_key: order_id`."""
    return tuple(CK_PREFIX + name for name in source.config.correlation_key or ())


def correlation(nodes: Sequence[PlanNode]) -> dict[str, Keys]:
    """The keys of every node."""
    found: dict[str, Keys] = {}
    rewritten: dict[str, set[str]] = {}
    for node in nodes:
        before = [found[ref.node] for ref in node.inputs]
        found[node.name] = _keys(node, before, rewritten)
    return found


def _keys(node: PlanNode, before: list[Keys], rewritten: dict[str, set[str]]) -> Keys:
    changed: set[str] = set().union(*(rewritten.get(ref.node, set()) for ref in node.inputs))
    rewritten[node.name] = changed
    if isinstance(node, SourcePlan):
        columns = {CK_PREFIX + n: node.schema[n] for n in node.config.correlation_key or ()}
        return Keys(columns, (node.name,) if columns else (), True, (*node.schema, *columns))
    if isinstance(node, AggregatePlan):
        return _aggregate(node, before[0], changed)
    if isinstance(node, CombinePlan):
        return _combined(node, before)
    if isinstance(node, TransformPlan):
        rewritten[node.name] = changed | {n for n in node.program.output if not copies(node, n)}
        order = (*before[0].order, *(n for n in node.schema if n not in before[0].order))
        return Keys(before[0].columns, before[0].sources, before[0].single, order)
    if isinstance(node, MergePlan):
        columns = {name: t for keys in before for name, t in keys.columns.items()}
        sources = tuple(dict.fromkeys(s for keys in before for s in keys.sources))
        order = (*before[0].order, *(n for keys in before[1:] for n in keys.columns if n not in before[0].order))
        return Keys(columns, sources, all(keys.single for keys in before), tuple(dict.fromkeys(order)))
    # A query makes records of its own, of which nobody knows where they come from.
    return before[0] if isinstance(node, RoutePlan | OutputPlan) else Keys(order=tuple(node.schema))


def copies(node: TransformPlan, name: str) -> bool:
    """Does a transform emit a column as it is? `emit id = id` rewrites nothing."""
    emits = [s for s in node.program.typed.statements if isinstance(s, ir.TEmit) and s.name == name]
    return len(emits) == 1 and isinstance(emits[0].value, ir.Field) and emits[0].value.name == name


def _aggregate(node: AggregatePlan, before: Keys, changed: set[str]) -> Keys:
    if is_relaxed(node, before, changed):
        columns = {f"{CK_AGGREGATE_PREFIX}{node.name}": INT}
        return Keys(columns, before.sources, False, (*node.schema, *columns))
    return Keys(before.columns, before.sources, False, (*node.schema, *before.columns))


def is_relaxed(node: AggregatePlan, before: Keys, changed: set[str]) -> bool:
    """Do its groups cut across correlation groups? Also when a key column is not what it was at the source."""
    if not before.columns:
        return False
    fields = {name.removeprefix(CK_PREFIX) for name in before.own}
    after_relaxed = len(before.own) < len(before.columns)
    return after_relaxed or not fields <= set(node.group_by) - changed


def _combined(node: CombinePlan, before: list[Keys]) -> Keys:
    by_input = dict(zip(node.qualifiers, before, strict=True))
    driver = by_input[node.driver]
    wanted = node.config.propagate_ck
    columns = dict(driver.columns)
    if wanted.keys != "driver":
        for keys in by_input.values():
            columns |= {n: t for n, t in keys.columns.items() if n not in columns}
    if wanted.keys == "named":
        columns = {n: t for n, t in columns.items() if n.removeprefix(CK_PREFIX) in wanted.named}
    carried = [keys for keys in before if any(name in columns for name in keys.own)]
    sources = tuple(dict.fromkeys(s for keys in carried for s in keys.sources))
    return Keys(columns, sources, False, (*node.schema, *columns))


def relaxed_aggregates(plan: Plan) -> list[AggregatePlan]:
    """The aggregates that lose only what failed, when something does."""
    return [
        node
        for node in plan.of_kind(AggregatePlan)
        if f"{CK_AGGREGATE_PREFIX}{node.name}" in plan.keys[node.name].columns
    ]


def strata(plan: Plan) -> dict[str, int]:
    """By node: how many relaxed aggregates stand before it, on the way with the most of them.

    Failures are judged in this order. What fails before any total is retracted first; then totals are made again, and
    only those that remain are judged by what follows them."""
    found: dict[str, int] = {}
    for node in plan.nodes:
        found[node.name] = max((total_stratum(plan, found, ref.node) for ref in node.inputs), default=0)
    return found


def total_stratum(plan: Plan, before: Mapping[str, int], node: str) -> int:
    """When the records that a node makes are judged: those of a relaxed aggregate after what it was made of."""
    return before[node] + (f"{CK_AGGREGATE_PREFIX}{node}" in plan.keys[node].columns)


def carried_fields(plan: Plan, source: SourcePlan) -> list[tuple[str, ...]]:
    """The fields of a source's key that a record can have when it fails. A combine may pass only some of them on:
    then all groups are concerned that have these values."""
    shapes = {tuple(n for n in key_columns(source) if n in keys.columns) for keys in plan.keys.values()}
    return sorted(shapes - {()}, key=lambda names: (-len(names), names))


def blamed(plan: Plan, stage: int) -> tuple[bool, tuple[int, ...]]:
    """Whose groups a failure at a node concerns: is it the source that the record was read from, where one is known?
    And which sources are it, else: all that the record was made of."""
    node = plan.nodes[stage]
    keys = plan.keys[node.inputs[0].node if isinstance(node, OutputPlan) else node.name]
    if keys.single:
        return True, ()
    others = tuple(source.index for source in plan.sources if source.name in keys.sources)
    return isinstance(node, AggregatePlan) and plan.keys[node.inputs[0].node].single, others


def merged_with(plan: Plan, source: SourcePlan) -> list[SourcePlan]:
    """The sources, itself included, whose records with the same key are one group when their number counts: those it
    is merged with that have the same key."""
    family = {source.name}
    for node in plan.of_kind(MergePlan):
        above = {n.name for n in plan.upstream(node.name) if isinstance(n, SourcePlan)}
        family |= above if source.name in above else set()
    return [other for other in plan.sources if other.name in family and key_columns(other) == key_columns(source)]


def is_correlated(plan: Plan) -> bool:
    """Does any source have a correlation key?"""
    return any(source.config.correlation_key for source in plan.sources)


def flows_by_itself(plan: Plan) -> bool:
    """Does every record of the one source go its own way, whatever the others do? Then a group can be looked at, or
    left out, without the rest."""
    if len(plan.sources) != 1 or not plan.sources[0].config.correlation_key:
        return False
    keys = [plan.sources[0].schema[name] for name in plan.sources[0].config.correlation_key]
    if any(key.is_dynamic or key.kind not in ONE_TEXT for key in keys):
        return False
    return not plan.of_kind(MergePlan) and all(map(_takes_each_alone, plan.nodes))


def arrive_alone(plan: Plan, ends: Sequence[str]) -> bool:
    """Does every record come to some nodes on its own way, from CSV files, whatever the others do? Then those that fail
    up to there fail again when only they are read."""
    above = nodes_up_to(plan, ends)
    return all(map(_takes_each_alone, above)) and all(
        s.config.type == "csv" for s in above if isinstance(s, SourcePlan)
    )


def nodes_up_to(plan: Plan, ends: Sequence[str]) -> tuple[PlanNode, ...]:
    """Some nodes, and all that stand before them."""
    names = {node.name for end in ends for node in plan.upstream(end)} | set(ends)
    return tuple(node for node in plan.nodes if node.name in names)


def _takes_each_alone(node: PlanNode) -> bool:
    """Is what a node does with a record the same, whatever the other records are?"""
    if isinstance(node, TransformPlan):
        return not node.shuffles
    if isinstance(node, MergePlan):  # taking turns says who comes next by who came before
        return not node.interleave
    return isinstance(node, SourcePlan | RoutePlan | OutputPlan)


def by_rows(plan: Plan) -> bool:
    """Are groups held back without a look at the others? Readers of CSV files can choose records."""
    handling = plan.file.error_handling
    return flows_by_itself(plan) and handling.retraction_scope == "record" and plan.sources[0].config.type == "csv"


def writes_every_record(plan: Plan) -> bool:
    """Is there one output, with one line for each record that does not fail, in the order of the source?"""
    if len(plan.outputs) != 1 or not flows_by_itself(plan) or plan.of_kind(RoutePlan):
        return False
    config = plan.outputs[0].config
    several = config.split is not None or per_file(plan.outputs[0])
    choosing = (ir.TFilter, ir.TEach, ir.TDistinct)
    chosen = any(ir.has_statement(node.program.typed.statements, choosing) for node in plan.of_kind(TransformPlan))
    return not (several or chosen or config.sort_order or config.type == "parquet")
