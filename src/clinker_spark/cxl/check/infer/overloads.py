"""Choosing the signature of a builtin for given arguments, and fitting the arguments to it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from clinker_spark.core.span import Span
from clinker_spark.core.types import ANY, FLOAT, NULL, Kind, Type, decimal, unify
from clinker_spark.cxl.builtins.calls import run_overload
from clinker_spark.cxl.builtins.families.arithmetic import HALF_STEP
from clinker_spark.cxl.builtins.physical import same_representation, widen_value
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Overload
from clinker_spark.cxl.errors import Fail
from clinker_spark.cxl.ir import Call, Const, DynamicCall, If, Narrow, Slot, TExpr, TTrace, Widen
from clinker_spark.cxl.values import DECIMAL_DIGITS

Candidate = tuple[int, Overload, tuple[Type, ...]]
"""How far an overload is from the arguments, the overload, and its parameters for as many arguments."""

MAX_FOLDED_CHARS = 4096

_NUMBERS = (Kind.INT, Kind.FLOAT, Kind.DECIMAL)


def widen(arg: TExpr, to: Type) -> TExpr:
    """`arg` as the wider type `to`; no node when nothing changes."""
    to = replace(to, nullable=to.nullable or arg.type.nullable)
    if isinstance(arg, Const):
        try:
            return Const(arg.span, to, False, widen_value(arg.value, arg.type, to))
        except Fail:
            return Widen(arg.span, to, True, arg)  # it fails on every record that reaches it
    if same_representation(arg.type, to):
        return arg if arg.type == to else _retyped(arg, to)
    return Widen(arg.span, to, arg.fallible or may_overflow(arg.type, to), arg)


def may_overflow(a: Type, b: Type) -> bool:
    """Can a value be too large for the type it is widened to? More places leave fewer digits before the point."""
    if a.is_dynamic or b.is_dynamic:
        return False
    if b.kind is Kind.DECIMAL and b.scale is not None:
        if a.kind is Kind.INT:
            return b.scale > DECIMAL_DIGITS - 19  # an Int has up to 19 digits
        return a.kind is Kind.DECIMAL and (a.scale is None or a.scale < b.scale)
    if a.kind is b.kind and a.kind in (Kind.ARRAY, Kind.MAP):
        return may_overflow(a.element or ANY, b.element or ANY)
    return False


def _retyped(arg: TExpr, to: Type) -> TExpr:
    """The same value under a type with the same representation (only nullability or an element's flag differs)."""
    return arg if arg.type.unwrap() == to.unwrap() else Widen(arg.span, to, arg.fallible, arg)


def shown_as(value: TExpr, slot: str, to: Type) -> TExpr:
    """An emitted value, read back from its slot, in the type of its output column.

    An emit that a later one replaces may be of a type that the column does not take: nobody sees it, it stays."""
    plain = Slot(value.span, value.type, False, slot)
    merged = unify(value.type, to)
    fits = to.is_dynamic or (merged is not None and merged.unwrap() == to.unwrap())
    return widen(plain, to) if fits else plain


def traced(s: TTrace) -> TExpr:
    """What a trace evaluates: its message, if its condition is true."""
    if s.condition is None:
        return s.message
    nothing = widen(Const(s.span, NULL, False, None), s.message.type)
    fallible = s.condition.fallible or s.message.fallible
    return If(s.span, s.message.type, fallible, (s.condition,), (s.message,), nothing)


def narrow(arg: TExpr, to: Type) -> TExpr:
    """A dynamic `arg` as the static type `to`."""
    return Narrow(arg.span, to.as_static().as_nullable(), arg.fallible, arg)


def fit(arg: TExpr, param: Type) -> TExpr:
    """`arg` in the representation that `param` asks for."""
    if param.kind is Kind.ANY:
        return arg
    if arg.type.is_dynamic:
        return narrow(arg, param if param.kind is not Kind.DECIMAL else decimal(0))
    if arg.type.kind is param.kind:
        return arg  # arrays, maps and decimals keep their own element or scale
    if param.kind is Kind.DECIMAL and arg.type.kind is Kind.INT:
        return widen(arg, decimal(0))
    return widen(arg, param)


def _cost(arg: Type, param: Type, position: int, operator: bool) -> int | None:
    """How far an argument is from a parameter; None: it does not fit."""
    if param.kind is Kind.ANY:
        return 5
    if arg.kind in (Kind.NULL, Kind.ANY):
        return 1
    if arg.kind is Kind.NUMERIC:
        return 2 if param.kind in _NUMBERS else None
    if arg.kind is param.kind:
        element = param.element
        if element is None or element.kind is Kind.ANY:
            return 1 if element is not None else 0
        return 0 if arg.element is not None and arg.element.unwrap() == element else None
    if arg.kind is Kind.INT and param.kind in (Kind.FLOAT, Kind.DECIMAL):
        return 2 if param.kind is Kind.FLOAT else 3
    if arg.kind is Kind.FLOAT and param.kind is Kind.INT and position > 0 and not operator:
        return 6  # counts and lengths accept a float, truncated
    return None


def params_for(overload: Overload, count: int) -> tuple[Type, ...] | None:
    """The parameter types for `count` arguments, or None when the overload does not take that many."""
    params = overload.params
    if overload.variadic and count >= len(params):
        return (*params, *[params[-1]] * (count - len(params)))
    if len(params) - overload.optional <= count <= len(params):
        return params[:count]
    return None


def candidates(builtin: Builtin, args: Sequence[TExpr]) -> list[Candidate]:
    """The overloads that fit, nearest first."""
    operator = builtin.family == "operator"
    found: list[Candidate] = []
    for overload in builtin.overloads:
        params = params_for(overload, len(args))
        if params is None:
            continue
        costs = [_cost(a.type, p, i, operator) for i, (a, p) in enumerate(zip(args, params, strict=True))]
        if all(c is not None for c in costs):
            found.append((sum(c for c in costs if c is not None), overload, params))
    return sorted(found, key=lambda item: item[0])


def make_call(builtin: Builtin, args: Sequence[TExpr], span: Span, found: list[Candidate]) -> TExpr:
    """The call with its overload chosen from the candidates, folded when all is constant."""
    if any(a.type.is_dynamic for a in args):
        found = _dynamic_choice(found, args)
        if len(found) > 1:
            return _dynamic_call(builtin, found, args, span)
    _, overload, params = found[0]
    fitted = tuple(fit(a, p) for a, p in zip(args, params, strict=True))
    literals = literals_of(fitted)
    result = _result_type(builtin, overload, fitted, literals)
    own = bool(overload.failures) and not is_safe(builtin, overload, fitted)
    call = Call(span, result, own or any(a.fallible for a in fitted), builtin, overload, fitted)
    return fold(call)


def is_safe(builtin: Builtin, overload: Overload, args: Sequence[TExpr]) -> bool:
    """Is it out of the question, for these arguments, that the call fails?"""
    if overload.safe is not None and overload.safe(literals_of(args)):
        return True
    if builtin.name in _GROWTH and overload.result is FLOAT:
        sizes = [_magnitude(a) for a in args]
        harmless = 1.0 if builtin.name == "*" else HALF_STEP
        return min(sizes) < harmless or _GROWTH[builtin.name](*sizes) < _ANY_FLOAT
    return False


_ANY_FLOAT = sys.float_info.max / 2
_GROWTH: dict[str, Callable[[float, float], float]] = {"+": float.__add__, "-": float.__add__, "*": float.__mul__}


def _magnitude(e: TExpr, depth: int = 4) -> float:
    """What the size of a Float expression cannot exceed; infinite when nothing is known. Ints that take part in float
    arithmetic are small numbers there: as long as they last, no operation on them can overflow."""
    if isinstance(e, Const):
        return abs(e.value) if isinstance(e.value, float) else math.inf
    if isinstance(e, Widen):
        return 2.0**63 if e.arg.type.kind is Kind.INT else math.inf
    if isinstance(e, Call) and e.type.kind is Kind.FLOAT and depth:
        if e.builtin.name in _GROWTH:
            return _GROWTH[e.builtin.name](*(_magnitude(a, depth - 1) for a in e.args))
        if e.builtin.name in ("negate", "abs"):
            return _magnitude(e.args[0], depth - 1)
    return math.inf


def literals_of(args: Sequence[TExpr]) -> list[Any]:
    return [a.value if isinstance(a, Const) else NOT_LITERAL for a in args]


def _dynamic_choice(found: list[Candidate], args: Sequence[TExpr]) -> list[Candidate]:
    """Which overloads a dynamic argument may select at run time, in the table's order."""
    if any(a.type.kind is Kind.DECIMAL and not a.type.is_dynamic for a in args):
        exact = [f for f in found if any(p.kind is Kind.DECIMAL for p in f[2])]
        return exact[:1] or found[:1]
    # Dynamic values are never decimals, so those overloads cannot be selected.
    found = [f for f in found if all(p.kind is not Kind.DECIMAL for p in f[2])] or found[:1]
    static = [i for i, a in enumerate(args) if not a.type.is_dynamic and a.type.kind is not Kind.NULL]
    found = [f for f in found if all(_reachable(args[i].type, f[2][i]) for i in static)] or found[:1]
    found.sort(key=lambda item: _order(item[2]))
    if any(all(p.kind is Kind.ANY for p in f[2]) for f in found):
        return found[:1] if all(p.kind is Kind.ANY for p in found[0][2]) else found
    return found


def _reachable(arg: Type, param: Type) -> bool:
    return param.kind in (arg.kind, Kind.ANY) or (arg.kind is Kind.INT and param.kind is Kind.FLOAT)


def _order(params: tuple[Type, ...]) -> tuple[int, ...]:
    """Int before Float (an Int also fits a Float parameter), the catch-all last."""
    rank = {Kind.INT: 0, Kind.FLOAT: 1, Kind.ANY: 3}
    return tuple(rank.get(p.kind, 2) for p in params)


def _dynamic_call(builtin: Builtin, found: list[Candidate], args: Sequence[TExpr], span: Span) -> TExpr:
    overloads = tuple(f[1] for f in found)
    results = []
    for _, overload, params in found:
        results.append(
            overload.result_type([p if p.kind is not Kind.ANY else a.type for p, a in zip(params, args, strict=True)])
        )
    first = results[0].unwrap()
    if all(r.unwrap() == first for r in results):
        result = first.as_nullable()
    elif builtin.family == "operator" and len(args) == 2 and builtin.name != "[]":
        result = (unify(args[0].type, args[1].type) or ANY).as_dynamic()
    else:
        result = ANY
    fallible = any(o.failures for o in overloads) or any(a.fallible for a in args)
    return DynamicCall(span, result, fallible, builtin, overloads, tuple(args))


def _result_type(builtin: Builtin, overload: Overload, args: Sequence[TExpr], literals: Sequence[Any]) -> Type:
    types = [a.type.unwrap() for a in args]
    rule = overload.result
    with_literals = getattr(rule, "with_literals", None)
    result: Type = with_literals(types, literals) if with_literals else overload.result_type(types)
    receiver_null = any(a.type.nullable or a.type.kind is Kind.NULL for a in args)
    sees_null = builtin.nulls.name == "PASS"
    return result.as_nullable() if receiver_null and not sees_null else result


def fold(call: Call) -> TExpr:
    """The constant a call stands for, when all its arguments are constants and it does not fail."""
    if not all(isinstance(a, Const) for a in call.args) or call.builtin.name == "debug":
        return call
    try:
        value = run_overload(call.builtin, call.overload, [a.value for a in call.args if isinstance(a, Const)])
    except Fail:
        return call  # it fails on every record that reaches it
    if isinstance(value, str) and len(value) > MAX_FOLDED_CHARS:
        return call  # cheaper to compute than to carry through every text of the plan
    result = call.type
    if result.kind is Kind.DECIMAL and value is not None:
        result = decimal(max(0, -value.as_tuple().exponent))
    if result.kind is Kind.FLOAT and isinstance(value, int):
        value = float(value)
    return Const(call.span, result.as_nullable() if value is None else result.unwrap(), False, value)


def describe_mismatch(builtin: Builtin, args: Sequence[TExpr]) -> tuple[int, str] | None:
    """The first argument (0 is the receiver) that no overload of the right arity takes, and what is expected."""
    fitting = [p for o in builtin.overloads if (p := params_for(o, len(args))) is not None]
    for position, arg in enumerate(args):
        still = [p for p in fitting if _cost(arg.type, p[position], position, False) is not None]
        if not still:
            expected: list[str] = []
            for params in fitting:
                if str(params[position]) not in expected:
                    expected.append(str(params[position]))
            return position, " or ".join(expected)
        fitting = still
    return None


def arity_text(builtin: Builtin) -> str:
    """ "no arguments", "1 argument", "1 or 2 arguments", "at least 1 argument"."""
    counts: set[int] = set()
    for overload in builtin.overloads:
        most = len(overload.params) - 1
        if overload.variadic:
            return f"at least {most} argument{'s' if most != 1 else ''}"
        counts.update(range(most - overload.optional, most + 1))
    if counts == {0}:
        return "no arguments"
    text = " or ".join(str(c) for c in sorted(counts))
    return f"{text} argument{'' if counts == {1} else 's'}"


def promote(a: TExpr, b: TExpr) -> tuple[TExpr, TExpr] | None:
    """Two static operands in one representation, or None when their types do not unify."""
    merged = unify(a.type, b.type)
    if merged is None:
        return None
    merged = merged.as_static().unwrap()
    if merged.kind is Kind.NULL:
        return a, b
    if merged.kind is Kind.DECIMAL:  # compared exactly at their own scales: the common one may not hold both
        exact = [x if x.type.kind is Kind.DECIMAL else widen(x, decimal(0)) for x in (a, b)]
        return exact[0], exact[1]
    return widen(a, merged), widen(b, merged)
