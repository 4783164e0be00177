"""Merges: several streams as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clinker_spark.plan.facts import EXEC_SKETCH, FILE_METADATA, Estimate, Keys, Required
from clinker_spark.plan.nodes.base import PlanNode, StreamRef


@dataclass(frozen=True, eq=False, kw_only=True)
class MergePlan(PlanNode):
    """Several streams as one."""

    kind = "merge"
    mark = "└──<"
    unites = True

    interleave: bool = False
    seed: int | None = None

    whole_records = True
    exchanges = False
    multiplies = False
    conserves = True
    mixes_files = False

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        return self.inputs

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(ref.node for ref in self.inputs)

    @property
    def vector_reason(self) -> str | None:
        return "'interleave' asks who came before" if self.interleave else None

    @property
    def takes_each_alone(self) -> bool:
        return not self.interleave  # taking turns says who comes next by who came before

    def in_order(self, before: Sequence[bool]) -> bool:
        return all(before) and not self.interleave

    def keys(self, before: Sequence[Keys]) -> Keys:
        columns = {name: t for keys in before for name, t in keys.columns.items()}
        sources = tuple(dict.fromkeys(source for keys in before for source in keys.sources))
        first = before[0].order
        order = (*first, *(name for keys in before[1:] for name in keys.columns if name not in first))
        return Keys(columns, sources, all(keys.single for keys in before), tuple(dict.fromkeys(order)))

    def estimate(self, before: Sequence[Estimate | None]) -> Estimate | None:
        known = [item for item in before if item is not None]
        if len(known) < len(before):
            return None
        provenance = EXEC_SKETCH if all(item.provenance == EXEC_SKETCH for item in known) else FILE_METADATA
        return Estimate(sum(item.rows for item in known), sum(item.bytes for item in known), provenance)

    def event_column(self, before: Sequence[str | None]) -> str | None:
        return before[0] if len(set(before)) == 1 else None

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        columns = need.columns or frozenset(self.schema)
        return replace(need, columns=columns, arrival=need.arrival or self.interleave)

    @property
    def tag(self) -> str:
        return "merge:interleave" if self.interleave else "merge:concat"
