"""The nodes: expressions, types, and queries as chains of pipe steps.

Nodes are values. They compare by what they say; where in a program they come from (`span`) takes no part in that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.core.tree import Tree, field_names


class Sql(Tree):
    """A piece of SQL."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _content(self) == _content(other)

    def __hash__(self) -> int:
        return hash((type(self), *_content(self)))


def _content(node: Any) -> list[Any]:
    return [getattr(node, name) for name in field_names(type(node)) if name != "span"]


def walk(node: Any) -> Iterator[Sql]:
    """The node and all that is in it."""
    left = [node]
    while left:
        found = left.pop()
        if isinstance(found, Sql):
            yield found
            left += [getattr(found, name) for name in field_names(type(found))]
        elif isinstance(found, tuple):
            left += found


# ------------------------------------------------------------------------ types


class Type(Sql):
    __slots__ = ()


@dataclass(slots=True, eq=False, repr=False)
class Named(Type):
    """`BIGINT`, `DECIMAL(38, 2)`."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class ArrayOf(Type):
    element: Type


@dataclass(slots=True, eq=False, repr=False)
class MapOf(Type):
    key: Type
    value: Type


@dataclass(slots=True, eq=False, repr=False)
class StructOf(Type):
    fields: tuple[tuple[str, Type], ...]


# ------------------------------------------------------------------ expressions


class Expr(Sql):
    __slots__ = ()


@dataclass(slots=True, eq=False, repr=False)
class Column(Expr):
    """A column, of the relation that has the alias `of` if it is given."""

    name: str
    of: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Variable(Expr):
    """The variable of a lambda, or `*`: a word that is no name of the data."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Field(Expr):
    target: Expr
    name: str


@dataclass(slots=True, eq=False, repr=False)
class Literal(Expr):
    """None, a bool, number, text, date or datetime. `long` makes 64 bits of a whole number that needs fewer."""

    value: Any
    long: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Call(Expr):
    """`function(args)`; of an aggregate `function(DISTINCT args) FILTER (WHERE where)`.

    `definition` is what a session must know before it can call a function of its own under this name.
    """

    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    where: Expr | None = None
    definition: Any = None


@dataclass(slots=True, eq=False, repr=False)
class Unary(Expr):
    """`NOT x`, `- x`, `~ x`."""

    op: str
    operand: Expr


@dataclass(slots=True, eq=False, repr=False)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr
    span: Span | None = None


@dataclass(slots=True, eq=False, repr=False)
class Logic(Expr):
    """`a AND b AND c`, or the same with OR."""

    op: str
    parts: tuple[Expr, ...]


@dataclass(slots=True, eq=False, repr=False)
class IsNull(Expr):
    operand: Expr
    negated: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Case(Expr):
    """Conditions with what they give; without `otherwise` nothing else is null."""

    arms: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None


@dataclass(slots=True, eq=False, repr=False)
class Cast(Expr):
    """`tries` gives null where there is no such value."""

    value: Expr
    type: Type
    tries: bool = False
    span: Span | None = None


@dataclass(slots=True, eq=False, repr=False)
class Lambda(Expr):
    params: tuple[str, ...]
    body: Expr


@dataclass(slots=True, eq=False, repr=False)
class Fragment(Expr):
    """Finished text, as the builtin table of CXL has it, with expressions in its holes."""

    parts: tuple[str | Expr, ...]


@dataclass(slots=True, eq=False, repr=False)
class Subquery(Expr):
    """The only value of the only row of a query."""

    query: Query


@dataclass(slots=True, eq=False, repr=False)
class Exists(Expr):
    query: Query


@dataclass(slots=True, eq=False, repr=False)
class In(Expr):
    """`value IN (a, b)`, or `(value, value2) IN (query)`."""

    values: tuple[Expr, ...]
    among: tuple[Expr, ...] | Query


# -------------------------------------------------------------------- relations


@dataclass(slots=True, eq=False, repr=False)
class Source(Sql):
    """Rows whose view has no name yet: whoever runs the query gives it one."""

    number: int
    ordered: bool = False


class Step(Sql):
    __slots__ = ()


@dataclass(slots=True, eq=False, repr=False)
class Query(Sql):
    """Steps one after the other, the first of them `From` (or `Select`, of one row)."""

    steps: tuple[Step, ...]

    def then(self, *steps: Step) -> Query:
        return Query((*self.steps, *steps))


@dataclass(slots=True, eq=False, repr=False)
class As(Sql):
    """`value AS name`. A column that keeps its name stands alone."""

    value: Expr
    name: str
    span: Span | None = None


@dataclass(slots=True, eq=False, repr=False)
class Sort(Sql):
    """A key to sort by; without `direction` one that ascends and is never null."""

    value: Expr
    direction: str = ""


@dataclass(slots=True, eq=False, repr=False)
class From(Step):
    relation: Source | Query
    alias: str = ""


@dataclass(slots=True, eq=False, repr=False)
class Join(Step):
    """`kind` is `JOIN`, `LEFT ANTI JOIN`, `CROSS JOIN`; all conditions of `on` must hold."""

    kind: str
    relation: Source | Query
    alias: str
    on: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Explode(Step):
    """A row for each element of an array, with its position."""

    array: Expr
    alias: str
    position: str
    element: str


@dataclass(slots=True, eq=False, repr=False)
class Where(Step):
    conditions: tuple[Expr, ...]


@dataclass(slots=True, eq=False, repr=False)
class Select(Step):
    columns: tuple[As, ...]


@dataclass(slots=True, eq=False, repr=False)
class Extend(Step):
    columns: tuple[As, ...]


@dataclass(slots=True, eq=False, repr=False)
class Aggregate(Step):
    columns: tuple[As, ...]
    keys: tuple[As, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class OrderBy(Step):
    keys: tuple[Sort, ...]


@dataclass(slots=True, eq=False, repr=False)
class Limit(Step):
    take: int | None
    skip: int = 0


@dataclass(slots=True, eq=False, repr=False)
class UnionAll(Step):
    query: Query
