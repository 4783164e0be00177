"""The syntax tree of query programs. Expressions that CXL has are CXL's own nodes; here is what it lacks.

A clause keeps its span, so that a finding can underline it. Nothing rewrites a tree in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.span import Span
from clinker_spark.cxl.syntax.ast import Expr, MapEntry, Node

# ---------------------------------------------------------------- types


@dataclass(slots=True, eq=False, repr=False)
class TypeName(Node):
    """`int`, `list<Person>`, `map<string, int>`, `{a: int}`, `fun(int): int`; `T?` and option<T> are nullable."""

    name: str
    args: tuple[TypeName, ...] = ()
    fields: tuple[tuple[str, TypeName], ...] = ()
    nullable: bool = False


# ---------------------------------------------------------------- queries


@dataclass(slots=True, eq=False, repr=False)
class From(Node):
    """`from name in source`."""

    name: str
    name_span: Span
    source: Expr


@dataclass(slots=True, eq=False, repr=False)
class Join(Node):
    """`kind` is inner, left, right or outer."""

    kind: str
    name: str
    name_span: Span
    source: Expr
    on: Expr


@dataclass(slots=True, eq=False, repr=False)
class GroupBy(Node):
    keys: tuple[Expr, ...]
    name: str
    name_span: Span
    having: Expr | None


@dataclass(slots=True, eq=False, repr=False)
class SortKey(Node):
    value: Expr
    descending: bool


@dataclass(slots=True, eq=False, repr=False)
class LetClause(Node):
    """`let name = value` between the clauses: a value of each row."""

    name: str
    name_span: Span
    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Query(Expr):
    """One query. `wheres` are all its conditions in order; `lets` see the rows before the conditions."""

    sources: tuple[From, ...]
    joins: tuple[Join, ...]
    lets: tuple[LetClause, ...]
    wheres: tuple[Expr, ...]
    group: GroupBy | None
    orders: tuple[SortKey, ...]
    skip: Expr | None
    take: Expr | None
    select: Expr
    distinct: bool
    unordered: bool


# ------------------------------------------------------------ expressions


@dataclass(slots=True, eq=False, repr=False)
class Param(Node):
    name: str
    type: TypeName | None


@dataclass(slots=True, eq=False, repr=False)
class Lambda(Expr):
    """`fun(x: int): int => e`, or with a block of statements."""

    params: tuple[Param, ...]
    result: TypeName | None
    body: Expr | tuple[Statement, ...]


@dataclass(slots=True, eq=False, repr=False)
class Apply(Expr):
    """A call of something that is not a plain name: `f(1)(2)`, `r.fn(3)`."""

    function: Expr
    args: tuple[Expr, ...]


@dataclass(slots=True, eq=False, repr=False)
class Slice(Expr):
    """`xs[a:b]`; either end may be left out."""

    target: Expr
    start: Expr | None
    end: Expr | None


@dataclass(slots=True, eq=False, repr=False)
class Cast(Expr):
    value: Expr
    type: TypeName


@dataclass(slots=True, eq=False, repr=False)
class RecordLiteral(Expr):
    """`Person {name: "Ada"}`: a record of a declared type."""

    type_name: str
    name_span: Span
    entries: tuple[MapEntry, ...]


@dataclass(slots=True, eq=False, repr=False)
class Load(Expr):
    path: Expr | None
    type: TypeName | None
    options: Expr | None


# ------------------------------------------------------------- statements


@dataclass(slots=True, eq=False, repr=False)
class Statement(Node):
    pass


@dataclass(slots=True, eq=False, repr=False)
class Let(Statement):
    name: str
    name_span: Span
    type: TypeName | None
    value: Expr | None
    mutable: bool


@dataclass(slots=True, eq=False, repr=False)
class Assign(Statement):
    """`target` is a name, an index or a field."""

    target: Expr
    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class FunctionDef(Statement):
    name: str
    name_span: Span
    function: Lambda


@dataclass(slots=True, eq=False, repr=False)
class Variant(Node):
    """One case of a union type; `Leaf`, `Node(left: Tree, value: int)`."""

    name: str
    fields: tuple[tuple[str, TypeName], ...]


@dataclass(slots=True, eq=False, repr=False)
class TypeDef(Statement):
    """A record type (`fields`), a union (`variants`) or another name (`alias`); one of them is set."""

    name: str
    name_span: Span
    fields: tuple[tuple[str, TypeName], ...] | None
    variants: tuple[Variant, ...] | None
    alias: TypeName | None


@dataclass(slots=True, eq=False, repr=False)
class If(Statement):
    condition: Expr
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


@dataclass(slots=True, eq=False, repr=False)
class For(Statement):
    """`for x in xs { }`, or with `end` the whole numbers of `source..end`."""

    name: str
    source: Expr
    end: Expr | None
    body: tuple[Statement, ...]


@dataclass(slots=True, eq=False, repr=False)
class While(Statement):
    condition: Expr
    body: tuple[Statement, ...]


@dataclass(slots=True, eq=False, repr=False)
class Break(Statement):
    pass


@dataclass(slots=True, eq=False, repr=False)
class Continue(Statement):
    pass


@dataclass(slots=True, eq=False, repr=False)
class Return(Statement):
    value: Expr | None


@dataclass(slots=True, eq=False, repr=False)
class Expect(Statement):
    value: Expr


@dataclass(slots=True, eq=False, repr=False)
class Test(Statement):
    name: str
    body: tuple[Statement, ...]


@dataclass(slots=True, eq=False, repr=False)
class Update(Statement):
    """`update xs set {field: value} where condition`: the record's fields are names in both."""

    target: str
    target_span: Span
    entries: tuple[MapEntry, ...]
    condition: Expr | None


@dataclass(slots=True, eq=False, repr=False)
class Save(Statement):
    value: Expr
    path: Expr | None
    options: Expr | None


@dataclass(slots=True, eq=False, repr=False)
class Evaluate(Statement):
    """An expression on its own. As the last statement of a program its value is the program's result."""

    value: Expr
