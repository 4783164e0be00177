"""Failures of records that go their own way: where they are is found first, and then only they are read.

A dead letter shows what stood in the file. To carry that along for every record, until it is known which ones failed,
costs more than to read the files once more: that read hands on the few records that failed, and nothing else.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from clinker_spark.plan.passes.correlation import FEW, arrive_alone, nodes_up_to
from clinker_spark.plan.passes.required import needs
from clinker_spark.runtime.reject.saved_letters import save
from clinker_spark.spark.rejects.correlated import failed_places
from clinker_spark.spark.scan.row_filter import Chosen, save_chosen
from clinker_spark.spark.session.sessions import is_local

if TYPE_CHECKING:
    from clinker_spark.runtime.run.state import RunState
    from clinker_spark.spark.operators.build import Builder


def can_read_alone(state: RunState, ends: Sequence[str], kept: int) -> bool:
    """Can the failures up to some nodes be read by themselves, and are they few, as far as is known? `kept` are those
    that readers kept."""
    if state.small or state.unsorted or not is_local(state.spark) or state.failed() + kept > FEW:
        return False
    return arrive_alone(state.plan, ends)


def only_for_failures(builder: Builder, ends: Sequence[str]) -> None:
    """A pass up to some nodes that shows which records fail there, and nothing else of them."""
    builder.texts = False
    part = replace(builder.plan, nodes=nodes_up_to(builder.plan, ends))
    builder.plan = replace(builder.plan, needs={**builder.plan.needs, **needs(part)})


def choose_failed(builder: Builder, places: Container[str], folder: Path) -> dict[str, Chosen] | None:
    """Run that pass; by source, the records that failed at some places of the plan. None when they are not few."""
    found = save(failed_places([place for place in builder.failures if place.name in places]), folder / "places")
    if found.rows() > FEW:
        return None
    chosen: dict[str, Chosen] = {}
    for node in builder.plan.sources:
        if node.name in builder.scans:
            own = folder / str(node.index)
            save_chosen(own, found.places_of(node.index))
            chosen[node.name] = Chosen(str(own), (), keep=True)
    return chosen
