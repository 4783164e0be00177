"""Failures of single rows, as values.

A query stops at a value that it cannot compute. In a pipeline a record must not end a run: where a clause of a query
node looks at the records of one input, row by row, what can fail is written so that it gives null instead, and beside
it SQL says why a record fails. Those records are diverted before the query sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.query.lower.values import Column
from clinker_spark.query.types import QType, is_kind
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import INFINITY, NULL, STRING, all_of, call, equals, struct, there, when
from clinker_spark.sql.render import type_text

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


@dataclass(frozen=True)
class Reason:
    """Why a row of an input fails in one query: SQL over the row under its alias there."""

    alias: str
    error: sql.Expr
    ordered: bool
    """Was the query lowered in order? Then it has its sort keys too, which may fail."""


Reasons = dict[int, dict[int, Reason]]
"""By the number of the input, and by query."""


@dataclass(frozen=True)
class Diversions:
    """Rows that fail by themselves and do not end the query, as those of a pipeline's inputs."""

    text: str = ""
    """The program, to show pieces of it."""
    inputs: dict[int, int] = field(default_factory=dict)
    """The sources whose rows can be diverted, by number, and what they are called among `reasons`."""
    reasons: Reasons = field(default_factory=dict)


class Guard:
    """The reasons why rows of one query fail, in the order of evaluation."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._reasons: list[sql.Expr] = []

    def add(self, condition: sql.Expr, kind: ErrorKind, message: str, value: sql.Expr) -> None:
        error = struct(
            (
                ("kind", sql.Literal(kind.value)),
                ("field", sql.Cast(NULL, STRING)),
                ("value", sql.Cast(value, STRING)),
                ("message", sql.Literal(message)),
            )
        )
        reason = when(condition, error)
        if reason not in self._reasons:
            self._reasons.append(reason)

    @contextmanager
    def when(self, condition: sql.Expr) -> Iterator[None]:
        """What is added meanwhile counts only for rows for which the condition is true."""
        outside, self._reasons = self._reasons, []
        try:
            yield
        finally:
            inside, self._reasons = self._reasons, outside
            if inside:
                self._reasons.append(when(condition, _first(inside)))

    def error(self) -> sql.Expr | None:
        """The reason why a row of the source fails, as SQL over it under its alias; None when no row can."""
        return _first(self._reasons) if self._reasons else None

    # ------------------------------------------------------------ operations

    def arithmetic(
        self,
        op: str,
        left: sql.Expr,
        right: sql.Expr,
        t: QType,
        shown: str,
        number: int | float | Decimal | None = None,
    ) -> sql.Expr:
        """`left op right`, or null where it has no value. `number` is what is written on the right, if it is one."""
        made: sql.Expr = sql.Binary(op, left, right)
        if op in ("/", "div", "%"):
            if not number:
                zero = sql.Literal(0)
                self.add(equals(right, zero), ErrorKind.DIVISION_BY_ZERO, f"division by zero: {shown}", left)
                made = sql.Binary(op, left, call("nullif", right, zero))
            if op == "/" and is_kind(t, Kind.FLOAT) and not at_least_one(number):
                self._in_range(made, left, right, shown)
            return made
        if is_kind(t, Kind.FLOAT):
            if number is None or op == "*":  # what is written is too small to carry a sum beyond all floats
                self._in_range(made, left, right, shown)
            return made
        made = call(_TRY[op], left, right)
        lost = all_of((there(left), there(right), sql.IsNull(made)))
        self.add(lost, ErrorKind.INTEGER_OVERFLOW, f"a number does not fit: {shown}", left)
        return made

    def _in_range(self, made: sql.Expr, left: sql.Expr, right: sql.Expr, shown: str) -> None:
        """A row fails where finite floats have an infinite result."""
        beyond = all_of((equals(call("abs", made), INFINITY), finite(left), finite(right)))
        self.add(beyond, ErrorKind.INTEGER_OVERFLOW, f"float overflow: {shown}", left)

    def converted(self, column: Column, to: sql.Type, shown: str) -> sql.Expr:
        """A value as another type, or null where it is none."""
        made = sql.Cast(column.sql, to, tries=True)
        lost = all_of((there(column.sql), sql.IsNull(made)))
        self.add(lost, ErrorKind.CONVERSION_FAILED, f"cannot convert to {type_text(to)}: {shown}", column.sql)
        return made

    def checked(self, made: sql.Expr, condition: sql.Expr, message: str, value: sql.Expr) -> sql.Expr:
        """A value that does not exist where the condition holds."""
        self.add(condition, ErrorKind.CONVERSION_FAILED, message, value)
        return call("IF", condition, NULL, made)


class Guarding:
    """What the lowerings share: the guard of the rows that they are looking at, if these have one."""

    def __init__(self) -> None:
        self.guard: Guard | None = None
        self.diversions = Diversions()
        self._stops: set[int] = set()
        self._inside = 0

    @contextmanager
    def guarded_by(self, guard: Guard | None) -> Iterator[None]:
        before, self.guard = self.guard, guard
        try:
            yield
        finally:
            self.guard = before

    @contextmanager
    def branch(self, condition: sql.Expr) -> Iterator[None]:
        """What is lowered meanwhile is computed only where the condition is true."""
        if self.guard is None:
            yield
        else:
            with self.guard.when(condition):
                yield

    @contextmanager
    def row_by_row(self) -> Iterator[None]:
        """Clauses are lowered: queries inside them may use the row around them, so their own rows have no guard."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def guard_of(self, q: Any, sources: Sequence[tuple[sql.Sql | None, str]]) -> Guard | None:
        """The guard of a query over these relations: one over the rows of one input that uses no other rows."""
        relation, alias = sources[0]
        known = len(sources) == 1 and isinstance(relation, sql.Source) and relation.number in self.diversions.inputs
        return Guard(alias) if known and not self._inside and id(q) not in self._stops else None

    def note(self, q: Any, relation: sql.Sql | None, guard: Guard, ordered: bool) -> bool:
        """Keeps what was found out about a query; False when it has to be lowered again without a guard."""
        error = guard.error()
        if error is None or not isinstance(relation, sql.Source):
            return True
        if any(isinstance(node, sql.Query) for node in sql.walk(error)):  # it cannot be asked before the query itself
            self._stops.add(id(q))
            return False
        known = self.diversions.reasons.setdefault(self.diversions.inputs[relation.number], {})
        if id(q) not in known or ordered >= known[id(q)].ordered:
            known[id(q)] = Reason(guard.alias, error, ordered)
        return True

    def shown(self, span: Span) -> str:
        return " ".join(self.diversions.text[span.start : span.end].split())


def finite(value: sql.Expr) -> sql.Expr:
    return sql.Binary("<", call("abs", value), INFINITY)


def _first(reasons: list[sql.Expr]) -> sql.Expr:
    return reasons[0] if len(reasons) == 1 else call("coalesce", *reasons)


def at_least_one(number: int | float | Decimal | None) -> bool:
    """Is this divisor written, and no fraction? A quotient by it is no larger than what is divided."""
    return number is not None and abs(float(number)) >= 1.0
