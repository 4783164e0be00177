"""Failures of records that go their own way: where they are is found first, and then only they are read.

A dead letter shows what stood in the file. To carry that along for every record, until it is known which ones failed,
costs more than to read the files once more: that read hands on the few records that failed, and nothing else.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.core.fast_paths import taken
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.passes.correlation import BROADCASTABLE
from clinker_spark.plan.passes.required_columns import required_of
from clinker_spark.runtime.reject.saved_letters import save
from clinker_spark.spark.rejects.correlated import failed_places
from clinker_spark.spark.scan.row_filter import RowFilter, save_row_filter
from clinker_spark.spark.session.sessions import is_local

if TYPE_CHECKING:
    from clinker_spark.runtime.run.state import RunState
    from clinker_spark.spark.build.builder import Builder


def can_read_alone(state: RunState, ends: Sequence[str], kept: int) -> bool:
    """Can the failures up to some nodes be read by themselves, and are they few, as far as is known? `kept` are those
    that readers kept."""
    if not taken("failures_alone"):
        return False
    if (
        state.inputs.small
        or state.inputs.unsorted
        or not is_local(state.spark)
        or state.failed() + kept > BROADCASTABLE
    ):
        return False
    return _arrive_alone(state.plan, ends)


def _arrive_alone(plan: Plan, ends: Sequence[str]) -> bool:
    """Does every record come to some nodes on its own way, from CSV files, whatever the others do? Then those that fail
    up to there fail again when only they are read."""
    above = {node.name for node in plan.up_to(ends)}
    sources = [source for source in plan.sources if source.name in above]
    return all(plan[name].takes_each_alone for name in above) and all(s.reader == "csv" for s in sources)


def only_for_failures(plan: Plan, ends: Sequence[str]) -> Plan:
    """The plan of a pass up to some nodes that shows which records fail there, and nothing else of them."""
    facts = plan.facts
    required = {**facts.columns.required, **required_of(plan.up_to(ends), facts.order.in_order)}
    return replace(plan, facts=replace(facts, columns=replace(facts.columns, required=required)))


def filter_failed(builder: Builder, places: Container[str], folder: Path) -> dict[str, RowFilter] | None:
    """Run that pass; by source, the records that failed at some places of the plan. None when they are not few."""
    found = save(
        failed_places([place for place in builder.rejects.failures if place.name in places]), folder / "places"
    )
    if found.rows() > BROADCASTABLE:
        return None
    row_filters: dict[str, RowFilter] = {}
    for node in builder.plan.sources:
        if node.name in builder.scans:
            own = folder / str(node.index)
            save_row_filter(own, found.places_of(node.index))
            row_filters[node.name] = RowFilter(str(own), (), keep=True)
    return row_filters
