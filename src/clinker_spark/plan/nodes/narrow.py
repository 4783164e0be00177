"""What nodes share that each record goes through by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinker_spark.plan.facts import Estimate, Keys, Required, Sorting
from clinker_spark.plan.nodes.base import PlanNode, StreamRef
from clinker_spark.plan.nodes.fields import program_fields


@dataclass(frozen=True, eq=False, kw_only=True)
class NarrowPlan(PlanNode):
    """A node that each record of its first input goes through by itself, in its place, and with all that it carries.
    At most one record leaves it for each that comes."""

    chains = True
    whole_records = True
    mixes_files = False

    @property
    def narrow(self) -> bool:
        return True

    @property
    def exchanges(self) -> bool:
        return False

    @property
    def multiplies(self) -> bool:
        return False

    @property
    def carried_from(self) -> tuple[StreamRef, ...]:
        return self.inputs[:1]

    @property
    def made_of(self) -> tuple[StreamRef, ...]:
        return self.inputs[:1]

    def in_order(self, before: Sequence[bool]) -> bool:
        return before[0]

    def sorting(self, before: Sequence[Sorting]) -> Sorting:
        return before[0]

    def keys(self, before: Sequence[Keys]) -> Keys:
        return before[0]

    def estimate(self, before: Sequence[Estimate | None]) -> Estimate | None:
        return before[0]

    def event_column(self, before: Sequence[str | None]) -> str | None:
        return before[0] if before[0] in self.schema and before[0] not in self.rewritten else None

    def several_documents(self, before: Sequence[bool]) -> bool:
        return before[0]

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        columns = need.columns | program_fields(*self.programs)
        document = need.document or self.reads_file_values
        return Required(columns, need.arrival, document, need.event, self.source_members | need.members)
