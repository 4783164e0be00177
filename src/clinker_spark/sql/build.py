"""Short ways to put nodes together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from clinker_spark.sql.tree import (
    As,
    Binary,
    Call,
    Case,
    Column,
    Expr,
    Fragment,
    IsNull,
    Literal,
    Logic,
    Named,
    Unary,
    Variable,
)

TRUE, FALSE, NULL = Literal(True), Literal(False), Literal(None)
INFINITY = Call("double", (Literal("Infinity"),))
BIGINT, INT, DOUBLE, STRING = Named("BIGINT"), Named("INT"), Named("DOUBLE"), Named("STRING")
ROWS = Variable("*")
"""What `count` counts."""

_MARK = re.compile("\x01([0-9]+)\x01|[\u27e6\u27e7]")


def call(function: str, *args: Expr) -> Call:
    return Call(function, args)


def long(value: int) -> Literal:
    return Literal(value, long=True)


def written_number(e: Expr) -> int | float | Decimal | None:
    """The number that is written there, if it is one."""
    value = e.value if isinstance(e, Literal) else None
    return value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


def or_else(value: Expr, *others: Expr) -> Call:
    """The first that is not null. A chain of them is one call."""
    last = others[-1]
    flat = last.args if isinstance(last, Call) and last.function == "coalesce" else (last,)
    return Call("coalesce", (value, *others[:-1], *flat))


def never_null(condition: Expr) -> Expr:
    return Call("coalesce", (condition, FALSE))


def negated(condition: Expr) -> Unary:
    return Unary("NOT", condition)


def all_of(parts: Sequence[Expr]) -> Expr:
    """`a AND b`. One part stands alone; nothing is true."""
    return _joined("AND", parts, TRUE)


def any_of(parts: Sequence[Expr]) -> Expr:
    return _joined("OR", parts, FALSE)


def _joined(op: str, parts: Sequence[Expr], nothing: Expr) -> Expr:
    if len(parts) < 2:
        return parts[0] if parts else nothing
    first = parts[0]  # Spark's parser reads a flat list in a loop, and brackets by recursion
    flat = first.parts if isinstance(first, Logic) and first.op == op else (first,)
    return Logic(op, (*flat, *parts[1:]))


def when(condition: Expr, then: Expr, otherwise: Expr | None = None) -> Case:
    return Case(((condition, then),), otherwise)


def equals(a: Expr, b: Expr, *, nulls: bool = False) -> Binary:
    """`a = b`; with `nulls` two nulls are equal, and the answer is never null."""
    return Binary("<=>" if nulls else "=", a, b)


def there(value: Expr) -> IsNull:
    return IsNull(value, negated=True)


def struct(fields: Iterable[tuple[str, Expr]]) -> Call:
    """A record: `named_struct('a', x, ...)`."""
    return Call("named_struct", tuple(part for name, value in fields for part in (Literal(name), value)))


def columns(values: Mapping[str, Expr] | Iterable[tuple[str, Expr]]) -> tuple[As, ...]:
    pairs = values.items() if isinstance(values, Mapping) else values
    return tuple(As(value, name) for name, value in pairs)


def own_columns(names: Iterable[str]) -> tuple[As, ...]:
    """Columns that stay as they are."""
    return tuple(As(Column(name), name) for name in names)


def template(text: str, *args: Expr) -> Expr:
    """Text with `{0}`, `{1}` ... as holes.

    >>> from clinker_spark.sql.render import render
    >>> print(render(template("lpad({0}, {1})", Column("a{1}"), Literal(3))))
    lpad(`a{1}`, 3)
    """
    return _filled(re.split(r"\{([0-9]+)\}", text), args)


def marks(count: int) -> list[str]:
    """What stands for the arguments while CXL makes text: no literal and no quoted name can contain it."""
    return [f"\x01{i}\x01" for i in range(count)]


def marked(text: str, *args: Expr) -> Expr:
    """Such text with the arguments in their places, and without the brackets that mark parts of it for CXL."""
    return _filled(_MARK.split(text), args)


def _filled(pieces: Sequence[str | None], args: Sequence[Expr]) -> Expr:
    """Every second piece is the number of an argument (or nothing)."""
    parts = [piece if not i % 2 else args[int(piece)] if piece else "" for i, piece in enumerate(pieces)]
    return Fragment(tuple(part for part in parts if part))
