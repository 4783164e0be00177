"""Envelopes: what stands before and behind the records of a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.plan.facts import Estimate, Required
from clinker_spark.plan.memory import SORT, Holder
from clinker_spark.plan.nodes.framing import WIRED, Sections
from clinker_spark.plan.nodes.transform import TransformPlan


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopePlan(TransformPlan):
    """Gives each record the values of the headers of its document. Its second input, if there is one, are records that
    are such headers."""

    kind = "envelope"

    made_sections: Sections

    @property
    def envelope(self) -> Sections | None:
        return self.made_sections

    @property
    def wired(self) -> tuple[str, ...]:
        """The columns of the records that are headers; none if they are not its second input."""
        return tuple(self.made_sections.headers[WIRED]) if len(self.inputs) > 1 else ()

    @property
    def exchanges(self) -> bool:
        return bool(self.wired)

    @property
    def holder(self) -> Holder:
        return SORT if self.wired else super().holder

    def estimate(self, before: Sequence[Estimate | None]) -> Estimate | None:
        return before[0]

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        by_file = bool(self.wired) and self.made_sections.strategy == "preserve"
        if i:
            return Required(frozenset(self.wired), document=by_file)
        need = super().required(i, need, in_order=in_order)
        return need | Required(document=by_file)

    def property_lines(self, need: Required) -> Iterator[str]:
        if self.wired:
            each = "each file" if self.made_sections.strategy == "preserve" else "all records"
            yield f"  header: of '{self.made_sections.wired}', one record for {each}"

    def details(self) -> dict[str, Any]:
        return {"header": self.made_sections.wired} if self.wired else {}

    @property
    def vector_reason(self) -> str | None:
        return "documents have headers and footers"

    @property
    def tag(self) -> str:
        return f"envelope:{self.made_sections.strategy}"
