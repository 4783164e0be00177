"""Typed expressions as Polars expressions, with their failures beside them.

Polars computes every branch for every row, so nothing may raise; a failure is a condition, and lazy operators guard the
conditions of what they may not evaluate. What is needed twice becomes a column of its own in an earlier step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import polars as pl

from clinker_spark.core.types import Kind
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Nulls
from clinker_spark.cxl.check.infer.overloads import is_safe, literals_of, may_overflow
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.system import Context
from clinker_spark.cxl.values import DECIMAL_OVERFLOW, holds
from clinker_spark.cxl.vector.call import (
    Form,
    Formed,
    VectorCall,
    dtype_of,
    interpreter_value,
    is_digits,
    literal,
    mended,
)
from clinker_spark.cxl.vector.forms.decimals import few_digits, fitting
from clinker_spark.cxl.vector.forms.text import text_of
from clinker_spark.cxl.vector.reasons import form_of


@dataclass(frozen=True)
class Failing:
    """One way to fail: where, and what is said then."""

    when: pl.Expr
    kind: str
    message: str
    value: pl.Expr | None
    level: int = 0
    field: str | None = None

    def guarded(self, guard: pl.Expr, level: int) -> Failing:
        return replace(self, when=guard & self.when, level=max(level, self.level))


@dataclass(frozen=True)
class Value:
    """An expression, the first step that can hold it, and how it can fail, in order of evaluation."""

    expr: pl.Expr
    level: int = 0
    failures: tuple[Failing, ...] = ()
    simple: bool = False
    constant: bool = False
    """Is it one value instead of a column?"""

    def bare(self) -> Value:
        return replace(self, failures=())


@dataclass
class Lowering:
    """Lowers the expressions of one program. `levels` are the columns to add, step by step."""

    context: Context
    names: Callable[[], str]
    levels: list[list[pl.Expr]] = field(default_factory=list)
    slots: dict[str, Value] = field(default_factory=dict)
    first: int = 0
    """The first step that is still open."""

    def bind(self, value: Value) -> Value:
        """The same value as a column."""
        return value if value.simple else self.column(value)

    def column(self, value: Value) -> Value:
        """The same, also for constants."""
        name = self.names()
        level = max(value.level, self.first)
        while len(self.levels) <= level:
            self.levels.append([])
        self.levels[level].append(value.expr.alias(name))
        return Value(pl.col(name), level + 1, value.failures, simple=True)

    def taken_levels(self) -> list[list[pl.Expr]]:
        """The steps that were added since the last call."""
        found = self.levels[self.first :]
        self.first = len(self.levels)
        return [columns for columns in found if columns]

    def lower(self, e: ir.TExpr) -> Value:
        return _RULES[type(e)](self, e)

    def bound(self, e: ir.TExpr) -> Value:
        return self.bind(self.lower(e))


def made(expr: pl.Expr, parts: Sequence[Value], extra: Sequence[Failing] = ()) -> Value:
    """An expression of parts: as late and fallible as they are together."""
    failures = tuple(f for part in parts for f in part.failures) + tuple(extra)
    return Value(expr, max((part.level for part in parts), default=0), failures)


def _guard(value: Value, guard: pl.Expr, level: int) -> Value:
    return replace(value, failures=tuple(f.guarded(guard, level) for f in value.failures))


def _is_true(condition: pl.Expr) -> pl.Expr:
    return condition.fill_null(False)


# ---------------------------------------------------------------- leaves


def _constant(lowering: Lowering, e: ir.Const) -> Value:
    return Value(literal(e.value, e.type), simple=True, constant=True)


def _field(lowering: Lowering, e: ir.Field) -> Value:
    return Value(pl.col(e.name), simple=True)


def _slot(lowering: Lowering, e: ir.Slot) -> Value:
    return lowering.slots[e.slot].bare()


def _system(lowering: Lowering, e: ir.SystemRef) -> Value:
    return Value(literal(lowering.context.get(e.namespace, e.path), e.type), simple=True, constant=True)


# ---------------------------------------------------------------- calls


def load_form(name: str) -> Form:
    """The function that a row of the builtin table names."""
    module, _, function = name.partition(".")
    form: Form = getattr(import_module(f"clinker_spark.cxl.vector.forms.{module}"), function)
    return form


def _call(lowering: Lowering, e: ir.Call) -> Value:
    name = form_of(e)
    assert name is not None, f"{e.builtin.name} has no vector form"
    args = [lowering.bound(a) for a in e.args]
    literals = literals_of(e.args)
    types = [a.type.unwrap() for a in e.args]
    if e.builtin.nulls is Nulls.PROPAGATE and any(value is None for value in literals):
        return made(literal(None, e.type), args)  # a written null makes the result null before anything can fail
    # A form may look at whole columns: at least one of its arguments is one, and all that are no written constants.
    alone = all(a.constant for a in args)
    args = [
        lowering.column(a) if a.constant and (alone or value is NOT_LITERAL) else a
        for a, value in zip(args, literals, strict=True)
    ]
    if alone:
        literals = [NOT_LITERAL if i == 0 else value for i, value in enumerate(literals)]
    formed = load_form(name)(VectorCall([a.expr for a in args], literals, types, e.overload, e.type.unwrap()))
    formed = formed if isinstance(formed, Formed) else Formed(formed)
    result = lowering.bind(made(formed.value, args))
    if is_safe(e.builtin, e.overload, e.args):
        return result
    own = []
    conditions = formed.failed or (None,) * len(e.overload.failures)
    for failure, given in zip(e.overload.failures, conditions, strict=True):
        when = given if given is None or isinstance(given, pl.Expr) else given(result.expr)
        own.append(_failing(failure, when, e.builtin, args, e, literals, result))
    return replace(result, failures=result.failures + tuple(own))


def _failing(
    failure: Failure,
    when: pl.Expr | None,
    builtin: Builtin,
    args: Sequence[Value],
    e: ir.Call,
    literals: Sequence[Any],
    result: Value,
) -> Failing:
    if when is None:
        if failure.when == "FALSE":
            when = pl.lit(False)
        else:
            assert not failure.when, f"the form of {builtin.name} does not say where it fails"
            seen = range(len(literals)) if builtin.nulls is Nulls.PROPAGATE else range(1)
            when = result.expr.is_null()
            for i in seen:
                if literals[i] is NOT_LITERAL:
                    when = when & args[i].expr.is_not_null()
    value = None
    if failure.value is not None and failure.value < len(args):
        value = text_of(args[failure.value].expr, e.args[failure.value].type)
    return Failing(_is_true(when), failure.kind.value, failure.message, value, result.level)


# ---------------------------------------------------------------- representation, comparison


def _widen(lowering: Lowering, e: ir.Widen) -> Value:
    if e.arg.type.kind is Kind.NULL:
        inner = lowering.lower(e.arg)
        return made(literal(None, e.type), [inner])
    inner = lowering.lower(e.arg)
    if e.type.kind is Kind.DECIMAL:
        return _to_decimal(lowering, e, lowering.bind(inner))
    if e.arg.type.kind is e.type.kind:
        return inner
    inner = lowering.bind(inner)
    if e.type.kind is Kind.FLOAT:
        return made(inner.expr.cast(pl.Float64), [inner])
    return made(inner.expr.cast(pl.Int64, strict=False), [inner])


def _to_decimal(lowering: Lowering, e: ir.Widen, inner: Value) -> Value:
    """A decimal at another scale, or as its digits; an Int as a decimal. More places leave fewer digits."""
    a, b = e.arg.type, e.type
    if b.scale is None:
        return made(text_of(inner.expr, a), [inner])
    if a.unwrap() == b.unwrap():
        return inner
    if not may_overflow(a, b):
        return made(inner.expr.cast(dtype_of(b), strict=False), [inner])
    wide = lowering.bind(made(fitting(inner.expr, b.scale), [inner]))
    when = wide.expr.is_null() & inner.expr.is_not_null()
    kind, value = ErrorKind.INTEGER_OVERFLOW.value, text_of(inner.expr, a)
    return replace(wide, failures=(*wide.failures, Failing(when, kind, DECIMAL_OVERFLOW, value, wide.level)))


def _nothing(e: ir.TExpr) -> bool:
    return e.type.kind is Kind.NULL or (isinstance(e, ir.Const) and e.value is None)


def _compare(lowering: Lowering, e: ir.Compare) -> Value:
    left, right = lowering.bound(e.left), lowering.bound(e.right)
    both = [left, right]
    if any(map(is_digits, (e.left.type, e.right.type))) and not (_nothing(e.left) or _nothing(e.right)):
        return _compare_digits(lowering, e, left, right)
    if e.op in ("==", "!="):
        if _nothing(e.left) or _nothing(e.right):
            sides = [v.expr for v, typed in ((left, e.left), (right, e.right)) if not _nothing(typed)]
            equal = sides[0].is_null() if sides else pl.lit(True)
        elif e.left.type.kind is Kind.FLOAT:
            equal = left.expr.eq_missing(right.expr) & ~_is_true(left.expr.is_nan())
        else:
            equal = left.expr.eq_missing(right.expr)
        return made(~equal if e.op == "!=" else equal, both)
    if Kind.NULL in (e.left.type.kind, e.right.type.kind):
        return made(pl.lit(None, dtype=pl.Boolean), both)
    if left.constant:  # Polars may take a constant before a column that has one value for a single record
        found: pl.Expr = getattr(right.expr, _TURNED[e.op])(left.expr)
    else:
        found = getattr(left.expr, _ORDER[e.op])(right.expr)
    if e.left.type.kind is Kind.FLOAT:
        # Polars puts NaN above everything: the side that would be the greater one must not be NaN.
        greater, other = (left, right) if e.op in (">", ">=") else (right, left)
        found = found & ~(greater.expr.is_nan() & other.expr.is_not_null())
    return made(found, both)


def _compare_digits(lowering: Lowering, e: ir.Compare, left: Value, right: Value) -> Value:
    """Decimals of which some are texts: side by side where they have few digits."""
    sides = [lowering.column(side) if side.constant else side for side in (left, right)]
    (a, short_a), (b, short_b) = (
        few_digits(side.expr, typed.type) for side, typed in zip(sides, (e.left, e.right), strict=True)
    )
    types, op = (e.left.type, e.right.type), e.op

    def one(values: Sequence[Any]) -> Any:
        return holds(op, *(interpreter_value(value, t) for value, t in zip(values, types, strict=True)))

    known: pl.Expr = getattr(a, {**_ORDER, "==": "eq", "!=": "ne"}[op])(b)
    found = mended(known, ~(short_a & short_b), [side.expr for side in sides], one)
    if op in ("==", "!="):
        missing = [side.expr.is_null() for side in sides]
        found = pl.when(missing[0] | missing[1]).then((missing[0] == missing[1]) == (op == "==")).otherwise(found)
    return made(found, sides)


_TURNED = {">": "lt", ">=": "le", "<": "gt", "<=": "ge"}
_ORDER = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}


# ---------------------------------------------------------------- lazy operators


def _logic(lowering: Lowering, e: ir.Logic) -> Value:
    left, right = lowering.bound(e.left), lowering.bound(e.right)
    if right.failures:
        taken = left.expr.fill_null(e.op == "and")
        right = _guard(right, taken if e.op == "and" else ~taken, left.level)
    return made(left.expr & right.expr if e.op == "and" else left.expr | right.expr, [left, right])


def _not(lowering: Lowering, e: ir.Not) -> Value:
    inner = lowering.bound(e.arg)
    return made(~inner.expr, [inner])


def _coalesce(lowering: Lowering, e: ir.Coalesce) -> Value:
    left, right = lowering.bound(e.left), lowering.bound(e.right)
    right = _guard(right, left.expr.is_null(), left.level)
    return made(pl.coalesce(left.expr, right.expr), [left, right])


def _if(lowering: Lowering, e: ir.If) -> Value:
    conditions = [lowering.bound(condition) for condition in e.conditions]
    values = [lowering.bound(value) for value in (*e.values, e.otherwise)]
    chain: Any = pl.when(_is_true(conditions[0].expr)).then(values[0].expr)
    for condition, value in zip(conditions[1:], values[1:], strict=False):
        chain = chain.when(_is_true(condition.expr)).then(value.expr)
    expr = chain.otherwise(values[-1].expr)
    failures: list[Failing] = []
    parts = [*conditions, *values]
    if any(part.failures for part in parts):
        level = max(condition.level for condition in conditions)
        before: pl.Expr | None = None  # no condition so far was true
        for i, value in enumerate(values):
            if i < len(conditions):
                condition = conditions[i]
                reached = condition if before is None else _guard(condition, before, level)
                failures += reached.failures
                holds = _is_true(condition.expr)
                failures += _guard(value, holds if before is None else before & holds, level).failures
                before = ~holds if before is None else before & ~holds
            else:
                assert before is not None
                failures += _guard(value, before, level).failures
    return made(expr, [part.bare() for part in parts], failures)


def _let(lowering: Lowering, e: ir.LetIn) -> Value:
    value = lowering.bound(e.value)
    lowering.slots[e.slot] = value
    body = lowering.lower(e.body)
    return replace(body, failures=value.failures + body.failures)


_RULES: Mapping[type[ir.TExpr], Callable[[Lowering, Any], Value]] = {
    ir.Const: _constant,
    ir.Field: _field,
    ir.Slot: _slot,
    ir.SystemRef: _system,
    ir.Call: _call,
    ir.Widen: _widen,
    ir.Compare: _compare,
    ir.Logic: _logic,
    ir.Not: _not,
    ir.Coalesce: _coalesce,
    ir.If: _if,
    ir.LetIn: _let,
}
