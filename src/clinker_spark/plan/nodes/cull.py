"""Culls: whole groups leave the stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.cxl.program import Program
from clinker_spark.plan.memory import WINDOW, Holder
from clinker_spark.plan.nodes.grouped import GroupedPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class CullPlan(GroupedPlan):
    """The records of all groups but those for which a rule is true; these leave by a port of their own, or are left
    out. `program` has one column over each group, `$rule`: the position of the first rule that is true."""

    kind = "cull"
    shape = "diamond"
    category = "aggregate_type_error"
    made_category = "aggregate_type_error"

    rules: tuple[str, ...]
    program: Program
    removed_to: str | None

    conserves = True

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)

    @property
    def ports(self) -> tuple[str, ...]:
        return () if self.removed_to is None else (self.removed_to,)

    @property
    def streams(self) -> tuple[str | None, ...]:
        return (None, *self.ports)

    @property
    def holder(self) -> Holder:
        return WINDOW

    def retraction_lines(self, sources: Sequence[str], limit: str) -> Iterator[str]:
        by = ", ".join(self.partition_by) or "<all>"
        yield f"cull '{self.name}' (source: {', '.join(sources)}, partition_by: {by}):"
        yield "  groups are judged by the records that are left; groups: unknown at plan time"

    def sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        lines = [f"Cull '{self.name}' (rules: {', '.join(self.rules)}):"]
        lines.append(f"  Kept -> {', '.join(readers.get(None, ())) or '(unconsumed)'}")
        if self.removed_to is not None:
            listed = ", ".join(readers.get(self.removed_to, ())) or "(unconsumed)"
            lines.append(f"  Removed '{self.removed_to}' -> {listed}")
        yield "Culls", lines

    def details(self) -> dict[str, Any]:
        found = {"partition_by": list(self.partition_by), "rules": list(self.rules)}
        return found if self.removed_to is None else {**found, "removed_to": self.removed_to}
