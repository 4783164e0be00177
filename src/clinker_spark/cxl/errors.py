"""How a CXL program can fail: before the run (`CxlError`) and on a record (`EvalError`).

The messages of failed records stand here, or in the row of their builtin, because both engines give them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.core.span import NO_SPAN, Span


class ErrorKind(Enum):
    """Why a record failed. The value is what stands in the error channel and in dead letters."""

    TYPE_MISMATCH = "type_mismatch"
    DIVISION_BY_ZERO = "division_by_zero"
    CONVERSION_FAILED = "conversion_failed"
    INTEGER_OVERFLOW = "integer_overflow"
    STRING_TOO_LARGE = "string_too_large"
    EXPANSION_LIMIT_EXCEEDED = "expansion_limit_exceeded"
    DUPLICATE_MAP_KEY = "duplicate_map_key"
    CONSTRUCTION_LIMIT_EXCEEDED = "construction_limit_exceeded"
    INVALID_FORMAT = "invalid_format"


NO_WINDOW = "there is no window here: the node has no analytic_window"
NULL_SOURCE = "a comprehension needs an array, but its source is null"
NULL_CONDITION = "the condition of a comprehension is null"
DUPLICATE_KEY = "the map literal has this key twice"
NULL_KEY = "a map key is null"
NOT_AN_ARRAY = "emit each needs an array to loop over"


def expansion_message(limit: int) -> str:
    """The message of a record that `emit each` makes too many records of."""
    return f"emit each made more than {limit} records from one"


class Fail(Exception):
    """Raised by a builtin's interpreter function; the interpreter adds message, span and field."""

    def __init__(self, kind: ErrorKind, value: object = None, message: str | None = None) -> None:
        self.kind = kind
        self.value = value
        self.message = message
        super().__init__(kind.value)


class CxlError(ClinkerError):
    """A program that did not compile. `phase` is parse, resolve or typecheck: the first phase that failed."""

    def __init__(self, phase: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.phase = phase
        super().__init__(diagnostics)


class EvalError(Exception):
    """A record that failed: `kind` (a string of `ErrorKind`), message, emit field being computed, offending value."""

    def __init__(
        self, kind: str, message: str, *, field: str | None = None, value: str | None = None, span: Span = NO_SPAN
    ) -> None:
        self.kind = kind
        self.message = message
        self.field = field
        self.value = value
        self.span = span
        super().__init__(message)
