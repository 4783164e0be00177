"""Facts about CXL values at run time: their kinds, when two are equal, which is the smaller, and exact arithmetic.

Values are plain Python: None, bool, int (within i64), float, Decimal, str, date, datetime, list, dict.

>>> equal(1, 1.0), equal(None, None), equal([1], [1]), equal(True, 1)
(True, True, False, False)
>>> compare(2, 2.5), compare("b", "a"), compare(1, "a"), compare(1.0, float("nan"))
(-1, 1, None, None)
>>> decimal_text(decimal_div(Decimal("10.00"), Decimal(4)))
'2.50'
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from functools import reduce
from typing import Any

from clinker_spark.core.types import ARRAY, MAP, MAX_SCALE, Kind, Type, decimal
from clinker_spark.cxl.errors import ErrorKind, Fail

I64_MIN = -(2**63)
I64_MAX = 2**63 - 1

DECIMAL_DIGITS = 29
"""How many digits a decimal may have at its scale: DECIMAL(29, s) on Spark."""

DECIMAL_OVERFLOW = f"decimal overflow: more than {DECIMAL_DIGITS} digits"
"""The message of a record with a decimal that needs more."""

_MANTISSA = 2**96
_EXACT = Context(prec=MAX_PREC, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def kind_of(value: Any) -> Kind:
    """The kind of a run-time value.

    >>> [kind_of(v).value for v in (True, 1, dt.datetime(2024, 1, 1), dt.date(2024, 1, 1))]
    ['Bool', 'Int', 'DateTime', 'Date']
    """
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    for cls, subclass_kind in _KINDS.items():  # the order puts bool before int and datetime before date
        if isinstance(value, cls):
            return subclass_kind
    raise TypeError(f"not a CXL value: {type(value).__name__}")


_KINDS: dict[type, Kind] = {
    type(None): Kind.NULL,
    bool: Kind.BOOL,
    int: Kind.INT,
    float: Kind.FLOAT,
    Decimal: Kind.DECIMAL,
    str: Kind.STRING,
    dt.datetime: Kind.DATETIME,
    dt.date: Kind.DATE,
    list: Kind.ARRAY,
    tuple: Kind.ARRAY,
    dict: Kind.MAP,
}

_NUMBERS = frozenset((Kind.INT, Kind.FLOAT, Kind.DECIMAL))


def type_of(value: Any) -> Type:
    """The static type of a value. Containers hold Any, and the scale of a decimal is left open."""
    match kind := kind_of(value):
        case Kind.ARRAY:
            return ARRAY
        case Kind.MAP:
            return MAP
        case Kind.DECIMAL:
            return decimal(None)
    return Type(kind)


def type_name(value: Any) -> str:
    """The name `type_of()` gives: null bool int float decimal string date datetime array map."""
    return kind_of(value).value.lower()


def equal(a: Any, b: Any) -> bool:
    """CXL `==`: never null. Arrays and maps are equal to nothing, not even to themselves."""
    kind, other = kind_of(a), kind_of(b)
    if kind in _NUMBERS and other in _NUMBERS:
        return compare(a, b) == 0
    return kind is other and kind not in (Kind.ARRAY, Kind.MAP) and bool(a == b)


def compare(a: Any, b: Any) -> int | None:
    """-1, 0 or 1, or None where CXL has no order: other kinds, bools, nulls, NaN."""
    kind, other = kind_of(a), kind_of(b)
    if kind in _NUMBERS and other in _NUMBERS:
        if Kind.FLOAT in (kind, other):
            a, b = float(a), float(b)
            if math.isnan(a) or math.isnan(b):
                return None
    elif kind is not other or kind not in (Kind.STRING, Kind.DATE, Kind.DATETIME):
        return None
    return int(a > b) - int(a < b)  # Python orders strings by code point, which is the order of their UTF-8 bytes


_ORDERINGS: dict[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


def holds(op: str, a: Any, b: Any) -> bool | None:
    """A comparison of two values: equality is never null, an ordering of what has no order is false.

    >>> holds("==", None, 1), holds("<", None, 1), holds("<", "a", 1)
    (False, None, False)
    """
    if op in ("==", "!="):
        return equal(a, b) == (op == "==")
    if a is None or b is None:
        return None
    order = compare(a, b)
    return order is not None and _ORDERINGS[op](order, 0)


# ---------------------------------------------------------------- integers


def div_trunc(a: int, b: int) -> int:
    """a / b toward zero. Not checked against i64: `I64_MIN / -1` is the caller's to refuse."""
    if b == 0:
        raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def mod_trunc(a: int, b: int) -> int:
    """The remainder of `div_trunc`; it has the sign of `a`."""
    if b == 0:
        raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def checked_int(value: int) -> int:
    """`value` if it fits an i64, else an overflow."""
    if not I64_MIN <= value <= I64_MAX:
        raise Fail(ErrorKind.INTEGER_OVERFLOW, value)
    return value


def float_to_int(value: float) -> int:
    """Toward zero, saturating at the i64 bounds; NaN is 0."""
    if math.isnan(value):
        return 0
    if value >= 2.0**63:
        return I64_MAX
    return I64_MIN if value <= -(2.0**63) else int(value)


# ---------------------------------------------------------------- decimals


def decimal_scale(value: Decimal) -> int:
    """Digits after the point (never negative: 1E+3 is 1000)."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def decimal_text(value: Decimal) -> str:
    """Plain digits with the scale kept; zero has no sign.

    >>> decimal_text(Decimal("1.50")), decimal_text(Decimal("1E+3")), decimal_text(Decimal("-0.00"))
    ('1.50', '1000', '0.00')
    """
    return format(value if value else value.copy_abs(), "f")


def decimal_fit(value: Decimal, scale: int | None = None) -> Decimal:
    """`value` at `scale` (its own one by default, at most 28), rounded half-even; too many digits overflow."""
    wanted = min(decimal_scale(value) if scale is None else scale, MAX_SCALE)
    result = decimal_at(value, wanted)
    if len(result.as_tuple().digits) > DECIMAL_DIGITS:
        raise Fail(ErrorKind.INTEGER_OVERFLOW, value)
    return result if result else result.copy_abs()


def decimal_add(a: Decimal, b: Decimal) -> Decimal:
    return decimal_fit(_EXACT.add(a, b), max(decimal_scale(a), decimal_scale(b)))


def decimal_sub(a: Decimal, b: Decimal) -> Decimal:
    return decimal_fit(_EXACT.subtract(a, b), max(decimal_scale(a), decimal_scale(b)))


def decimal_mul(a: Decimal, b: Decimal) -> Decimal:
    return decimal_fit(_EXACT.multiply(a, b), decimal_scale(a) + decimal_scale(b))


def decimal_sum(numbers: Iterable[Decimal]) -> Decimal:
    """The sum at the largest scale; only the sum itself must not have too many digits.

    >>> decimal_sum([Decimal(9 * 10**27), Decimal("0.01"), Decimal(-9 * 10**27)])
    Decimal('0.01')
    """
    return decimal_fit(reduce(_EXACT.add, numbers))


def decimal_mod(a: Decimal, b: Decimal) -> Decimal:
    """The remainder with the sign of `a`, at the larger scale."""
    if not b:
        raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
    scale = max(decimal_scale(a), decimal_scale(b))
    left, right = _mantissa(a, scale), _mantissa(b, scale)
    return decimal_fit(_scaled(mod_trunc(left, right), scale), scale)


def decimal_div(a: Decimal, b: Decimal) -> Decimal:
    """The quotient: exact at the scale nearest to scale(a) - scale(b), else with all digits that fit 96 bits.

    >>> decimal_text(decimal_div(Decimal(1), Decimal(3))), decimal_text(decimal_div(Decimal(10), Decimal("2.5")))
    ('0.3333333333333333333333333333', '4')
    """
    if not b:
        raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
    left, right = _mantissa(a, decimal_scale(a)), _mantissa(b, decimal_scale(b))
    shift = decimal_scale(b) - decimal_scale(a)  # a / b = left / right * 10^shift
    for scale in range(MAX_SCALE, -1, -1):
        power = scale + shift
        top, bottom = left * 10 ** max(power, 0), right * 10 ** max(-power, 0)
        mantissa = _div_half_even(top, bottom)
        if abs(mantissa) >= _MANTISSA and (scale or abs(mantissa) >= 10**DECIMAL_DIGITS):
            continue
        ideal = max(0, -shift)
        while scale > ideal and mantissa % 10 == 0 and top % bottom == 0:
            mantissa, scale = mantissa // 10, scale - 1
        return decimal_fit(_scaled(mantissa, scale), scale)
    raise Fail(ErrorKind.INTEGER_OVERFLOW, a)


def decimal_at(value: Decimal, scale: int) -> Decimal:
    """`value` rounded half-even to `scale` digits after the point; a negative scale rounds to tens, hundreds."""
    return value.quantize(Decimal((0, (1,), -scale)), context=_EXACT)


def _mantissa(value: Decimal, scale: int) -> int:
    return int(_EXACT.scaleb(value, scale))


def _scaled(mantissa: int, scale: int) -> Decimal:
    return _EXACT.scaleb(Decimal(mantissa), -scale)


def _div_half_even(a: int, b: int) -> int:
    quotient, remainder = divmod(abs(a), abs(b))
    twice = 2 * remainder
    if twice > abs(b) or (twice == abs(b) and quotient % 2):
        quotient += 1
    return quotient if (a < 0) == (b < 0) else -quotient
