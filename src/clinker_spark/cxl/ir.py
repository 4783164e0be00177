"""The typed program: what the typechecker makes and what the interpreter and the Spark lowering both read.

Names are bound (to a record field or to a numbered slot), overloads are chosen, and every change of
representation stands in the tree as a `Widen` or `Narrow`, so that neither engine decides anything about
types by itself. `fallible` says whether evaluating the node can fail on some record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from clinker_spark.core.span import Source, Span
from clinker_spark.core.tree import Tree
from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl.builtins.table import Builtin, Overload


@dataclass(slots=True, eq=False, repr=False)
class TExpr(Tree):
    span: Span
    type: Type
    fallible: bool


@dataclass(slots=True, eq=False, repr=False)
class Const(TExpr):
    value: Any


@dataclass(slots=True, eq=False, repr=False)
class Field(TExpr):
    """A column of the incoming record."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Slot(TExpr):
    """A value computed earlier: a let, an emitted name, the binding of a loop or closure."""

    slot: str


@dataclass(slots=True, eq=False, repr=False)
class SystemRef(TExpr):
    """`$source.row`, `$vars.x`, `$doc.a.b`, or `now` (namespace "now")."""

    namespace: str
    path: tuple[str, ...]


@dataclass(slots=True, eq=False, repr=False)
class Call(TExpr):
    """A strict builtin whose signature is known: all arguments are evaluated, in order."""

    builtin: Builtin
    overload: Overload
    args: tuple[TExpr, ...]


@dataclass(slots=True, eq=False, repr=False)
class DynamicCall(TExpr):
    """A strict builtin whose signature is chosen on each record by the types of its dynamic arguments.

    None of `overloads` fits: null."""

    builtin: Builtin
    overloads: tuple[Overload, ...]
    args: tuple[TExpr, ...]


@dataclass(slots=True, eq=False, repr=False)
class Widen(TExpr):
    """The same value in a wider static representation: Null to T, Int to Float or Decimal, T to Any."""

    arg: TExpr


@dataclass(slots=True, eq=False, repr=False)
class Narrow(TExpr):
    """A dynamic value as a static type; null when it is of another type."""

    arg: TExpr


@dataclass(slots=True, eq=False, repr=False)
class Compare(TExpr):
    """== != > < >= <= ; both sides of one static type, or at least one dynamic."""

    op: str
    left: TExpr
    right: TExpr


@dataclass(slots=True, eq=False, repr=False)
class Logic(TExpr):
    """Kleene `and` / `or`, short-circuiting."""

    op: str
    left: TExpr
    right: TExpr


@dataclass(slots=True, eq=False, repr=False)
class Not(TExpr):
    arg: TExpr


@dataclass(slots=True, eq=False, repr=False)
class Coalesce(TExpr):
    left: TExpr
    right: TExpr


@dataclass(slots=True, eq=False, repr=False)
class If(TExpr):
    """The value of the first condition that is true. A chain of `else if`, or a `match`, is one node: its length is
    not depth."""

    conditions: tuple[TExpr, ...]
    values: tuple[TExpr, ...]
    otherwise: TExpr


@dataclass(slots=True, eq=False, repr=False)
class LetIn(TExpr):
    """`value` bound to `slot` inside `body`: subjects of match, parameters of module functions, parts of chains."""

    slot: str
    value: TExpr
    body: TExpr


@dataclass(slots=True, eq=False, repr=False)
class HigherOrder(TExpr):
    """An array method with a closure: filter, map, find, any, flat_map."""

    method: str
    source: TExpr
    slot: str
    element: Type
    body: TExpr


@dataclass(slots=True, eq=False, repr=False)
class Comprehend(TExpr):
    """`[value for slot in source if condition]`: a null source or condition is an error."""

    source: TExpr
    slot: str
    element: Type
    condition: TExpr | None
    value: TExpr


@dataclass(slots=True, eq=False, repr=False)
class MakeArray(TExpr):
    items: tuple[TExpr, ...]


@dataclass(slots=True, eq=False, repr=False)
class MakeMap(TExpr):
    """Keys are String expressions (constants for written keys)."""

    keys: tuple[TExpr, ...]
    values: tuple[TExpr, ...]


@dataclass(slots=True, eq=False, repr=False)
class AggregateCall(TExpr):
    """`sum(x)` and its kin; `args` are row expressions. Only inside aggregate programs."""

    function: str
    args: tuple[TExpr, ...]


@dataclass(slots=True, eq=False, repr=False)
class WindowRef(TExpr):
    """`$window.fn(args)`; `field` for first/last/lag/lead chains."""

    function: str
    args: tuple[TExpr, ...]
    field: str | None


@dataclass(slots=True, eq=False, repr=False)
class FanOut(TExpr):
    """The records of an `emit each` as an array of maps. Made by the lowering for blocks that run in Python."""

    block: TStatement
    max_expansion: int
    output: Mapping[str, Type]


# ----------------------------------------------------------------- statements


@dataclass(slots=True, eq=False, repr=False)
class TStatement(Tree):
    span: Span


@dataclass(slots=True, eq=False, repr=False)
class TLet(TStatement):
    name: str
    slot: str
    value: TExpr


@dataclass(slots=True, eq=False, repr=False)
class TEmit(TStatement):
    """`scope` is None for an output column, else pipeline, source or record."""

    scope: str | None
    name: str
    slot: str
    value: TExpr


@dataclass(slots=True, eq=False, repr=False)
class TFilter(TStatement):
    predicate: TExpr


@dataclass(slots=True, eq=False, repr=False)
class TDistinct(TStatement):
    keys: tuple[TExpr, ...]
    names: tuple[str, ...]


@dataclass(slots=True, eq=False, repr=False)
class TTrace(TStatement):
    level: str
    condition: TExpr | None
    message: TExpr


@dataclass(slots=True, eq=False, repr=False)
class TBare(TStatement):
    value: TExpr


@dataclass(slots=True, eq=False, repr=False)
class TEach(TStatement):
    slot: str
    element: Type
    source: TExpr
    outer: bool
    body: tuple[TStatement, ...]


@dataclass(frozen=True)
class TypedProgram:
    """A checked program: `schema` is what it reads, `output` the columns it emits, in order of first emission."""

    source: Source
    schema: Mapping[str, Type]
    statements: tuple[TStatement, ...]
    output: Mapping[str, Type]
    mode: str = "row"  # or "aggregate"
    group_by: tuple[str, ...] = ()
    max_expansion: int = 10_000
    let_types: Mapping[str, Type] = field(default_factory=dict)
    lookups: tuple[WindowRef, ...] = ()
    """`$window` functions over other records than those of the program, which reads the values of each as a column of
    its own (`hidden.lookup_column`)."""

    def expressions(self) -> Iterator[TExpr]:
        """All top-level expressions of the program."""
        yield from expressions_of(self.statements)

    @property
    def fallible(self) -> bool:
        keys = (self.schema.get(name, ANY) for name in self.group_by)
        bad_keys = any(t.is_dynamic or t.kind in (Kind.FLOAT, Kind.ARRAY, Kind.MAP) for t in keys)  # NaN, for a Float
        return (
            bad_keys
            or any(e.fallible for e in self.expressions())
            or has_statement(self.statements, (TEach, TDistinct))
        )


def expressions_of(statements: tuple[TStatement, ...]) -> Iterator[TExpr]:
    """The top-level expressions of statements, those inside emit each included."""
    for statement in statements:
        for part in statement.children():
            if isinstance(part, TExpr):
                yield part
            else:
                yield from expressions_of((part,))


def free_slots(e: TExpr) -> frozenset[str]:
    """The slots that an expression reads and does not fill itself."""
    return frozenset(n.slot for n in e.walk() if isinstance(n, Slot)) - filled_slots(e)


def filled_slots(node: TExpr | TStatement) -> frozenset[str]:
    """The slots that are filled inside an expression or statement."""
    return frozenset(n.slot for n in node.walk() if not isinstance(n, Slot) and hasattr(n, "slot"))


def has_statement(statements: tuple[TStatement, ...], kinds: tuple[type, ...]) -> bool:
    """Does any statement (also inside emit each) belong to one of these kinds?"""
    return any(isinstance(s, kinds) or (isinstance(s, TEach) and has_statement(s.body, kinds)) for s in statements)


def aggregate_calls(program: TypedProgram) -> tuple[AggregateCall, ...]:
    """The calls of an aggregate program, in their order."""
    emits = [s.value for s in program.statements if isinstance(s, TEmit)]
    return tuple(part for value in emits for part in value.walk() if isinstance(part, AggregateCall))
