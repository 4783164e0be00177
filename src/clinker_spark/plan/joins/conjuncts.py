"""The condition of a combine, taken apart: equalities and ranges between two inputs, and everything else.

>>> from clinker_spark.cxl.conditions import compile_condition
>>> columns = dict.fromkeys(("a.id", "a.x", "b.id", "b.low"), "int")
>>> condition = compile_condition("a.id == b.id and b.low <= a.x", columns)
>>> [type(c).__name__ for c in split(condition.value, "a")]
['Equality', 'Range']
>>> condition = compile_condition("(a.id == b.id and b.low <= a.x) ?? false", columns)
>>> [type(c).__name__ for c in split(condition.value, "a")]
['Equality', 'Range']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clinker_spark.core.types import BOOL, Kind, Type
from clinker_spark.cxl import ir

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
"""The same comparison with its sides exchanged."""
AXES = (Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.DATE, Kind.DATETIME)
"""What a range can be searched on."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of two inputs; each side reads one of them."""

    left_input: str
    left: ir.TExpr
    op: str
    right_input: str
    right: ir.TExpr

    @property
    def inputs(self) -> frozenset[str]:
        return frozenset((self.left_input, self.right_input))

    def towards(self, build: str) -> Comparison:
        """The same comparison with `build` on its right side."""
        if self.right_input == build:
            return self
        kind = type(self)
        return kind(self.right_input, self.right, MIRRORED[self.op], self.left_input, self.left)


class Equality(Comparison):
    """`a.x == b.y`: null equals nothing, NaN equals NaN."""


class Range(Comparison):
    """`a.x < b.y` and its kin, on numbers or times."""


@dataclass(frozen=True, eq=False)
class Residual:
    """Any other condition, and the inputs it reads."""

    inputs: frozenset[str]
    value: ir.TExpr


Conjunct = Equality | Range | Residual


def split(condition: ir.TExpr, probe_name: str) -> list[Conjunct]:
    """The parts of a condition that must all be true. What `$source` says is about the probe side."""
    return [_classify(part, probe_name) for part in parts(condition)]


def parts(e: ir.TExpr) -> Iterator[ir.TExpr]:
    """What must all be true for a condition to be. Unknown is not true, so `condition ?? false` asks the same."""
    while True:
        if isinstance(e, ir.Widen) and e.arg.type.kind is Kind.BOOL and not e.arg.type.is_dynamic:
            e = e.arg
        elif isinstance(e, ir.Coalesce) and isinstance(e.right, ir.Const) and not e.right.value:
            e = e.left
        else:
            break
    if isinstance(e, ir.Logic) and e.op == "and":
        yield from parts(e.left)
        yield from parts(e.right)
    else:
        yield e


def _classify(e: ir.TExpr, probe_name: str) -> Conjunct:
    if isinstance(e, ir.Compare) and e.op in MIRRORED:
        left, right = inputs_of(e.left, probe_name), inputs_of(e.right, probe_name)
        if len(left) == len(right) == 1 and left != right:
            [a], [b] = left, right
            if e.op == "==":
                return Equality(a, e.left, e.op, b, e.right)
            if is_axis(e.left.type) and is_axis(e.right.type):
                return Range(a, e.left, e.op, b, e.right)
    return Residual(inputs_of(e, probe_name), e)


def is_axis(t: Type) -> bool:
    """Can a range be searched on values of this type?"""
    return t.kind in AXES and not t.is_dynamic


def inputs_of(e: ir.TExpr, probe_name: str) -> frozenset[str]:
    """The inputs that an expression reads."""
    found = set()
    for node in e.walk():
        if isinstance(node, ir.Field):
            found.add(node.name.partition(".")[0])
        elif isinstance(node, ir.SystemRef) and node.namespace in ("source", "record", "doc", "meta"):
            found.add(probe_name)
    return frozenset(found)


def all_of(conditions: Sequence[ir.TExpr]) -> ir.TExpr | None:
    """One condition of several; None of none."""
    result: ir.TExpr | None = None
    for part in conditions:
        if result is None:
            result = part
        else:
            t = BOOL.as_nullable() if result.type.nullable or part.type.nullable else BOOL
            result = ir.Logic(result.span.to(part.span), t, result.fallible or part.fallible, "and", result, part)
    return result


def shown_type(e: ir.TExpr) -> Type:
    """The type of a side as it was written, before it was widened to that of the other side."""
    while isinstance(e, ir.Widen):
        e = e.arg
    return e.type.unwrap()


def range_pair(ranges: Sequence[Range]) -> tuple[Range, Range] | None:
    """Two ranges that say when an interval of the probe side meets one of the build: `left >= build.low` and
    `left <= build.high`, on one axis. Either interval may be a point."""
    lower = [r for r in ranges if r.op in (">=", ">")]
    upper = [r for r in ranges if r.op in ("<=", "<")]
    pairs = [(a, b) for a in lower for b in upper if axis_of(a) == axis_of(b)]
    # A point on either side makes fewer candidates than two intervals do.
    return min(pairs, key=lambda p: -(same(p[0].left, p[1].left) + same(p[0].right, p[1].right)), default=None)


def axis_of(r: Range) -> str:
    """Ranges on one axis can be searched together."""
    kinds = {r.left.type.kind, r.right.type.kind}
    if kinds <= {Kind.DATE}:
        return "date"
    if kinds <= {Kind.DATETIME}:
        return "datetime"
    return "whole" if kinds <= {Kind.INT} else "number"


def same(a: ir.TExpr, b: ir.TExpr) -> bool:
    """Are two expressions written the same, column for column?"""
    return a is b or (
        isinstance(a, ir.Field) and isinstance(b, ir.Field) and a.name == b.name and a.type.kind is b.type.kind
    )
