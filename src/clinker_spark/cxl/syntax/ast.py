"""The syntax tree of CXL, as the parser leaves it: names not looked up, types not known.

Every node keeps its span. Nothing rewrites a tree in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.core.tree import Tree


@dataclass(slots=True, eq=False, repr=False)
class Node(Tree):
    span: Span


# ---------------------------------------------------------------- expressions


@dataclass(slots=True, eq=False, repr=False)
class Expr(Node):
    pass


@dataclass(slots=True, eq=False, repr=False)
class Literal(Expr):
    """`value` is None, bool, int, float, str or datetime.date."""

    value: Any


@dataclass(slots=True, eq=False, repr=False)
class Now(Expr):
    """The run's start time."""


@dataclass(slots=True, eq=False, repr=False)
class Name(Expr):
    """A bare identifier (a field, let, emitted name, binding or module), or the keyword `it`."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Member(Expr):
    """`target.name` without parentheses: a step into a map, an input's field, a module constant, or
    a method without arguments. The resolver decides which."""

    target: Expr
    name: str
    name_span: Span


@dataclass(slots=True, eq=False, repr=False)
class SystemVar(Expr):
    """`$pipeline.name`, `$vars.x`, `$source.orders.x`, `$doc.section.field`: namespace and at least one member."""

    namespace: str  # without the dollar sign
    path: tuple[str, ...]


@dataclass(slots=True, eq=False, repr=False)
class WindowCall(Expr):
    """`$window.fn(args)`; a following `.field` is a Member around it."""

    function: str
    args: tuple[Expr, ...]
    name_span: Span


@dataclass(slots=True, eq=False, repr=False)
class Unary(Expr):
    op: str  # "-" or "not"
    operand: Expr


@dataclass(slots=True, eq=False, repr=False)
class Binary(Expr):
    op: str  # + - * / % == != > < >= <= and or ??
    left: Expr
    right: Expr
    op_span: Span


@dataclass(slots=True, eq=False, repr=False)
class If(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr | None


@dataclass(slots=True, eq=False, repr=False)
class MatchArm(Node):
    pattern: Expr | None  # None is the wildcard `_`
    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Match(Expr):
    """With a subject: patterns are compared with `==`. Without: patterns are conditions."""

    subject: Expr | None
    arms: tuple[MatchArm, ...]


@dataclass(slots=True, eq=False, repr=False)
class Call(Expr):
    """`sum(x)`, `count(*)`: a free function (aggregates). `star` is true for `count(*)`."""

    function: str
    args: tuple[Expr, ...]
    star: bool
    name_span: Span


@dataclass(slots=True, eq=False, repr=False)
class MethodCall(Expr):
    receiver: Expr
    method: str
    args: tuple[Expr, ...]
    name_span: Span


@dataclass(slots=True, eq=False, repr=False)
class Closure(Expr):
    """`it => body`, only as a direct argument of a method call."""

    body: Expr


@dataclass(slots=True, eq=False, repr=False)
class Index(Expr):
    target: Expr
    index: Expr


@dataclass(slots=True, eq=False, repr=False)
class ArrayLiteral(Expr):
    items: tuple[Expr, ...]


@dataclass(slots=True, eq=False, repr=False)
class MapEntry(Node):
    key: Expr  # a string Literal for static keys, any expression for `[expr]: value`
    value: Expr
    computed: bool


@dataclass(slots=True, eq=False, repr=False)
class MapLiteral(Expr):
    entries: tuple[MapEntry, ...]


@dataclass(slots=True, eq=False, repr=False)
class Comprehension(Expr):
    """`[value for binding in source if condition]`."""

    value: Expr
    binding: str
    binding_span: Span
    source: Expr
    condition: Expr | None


# ----------------------------------------------------------------- statements


@dataclass(slots=True, eq=False, repr=False)
class Statement(Node):
    pass


@dataclass(slots=True, eq=False, repr=False)
class Use(Statement):
    path: tuple[str, ...]
    alias: str | None


@dataclass(slots=True, eq=False, repr=False)
class Let(Statement):
    name: str
    value: Expr
    name_span: Span


@dataclass(slots=True, eq=False, repr=False)
class Emit(Statement):
    """`emit name = value`, or with `scope` (pipeline, source, record) a scoped write."""

    scope: str | None
    name: str
    value: Expr
    name_span: Span


@dataclass(slots=True, eq=False, repr=False)
class EmitEach(Statement):
    binding: str
    source: Expr
    outer: bool
    body: tuple[Statement, ...]
    binding_span: Span


@dataclass(slots=True, eq=False, repr=False)
class Filter(Statement):
    predicate: Expr


@dataclass(slots=True, eq=False, repr=False)
class Distinct(Statement):
    by: str | None
    by_span: Span | None


@dataclass(slots=True, eq=False, repr=False)
class Trace(Statement):
    level: str  # debug info warn error
    condition: Expr | None
    message: Expr


@dataclass(slots=True, eq=False, repr=False)
class FunctionDef(Statement):
    """`fn name(a, b) = body`, in module files."""

    name: str
    params: tuple[str, ...]
    body: Expr
    name_span: Span


@dataclass(slots=True, eq=False, repr=False)
class Bare(Statement):
    """An expression on its own: evaluated, may fail, result dropped."""

    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Comment(Tree):
    """A comment, kept beside the tree for the formatter. `text` starts with `#`."""

    span: Span
    text: str


@dataclass(slots=True, eq=False, repr=False)
class ProgramSyntax(Tree):
    """A parsed file: its statements in order, and its comments."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...] = field(default=())
