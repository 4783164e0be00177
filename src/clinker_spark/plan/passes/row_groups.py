"""Whether correlation groups can be looked at, or left out, record by record."""

from __future__ import annotations

from dataclasses import replace

from clinker_spark.core.types import Kind
from clinker_spark.plan.facts import Facts
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.source import TYPED

ONE_TEXT = (Kind.INT, Kind.STRING, Kind.DATE, Kind.BOOL)
"""Keys of these kinds are equal if their texts are: 0.0 and -0.0 are one key with two."""


def find_row_groups(plan: Plan, facts: Facts) -> Facts:
    if not _flows_by_itself(plan):
        return facts
    scope = plan.file.error_handling.retraction_scope
    # Readers of CSV files can choose records.
    by_rows = scope == "record" and plan.sources[0].reader == "csv"
    found = replace(facts.correlation, by_rows=by_rows, writes_every_record=_writes_every_record(plan))
    return replace(facts, correlation=found)


def _flows_by_itself(plan: Plan) -> bool:
    """Does every record of the one source go its own way, whatever the others do?"""
    if len(plan.sources) != 1 or not plan.sources[0].key_columns or plan.sources[0].by_document:
        return False
    keys = [plan.sources[0].schema[name] for name in plan.sources[0].config.correlation_key]
    if any(key.is_dynamic or key.kind not in ONE_TEXT for key in keys):
        return False
    return all(node.narrow for node in plan.nodes if node.inputs)


def _writes_every_record(plan: Plan) -> bool:
    if len(plan.outputs) != 1 or not all(node.one_for_one for node in plan.nodes):
        return False
    [output] = plan.outputs
    config = output.config
    several = config.split is not None or output.per_file
    return not (several or config.sort_order or config.type in TYPED)
