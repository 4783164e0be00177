"""Correlation keys along the plan: which hidden `$ck.*` columns each node's records have, and where they come from.

A source with a `correlation_key` stamps a column for each field of it. Aggregates whose `group_by` covers all keys are
*strict*: their records belong to one group, as their inputs did. The others are *relaxed*: their records belong to no
group, but to all the records they were made of; they carry `$ck.aggregate.<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clinker_spark.plan.columns import CK_AGGREGATE_PREFIX, CK_PREFIX
from clinker_spark.plan.facts import Facts, Keys
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.source import SourcePlan

BROADCASTABLE = 200_000
"""Up to so many retracted records, or groups with a failure, are broadcast."""
MOST_FAILURES = 2_000_000
"""Up to so many failed records, their places and keys are handed to the readers."""


def find_keys(plan: Plan, facts: Facts) -> Facts:
    keys: dict[str, Keys] = {}
    for node in plan.nodes:
        keys[node.name] = keys_of(node, keys)
    found = replace(
        facts.correlation,
        keys=keys,
        correlated=any(source.key_columns or source.by_document for source in plan.sources),
        relaxed=tuple(
            node.name for node in plan.nodes if f"{CK_AGGREGATE_PREFIX}{node.name}" in keys[node.name].columns
        ),
        recomputed=tuple(node.name for node in plan.nodes if _cuts_groups(node, keys[node.name])),
        carried_keys={source.name: _carried(source, keys) for source in plan.sources},
    )
    return replace(facts, correlation=found)


def keys_of(node: PlanNode, found: Mapping[str, Keys]) -> Keys:
    """The correlation columns of one node's records."""
    before = [found[ref.node] for ref in node.inputs]
    return replace(node.keys(before), rewritten=node.rewritten.union(*(keys.rewritten for keys in before)))


def _cuts_groups(node: PlanNode, keys: Keys) -> bool:
    fields = {name.removeprefix(CK_PREFIX) for name in keys.own}
    by = {name.removeprefix(CK_PREFIX) for name in node.partitioned_by or ()}
    return node.partitioned_by is not None and bool(fields) and not fields <= by


def _carried(source: SourcePlan, keys: Mapping[str, Keys]) -> tuple[tuple[str, ...], ...]:
    if not source.key_columns:
        return ()
    shapes = {tuple(name for name in source.key_columns if name in found.columns) for found in keys.values()}
    return tuple(sorted(shapes - {()}, key=lambda names: (-len(names), names)))
