"""Nodes that look at the groups of their records: reshapes and culls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinker_spark.config.model.order import SortField
from clinker_spark.plan.facts import Required, Sorting
from clinker_spark.plan.nodes.fields import program_fields
from clinker_spark.plan.nodes.narrow import NarrowPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedPlan(NarrowPlan):
    """Records keep what they carry, but leave group by group. What is decided about one depends on the others."""

    partition_by: tuple[str, ...]
    order_by: tuple[SortField, ...]

    narrow = False
    exchanges = True

    @property
    def own_columns(self) -> frozenset[str]:
        """Those that its programs hand to each other."""
        return frozenset()

    def in_order(self, before: Sequence[bool]) -> bool:
        return False

    def sorting(self, before: Sequence[Sorting]) -> Sorting:
        return ()

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        columns = program_fields(*self.programs) - self.own_columns
        columns |= {*self.partition_by, *(item.field for item in self.order_by)}
        document = need.document or self.reads_file_values
        return Required(need.columns | columns, True, document, need.event, self.source_members | need.members)

    @property
    def partitioned_by(self) -> tuple[str, ...]:
        return self.partition_by
