"""Envelopes: what stands before and behind the records of a document."""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.types import Type
from clinker_spark.plan.nodes.transform import TransformPlan

ENVELOPE_PREFIX = "$envelope."


def envelope_column(section: str, name: str) -> str:
    """The hidden column with a value of a header: the same in all records of a document."""
    return f"{ENVELOPE_PREFIX}{section}.{name}"


@dataclass(frozen=True)
class Total:
    """A field of a footer: count, or sum, avg, min or max of a column."""

    function: str
    column: str | None
    type: Type


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopePlan(TransformPlan):
    """Gives each record the values of the headers of its document."""

    kind = "envelope"

    strategy: str
    headers: dict[str, dict[str, Type]]
    """By section: its fields and their types, in order."""
    footers: dict[str, dict[str, Total]]
    echoed: frozenset[str] = frozenset()
    """The sections that say what files say."""

    @property
    def vector_reason(self) -> str | None:
        return "documents have headers and footers"

    @property
    def tag(self) -> str:
        return f"envelope:{self.strategy}"


@dataclass(frozen=True)
class Framing:
    """What an output writes around the records of each document."""

    by_file: bool
    """Is each input file a document? Else all records are one."""
    header: tuple[tuple[str, str, Type], ...] | None
    """Field, hidden column and type; None without a header."""
    footer: tuple[tuple[str, str | Total, Type], ...] | None
    """The same, or totals over the records that are written."""
    echoed: frozenset[str] = frozenset()
    """The hidden columns that say what files say."""

    @property
    def columns(self) -> set[str]:
        """Columns of the records that totals are made of."""
        totals = [what for _, what, _ in self.footer or () if isinstance(what, Total)]
        return {total.column for total in totals if total.column is not None}
