"""Groups that are too large to be withheld: is there one? Mostly that is known without a look at the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.spark.build.passes import Pass, Show
from clinker_spark.spark.operators.source import watched_size
from clinker_spark.spark.rejects import correlated as ops

if TYPE_CHECKING:
    from clinker_spark.runtime.run.state import RunState


def has_large_groups(state: RunState, *, failures: bool) -> bool:
    """May a group have more records than `max_group_buffer`? Filtered records are not counted yet. Small inputs with
    failures are looked at anyway: nothing is counted for them before that."""
    plan, most = state.plan, state.handling.max_group_buffer
    seen: set[str] = set()
    for node in plan.sources:
        if node.name in seen or not node.config.correlation_key:
            continue
        family = [plan.source(name) for name in plan.facts.correlation.families[node.name]]
        seen |= {other.name for other in family}
        shown = Pass(Show(keys=True))
        if not _may_exceed(state, family, most):
            continue
        if (state.inputs.small and failures) or ops.has_large_group(state.new_builder(shown), family, most):
            return True
    return False


def _may_exceed(state: RunState, family: Sequence[SourcePlan], most: int) -> bool:
    """Could a group be too large? Says no only where that is certain, without a pass of its own for large limits."""
    if sum(file.size for node in family for file in state.files[node.name]) // 2 <= most:
        return False
    if sum(state.source_records(node.name) for node in family) <= most:
        return False
    largest = [watched_size(state.builder, node) for node in family]
    return None in largest or sum(size for size in largest if size is not None) > most / 2
