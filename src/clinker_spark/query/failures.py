"""How a query program can fail: before it runs (`QueryError`) and while it runs (`Failed`)."""

from __future__ import annotations

from clinker_spark.core.errors import ClinkerError
from clinker_spark.core.span import Span


class QueryError(ClinkerError):
    """A program that is wrong, or that failed. Its diagnostics say where."""


class Failed(Exception):
    """Raised while a program runs. Whoever knows the place adds it; `code` is that of the diagnostic."""

    def __init__(self, message: str, help_text: str | None = None, *, span: Span | None = None, code: str = "E705"):
        self.message = message
        self.help = help_text
        self.span = span
        self.code = code
        super().__init__(message)
