"""Where a pass looks for failures: the one before it has counted them, so not everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clinker_spark.runtime.reject.source_letters import SourceLetters, diverting_nodes
from clinker_spark.spark.rejects.collected import Diverted

if TYPE_CHECKING:
    from clinker_spark.plan.graph import Plan
    from clinker_spark.runtime.run.state import RunState
    from clinker_spark.spark.build.builder import Builder


@dataclass(frozen=True)
class Suspects:
    """What the last pass that wrote outputs says about where records fail."""

    state: RunState
    kept_bad: SourceLetters | None
    """What the readers of the first pass kept aside; None when they kept nothing, and nobody knows."""
    first: bool
    """Is this the first look? What readers kept has not been retracted then."""

    def ends(self, *, outputs_too: bool) -> list[str]:
        """How far a pass must go: to the nodes at which the last one counted failures, and to the outputs that it did
        not write; to all outputs when nobody knows, or when they are asked for."""
        state = self.state
        counted = state.builder.metrics
        outputs = [node.name for node in state.plan.outputs]
        if state.unsure or outputs_too or (self.first and self.kept_bad is None):
            return outputs
        found = set(counted.failed())
        if self.first and self.kept_bad is not None:
            diverting = diverting_nodes(state, self.kept_bad)
            if diverting is None:
                return outputs
            found |= diverting
        found |= {name for name in outputs if name not in counted.counts}
        named = {name.partition(".")[0] for name in found}  # no name of a node has a dot
        return [node.name for node in state.plan.nodes if node.name in named]

    def suspected(self, builder: Builder, *, everywhere: bool) -> Callable[[Diverted], bool]:
        """Is a place looked at? Not where the last pass counted no failure, and, unless `everywhere`, not behind totals
        that are made again because of failures before them."""
        plan, counted = self.state.plan, self.state.builder.metrics
        kept = self._sources_with_bad_records() if self.first else set()
        known = {
            place.name: counted.counted(place.name).get("failed", 0)
            for place in builder.rejects.failures
            if place.name in counted.counts and not self.state.unsure
        }
        certain = [_strata(plan, place)[1] for place in builder.rejects.failures if known.get(place.name)]
        last = None if everywhere else min(certain, default=None)

        def is_suspected(place: Diverted) -> bool:
            if place.name in known and not known[place.name] and not kept & set(place.stream.carried):
                return False
            return last is None or _strata(plan, place)[0] <= last

        return is_suspected

    def _sources_with_bad_records(self) -> set[str]:
        sources = self.state.plan.sources
        if self.kept_bad is None:
            return {node.name for node in sources}
        return {sources[count.source].name for count in self.kept_bad.kept if count.source is not None}


def _strata(plan: Plan, place: Diverted) -> tuple[int, int]:
    """The lowest and the highest stratum of the failures that are diverted at a place."""
    correlation = plan.facts.correlation
    found = [0] if not place.stream.carried else []
    for name in place.stream.carried:
        # The records that a total cannot be made of are diverted before it; what goes on from there are totals.
        total = plan[name].totals and place.name != f"{name}.rows"
        found.append((correlation.made_strata if total else correlation.strata)[name])
    return min(found), max(found)
