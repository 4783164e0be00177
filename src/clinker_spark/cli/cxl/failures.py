"""A record that failed, as a diagnostic: the same shape that errors found before the run have."""

from __future__ import annotations

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.registry import lookup
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.errors import EvalError

_MAX_VALUE = 60


def eval_diagnostic(error: EvalError, source: Source, row: int | None) -> Diagnostic:
    """`row 1: field 'net': division by zero`, at its place in the program, with the offending value."""
    entry = lookup(error.kind)
    parts = [f"row {row}" if row is not None else None, f"field '{error.field}'" if error.field else None]
    message = ": ".join([*(part for part in parts if part), error.message])
    if error.value is not None and error.value not in error.message:
        message += f" (value: {_shorten(error.value)})"
    return Diagnostic(
        code=entry.code if entry else "X001",
        message=message,
        source=source,
        span=_inside(error.span, source),
        help=entry.action if entry else None,
        phase="eval",
    )


def _inside(span: Span, source: Source) -> Span | None:
    return span if span.start < span.end <= len(source.text) else None


def _shorten(text: str) -> str:
    shown = text if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + "…"
    return shown.replace("\n", "\\n")
