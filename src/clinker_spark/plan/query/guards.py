"""Failures of single rows, as values.

A query stops at a value that it cannot compute. In a pipeline a record must not end a run: where a clause of a query
node looks at the records of one input, row by row, what can fail is written so that it gives null instead, and beside
it SQL says why a record fails. Those records are set aside before the query sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.plan.query.pieces import has_query
from clinker_spark.plan.query.values import Column
from clinker_spark.query.types import QType, is_kind

Reasons = dict[str, dict[int, tuple[str, str]]]
"""By input and query: the alias under which the query sees the rows of the input, and SQL for why they fail in it."""

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


class Guard:
    """The reasons why rows of one query fail, in the order of evaluation."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self._reasons: list[str] = []

    def add(self, when: str, kind: ErrorKind, message: str, value: str) -> None:
        error = (
            f"named_struct('kind', {sql_string(kind.value)}, 'field', CAST(NULL AS STRING),"
            f" 'value', CAST({value} AS STRING), 'message', {sql_string(message)})"
        )
        reason = f"CASE WHEN {when} THEN {error} END"
        if reason not in self._reasons:
            self._reasons.append(reason)

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What is added meanwhile counts only for rows for which the condition is true."""
        outside, self._reasons = self._reasons, []
        try:
            yield
        finally:
            inside, self._reasons = self._reasons, outside
            if inside:
                self._reasons.append(f"CASE WHEN {condition} THEN {_first(inside)} END")

    def error(self) -> str:
        """The reason why a row of the source fails, as SQL over it under its alias; empty when no row can."""
        return _first(self._reasons) if self._reasons else ""

    # ------------------------------------------------------------ operations

    def arithmetic(
        self, op: str, left: str, right: str, t: QType, shown: str, number: int | float | Decimal | None = None
    ) -> str:
        """`left op right`, or null where it has no value. `number` is what is written on the right, if it is one."""
        if op in ("/", "div", "%"):
            made = f"({left} {op} {right})"
            if not number:
                self.add(f"{right} = 0", ErrorKind.DIVISION_BY_ZERO, f"division by zero: {shown}", left)
                made = f"({left} {op} nullif({right}, 0))"
            if op == "/" and is_kind(t, Kind.FLOAT) and not at_least_one(number):
                self._in_range(made, left, right, shown)
            return made
        if is_kind(t, Kind.FLOAT):
            made = f"({left} {op} {right})"
            if number is None or op == "*":  # what is written is too small to carry a sum beyond all floats
                self._in_range(made, left, right, shown)
            return made
        made = f"{_TRY[op]}({left}, {right})"
        there = f"{left} IS NOT NULL AND {right} IS NOT NULL"
        self.add(f"{there} AND {made} IS NULL", ErrorKind.INTEGER_OVERFLOW, f"a number does not fit: {shown}", left)
        return made

    def _in_range(self, made: str, left: str, right: str, shown: str) -> None:
        """A row fails where finite floats have an infinite result."""
        infinity = "double('Infinity')"
        beyond = f"abs({made}) = {infinity} AND abs({left}) < {infinity} AND abs({right}) < {infinity}"
        self.add(beyond, ErrorKind.INTEGER_OVERFLOW, f"float overflow: {shown}", left)

    def converted(self, column: Column, to: str, shown: str) -> str:
        """A value as another type, or null where it is none."""
        made = f"try_cast({column.text} AS {to})"
        when = f"{column.text} IS NOT NULL AND {made} IS NULL"
        self.add(when, ErrorKind.CONVERSION_FAILED, f"cannot convert to {to}: {shown}", column.text)
        return made

    def checked(self, text: str, when: str, message: str, value: str) -> str:
        """A value that does not exist where `when` holds."""
        self.add(when, ErrorKind.CONVERSION_FAILED, message, value)
        return f"IF({when}, NULL, {text})"


class Guarding:
    """What the lowerings share: the guard of the rows that they are looking at, if these have one."""

    def __init__(self) -> None:
        self.guard: Guard | None = None
        self.source = ""
        """The text of the program, to show pieces of it."""
        self.inputs: Mapping[str, str] = {}
        """The tables whose rows can be set aside, and what they are called among `reasons`."""
        self.reasons: Reasons = {}
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
    def branch(self, condition: str) -> Iterator[None]:
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

    def guard_of(self, q: Any, tables: Sequence[tuple[str | None, str]]) -> Guard | None:
        """The guard of a query over these tables: one over the rows of one input that uses no other rows."""
        table, alias = tables[0]
        known = len(tables) == 1 and table in self.inputs
        return Guard(alias) if known and not self._inside and id(q) not in self._stops else None

    def note(self, q: Any, table: str | None, guard: Guard) -> bool:
        """Keeps what was found out about a query; False when it has to be lowered again without a guard."""
        error = guard.error()
        if has_query(error):  # it cannot be asked before the query itself
            self._stops.add(id(q))
            return False
        if error and table is not None:
            known = self.reasons.setdefault(self.inputs[table], {})
            # Lowered in order it also has its sort keys, so the longer one knows more.
            known[id(q)] = max(known.get(id(q), ("", "")), (guard.alias, error), key=lambda pair: len(pair[1]))
        return True

    def shown(self, span: Span) -> str:
        return " ".join(self.source[span.start : span.end].split())


def _first(reasons: list[str]) -> str:
    return reasons[0] if len(reasons) == 1 else f"coalesce({', '.join(reasons)})"


def at_least_one(number: int | float | Decimal | None) -> bool:
    """Is this divisor written, and no fraction? A quotient by it is no larger than what is divided."""
    return number is not None and abs(float(number)) >= 1.0
