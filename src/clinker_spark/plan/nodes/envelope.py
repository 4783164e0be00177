"""Envelopes: what stands before and behind the records of a document."""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.plan.nodes.framing import Sections
from clinker_spark.plan.nodes.transform import TransformPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopePlan(TransformPlan):
    """Gives each record the values of the headers of its document."""

    kind = "envelope"

    made_sections: Sections

    @property
    def envelope(self) -> Sections | None:
        return self.made_sections

    @property
    def vector_reason(self) -> str | None:
        return "documents have headers and footers"

    @property
    def tag(self) -> str:
        return f"envelope:{self.made_sections.strategy}"
