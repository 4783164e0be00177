"""Keys that are right by themselves and have no effect in this graph. They are told (W027), not refused: the graph may
still grow what they are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clinker_spark.config.findings.translate import finding_at
from clinker_spark.config.model.base import without_effect
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan

_OF_GROUPS = ("max_group_buffer", "correlation_fanout_policy", "retraction_scope")


def find_idle_keys(plan: Plan, facts: Facts) -> Facts:
    found = [] if facts.correlation.correlated else [*_settings_of_groups(plan)]
    for node in plan.nodes:
        found += node.idle_keys([facts.correlation.keys[ref.node] for ref in node.inputs])
    return replace(facts, warnings=tuple(found))


def _settings_of_groups(plan: Plan) -> Iterator[Diagnostic]:
    handling, why = plan.file.error_handling, "no source has a 'correlation_key'"
    found = [
        *without_effect(handling, _OF_GROUPS, why),
        *without_effect(handling.dlq, ("include_retracted",), why, "dlq"),
    ]
    yield from (finding_at(finding, plan.file.document, ("error_handling",)) for finding in found)
