"""What stands around the records of a document: headers and footers, as sections with fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clinker_spark.core.types import Type
from clinker_spark.plan.columns import ENVELOPE_PREFIX

WIRED = "header"
"""The section with the columns of a record that is the header of a document."""


def envelope_column(section: str, name: str) -> str:
    """The hidden column with a value of a header: the same in all records of a document.

    >>> envelope_column("head", "batch")
    '$envelope.head.batch'
    """
    return f"{ENVELOPE_PREFIX}{section}.{name}"


@dataclass(frozen=True)
class Total:
    """A field of a footer: count, or sum, avg, min or max of a column."""

    function: str
    column: str | None
    type: Type


@dataclass(frozen=True)
class Sections:
    """The headers and footers that an envelope knows of."""

    strategy: str
    """`preserve`: each input file is a document. `concat`: all records are one."""
    headers: Mapping[str, Mapping[str, Type]]
    """By section: its fields and their types, in order."""
    footers: Mapping[str, Mapping[str, Total]]
    echoed: frozenset[str] = frozenset()
    """The sections that say what files say."""
    wired: str | None = None
    """The node whose records are the headers (`WIRED`)."""

    def fields(self, section: str) -> list[tuple[str, str, Type]]:
        """Of a header: field, hidden column and type."""
        return [(name, envelope_column(section, name), t) for name, t in self.headers[section].items()]


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
