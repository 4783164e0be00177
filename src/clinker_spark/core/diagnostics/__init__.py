"""Diagnostics: what is told to a user, as data.

`codes/` has a file for each code, which `registry.py` reads; `render.py` and `snippet.py` show findings in a terminal
and as JSON; `suggest.py` finds the word that was meant.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from clinker_spark.core.span import Source, Span


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Label:
    """A further place that explains the first one."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a registered code, a message, the place and the way out.

    `phase` is the compiler phase for CXL findings: parse, resolve, typecheck, eval.
    """

    code: str
    message: str
    source: Source | None = None
    span: Span | None = None
    help: str | None = None
    severity: Severity = Severity.ERROR
    phase: str | None = None
    labels: tuple[Label, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.code.startswith("W"):  # a warning is one, whoever makes it
            object.__setattr__(self, "severity", Severity.WARNING)
