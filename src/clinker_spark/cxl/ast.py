"""The syntax tree of CXL, as the parser leaves it: names not looked up, types not known.

Every node keeps its span. Expressions and statements are frozen; nothing rewrites a tree in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.span import Span


@dataclass(frozen=True, slots=True)
class Node:
    span: Span


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Expr(Node):
    pass


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """`value` is None, bool, int, float, str or datetime.date."""

    value: Any


@dataclass(frozen=True, slots=True)
class Now(Expr):
    """The run's start time."""


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A bare identifier (a field, let, emitted name, binding or module), or the keyword `it`."""

    name: str


@dataclass(frozen=True, slots=True)
class Member(Expr):
    """`target.name` without parentheses: a step into a map, an input's field, a module constant, or
    a method without arguments. The resolver decides which."""

    target: Expr
    name: str
    name_span: Span


@dataclass(frozen=True, slots=True)
class SystemVar(Expr):
    """`$pipeline.name`, `$vars.x`, `$source.orders.x`, `$doc.section.field`: namespace and at least one member."""

    namespace: str  # without the dollar sign
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WindowCall(Expr):
    """`$window.fn(args)`; a following `.field` is a Member around it."""

    function: str
    args: tuple[Expr, ...]
    name_span: Span


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    op: str  # "-" or "not"
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    op: str  # + - * / % == != > < >= <= and or ??
    left: Expr
    right: Expr
    op_span: Span


@dataclass(frozen=True, slots=True)
class If(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr | None


@dataclass(frozen=True, slots=True)
class MatchArm(Node):
    pattern: Expr | None  # None is the wildcard `_`
    value: Expr


@dataclass(frozen=True, slots=True)
class Match(Expr):
    """With a subject: patterns are compared with `==`. Without: patterns are conditions."""

    subject: Expr | None
    arms: tuple[MatchArm, ...]


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """`sum(x)`, `count(*)`: a free function (aggregates). `star` is true for `count(*)`."""

    function: str
    args: tuple[Expr, ...]
    star: bool
    name_span: Span


@dataclass(frozen=True, slots=True)
class MethodCall(Expr):
    receiver: Expr
    method: str
    args: tuple[Expr, ...]
    name_span: Span


@dataclass(frozen=True, slots=True)
class Closure(Expr):
    """`it => body`, only as a direct argument of a method call."""

    body: Expr


@dataclass(frozen=True, slots=True)
class Index(Expr):
    target: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class ArrayLiteral(Expr):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class MapEntry(Node):
    key: Expr  # a string Literal for static keys, any expression for `[expr]: value`
    value: Expr
    computed: bool


@dataclass(frozen=True, slots=True)
class MapLiteral(Expr):
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension(Expr):
    """`[value for binding in source if condition]`."""

    value: Expr
    binding: str
    binding_span: Span
    source: Expr
    condition: Expr | None


# ----------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Statement(Node):
    pass


@dataclass(frozen=True, slots=True)
class Use(Statement):
    path: tuple[str, ...]
    alias: str | None


@dataclass(frozen=True, slots=True)
class Let(Statement):
    name: str
    value: Expr
    name_span: Span


@dataclass(frozen=True, slots=True)
class Emit(Statement):
    """`emit name = value`, or with `scope` (pipeline, source, record) a scoped write."""

    scope: str | None
    name: str
    value: Expr
    name_span: Span


@dataclass(frozen=True, slots=True)
class EmitEach(Statement):
    binding: str
    source: Expr
    outer: bool
    body: tuple[Statement, ...]
    binding_span: Span


@dataclass(frozen=True, slots=True)
class Filter(Statement):
    predicate: Expr


@dataclass(frozen=True, slots=True)
class Distinct(Statement):
    by: str | None
    by_span: Span | None


@dataclass(frozen=True, slots=True)
class Trace(Statement):
    level: str  # debug info warn error
    condition: Expr | None
    message: Expr


@dataclass(frozen=True, slots=True)
class FunctionDef(Statement):
    """`fn name(a, b) = body`, in module files."""

    name: str
    params: tuple[str, ...]
    body: Expr
    name_span: Span


@dataclass(frozen=True, slots=True)
class Bare(Statement):
    """An expression on its own: evaluated, may fail, result dropped."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment, kept beside the tree for the formatter. `text` starts with `#`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class ProgramSyntax:
    """A parsed file: its statements in order, and its comments."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...] = field(default=())
