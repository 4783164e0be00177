"""Routes: records go different ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.cxl.program import Program
from clinker_spark.cxl.vector.reasons import program_reason
from clinker_spark.plan.nodes.narrow import NarrowPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class RoutePlan(NarrowPlan):
    """Sends each record to the ports whose conditions it meets.

    `program` has one column: `$port`, the position of the first match, or, when all matches count, one
    column `$port.N` for each condition.
    """

    kind = "route"
    shape = "diamond"

    program: Program
    conditions: tuple[str, ...]
    default: str
    inclusive: bool

    stage = "route_eval"

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.program,)

    @property
    def vector_reason(self) -> str | None:
        return program_reason(self.program.typed)

    @property
    def ports(self) -> tuple[str, ...]:
        return (*self.conditions, self.default)

    @property
    def conserves(self) -> bool:
        return not self.inclusive

    @property
    def mode(self) -> str:
        return "inclusive" if self.inclusive else "exclusive"

    @property
    def tag(self) -> str:
        return f"route:{self.mode}"

    def sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        lines = [f"Route '{self.name}' (mode: {self.mode}):"]
        for port in self.ports:
            label = "Default" if port == self.default else "Branch"
            lines.append(f"  {label} '{port}' -> {', '.join(readers.get(port, ())) or '(unconsumed)'}")
        yield "Routes", lines

    def details(self) -> dict[str, Any]:
        return {"mode": self.mode, "ports": list(self.ports), "default": self.default}
