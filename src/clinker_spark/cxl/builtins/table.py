"""What a builtin is: one row that says all there is to say about it.

A row carries its signatures, its null rule, how it can fail, a documentation line with examples, the
interpreter function and the Spark SQL it becomes. Nothing about a builtin stands anywhere else: the
resolver, the typechecker, the interpreter, the lowering, the reference manual and the completion of the
REPL all read this table.

**SQL side.** `sql` is Spark SQL text. In a template `{0}` is the receiver, `{1}` the first argument and
so on, each already of the parameter's physical type and each safe to repeat (the lowering binds a costly
argument to a column of its own before it is used twice). A left-out optional argument has no placeholder:
use the function form, which gets a `SqlCall`. A part written as `⟦part⟧` is computed once, however often it
stands there. Text must work with ANSI mode on and off, must not throw,
and must be NULL where the interpreter gives None or fails. `None` (or a function that returns None)
means that Catalyst has no expression for this call: it then runs in Python over Arrow batches, and
`python_reason` must say why.

**Vector side.** `vector` names a Polars form: a function over whole columns that gives the values and the errors of the
other two engines, or nothing. It is named by text, so that only workers load Polars.

**Physical types**: Bool BOOLEAN, Int BIGINT, Float DOUBLE, Decimal DECIMAL(29, scale) when the scale is
known at compile time and otherwise STRING holding its digits, String STRING, Date DATE, DateTime
TIMESTAMP_NTZ, Array ARRAY<element>, Map MAP<STRING, element>, Any and every dynamic type VARIANT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from clinker_spark.core.types import Type
from clinker_spark.cxl.errors import ErrorKind


class Nulls(Enum):
    """What a null argument does."""

    PROPAGATE = "a null receiver or argument gives null"
    RECEIVER = "a null receiver gives null; null arguments are passed on"
    PASS = "nulls are passed on"


NOT_LITERAL: Any = object()
PATTERN_HELP = "docs/cxl-language.md says what a pattern may have: no look-around, no back-references"
FORMAT_HELP = "a date format is written as in %Y-%m-%d %H:%M:%S"
"""Stands in `SqlCall.literals` for an argument that is not a constant."""


@dataclass(frozen=True)
class SqlCall:
    """What the function form of `sql` gets: SQL texts, constants and types of the arguments that were given."""

    args: Sequence[str]
    literals: Sequence[Any]
    types: Sequence[Type]

    def literal(self, index: int) -> Any:
        """The constant at `index`, or NOT_LITERAL when it is left out or computed."""
        return self.literals[index] if index < len(self.literals) else NOT_LITERAL


@dataclass(frozen=True)
class Failure:
    """One way to fail.

    `when` is a SQL condition template (`{0}`, `{1}` and `{r}` for the result); left empty it means: the
    result is null although no argument is. `value` is the index of the offending argument.
    """

    kind: ErrorKind
    message: str
    when: str = ""
    value: int | None = 0


ResultRule = Callable[[Sequence[Type]], Type]


@dataclass(frozen=True)
class Overload:
    """One signature. `params` has the receiver first; the last `optional` of them may be left out.

    `run` gets Python values (None, bool, int, float, Decimal, str, date, datetime, list, dict), never None
    unless the builtin's null rule passes nulls on; left-out arguments are not passed. It returns a value or
    None, or raises `Fail`.

    `literal` names the parameters that must be string literals, and `check` looks at them at compile time
    and returns what is wrong with them (argument index and message).
    """

    params: tuple[Type, ...]
    result: Type | ResultRule
    run: Callable[..., Any]
    sql: str | Callable[[SqlCall], str | None] | None = None
    failures: tuple[Failure, ...] = ()
    optional: int = 0
    variadic: bool = False
    literal: frozenset[int] = frozenset()
    check: Callable[[Sequence[Any]], tuple[int, str] | None] | None = None
    python_reason: str = ""
    safe: Callable[[Sequence[Any]], bool] | None = None
    """Given the constants among the arguments (NOT_LITERAL for the others): is failure out of the question?"""
    vector: str | Callable[[SqlCall], str | None] | None = None
    """The name of its Polars form below `cxl.vector.forms` (`module.function`), perhaps by the constants and types of
    the arguments; None: it has none, and ends a fragment."""

    def result_type(self, args: Sequence[Type]) -> Type:
        return self.result(args) if callable(self.result) else self.result


@dataclass(frozen=True)
class Builtin:
    """A method (or an operator, whose name is its symbol) with all its signatures."""

    name: str
    family: str
    doc: str
    overloads: tuple[Overload, ...]
    nulls: Nulls = Nulls.PROPAGATE
    examples: tuple[tuple[str, str], ...] = field(default=())
    """(expression, its value as `cxl eval` prints it): shown in the manual and run by the tests."""
