"""What all checkers share: noting what is wrong, and looking up the type of an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.span import Source, Span
from clinker_spark.cxl.syntax import ast as cxl
from clinker_spark.query.check.declared import TypeTable
from clinker_spark.query.scopes import Scope
from clinker_spark.query.syntax import ast
from clinker_spark.query.types import ANY, QType

Types = Scope[QType]


class CheckerBase:
    """Infers types by a table of handlers, one for each kind of node."""

    def __init__(self, source: Source, types: TypeTable) -> None:
        self.source = source
        self.types = types
        self.problems: list[Diagnostic] = []
        self.per_row: set[int] = set()
        """Queries (by id) whose aggregate in select is one of each row."""
        self.totals: dict[int, QType] = {}
        """The types of sums, minima and maxima, by the ids of their calls."""
        self.functions = 0
        """Bodies of functions around the statement that is looked at."""
        self.handlers: dict[type, Callable[[Any, Types], QType]] = {}

    def infer(self, e: cxl.Expr, scope: Types) -> QType:
        return self.handlers[type(e)](e, scope)

    # ---------------------------------------------- what the other checkers add

    def query(self, q: ast.Query, scope: Types) -> QType:
        raise NotImplementedError

    def load(self, e: ast.Load, scope: Types) -> QType:
        raise NotImplementedError

    def block(self, statements: Sequence[ast.Statement], scope: Types) -> None:
        raise NotImplementedError

    # -------------------------------------------------------------- reporting

    def note(self, code: str, span: Span, message: str, help_text: str | None = None) -> QType:
        phase = "resolve" if code == "E701" else "typecheck"
        if not any(p.span == span and p.code == code for p in self.problems):
            self.problems.append(Diagnostic(code, message, self.source, span, help_text, phase=phase))
        return ANY

    def unknown(self, what: str, name: str, span: Span, known: Iterable[str], else_help: str = "") -> QType:
        help_text = did_you_mean(name, known) or else_help or None
        return self.note("E701", span, f"unknown {what} '{name}'", help_text)
