"""Decimals. Polars computes with 38 digits, and values have 29: sums are exact, and what is too large is found
afterwards. Products are made where they must fit; the interpreter has the few others, and what has a scale of its own
in each record."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl

from clinker_spark.core.types import Type, decimal
from clinker_spark.cxl.values import DECIMAL_DIGITS, decimal_at, decimal_text
from clinker_spark.cxl.vector.call import Formed, VectorCall, by_distinct, dtype_of, interpreted, is_digits, repaired

_SURE = 9.9e28
"""A product whose digits are less than that, computed with floats, has 29 at most."""
_EXACT_FLOAT = 2**53
_FEW = 10
_FEW_DIGITS = rf"^-?[0-9]{{1,18}}(?:\.[0-9]{{1,{_FEW}}})?$"
_USUAL = r"^(?:-?[1-9][0-9]{0,13}(?:\.[0-9]{1,14})?|0(?:\.[0-9]{1,14})?|-0\.[0-9]{0,6}[1-9][0-9]{0,6})$"  # no -0.00


def fitting(x: pl.Expr, scale: int) -> pl.Expr:
    """A number as a decimal of a scale, null if that has too many digits."""
    wide = x.cast(dtype_of(decimal(scale)), strict=False)
    most = pl.lit(Decimal(10) ** (DECIMAL_DIGITS - scale), dtype=dtype_of(decimal(scale)))
    return pl.when((wide < most) & (wide > -most)).then(wide)


def few_digits(x: pl.Expr, t: Type) -> tuple[pl.Expr, pl.Expr]:
    """A decimal, or the text of one, so that others can stand beside it, and where that is sure."""
    if not is_digits(t):
        return x, pl.lit(True)
    short = x.str.contains(_FEW_DIGITS)
    return pl.when(short).then(x).cast(dtype_of(decimal(_FEW)), strict=False), short


def _any_digits(call: VectorCall) -> bool:
    return is_digits(call.result) or any(map(is_digits, call.types))


# ---------------------------------------------------------------- operators


def add(call: VectorCall) -> pl.Expr:
    scale = call.result.scale
    return interpreted(call) if scale is None else fitting(call.args[0] + call.args[1], scale)


def subtract(call: VectorCall) -> pl.Expr:
    scale = call.result.scale
    return interpreted(call) if scale is None else fitting(call.args[0] - call.args[1], scale)


def multiply(call: VectorCall) -> pl.Expr:
    """One side at the scale of the product, so that Polars keeps all digits."""
    scale = call.result.scale
    if scale is None:
        return interpreted(call)
    a, b = call.args
    size = (_digits(a) * _digits(b)).abs()
    product = pl.when(size < _SURE).then(a.cast(dtype_of(call.result))) * b
    return repaired(call, product, size >= _SURE)


def _digits(x: pl.Expr) -> pl.Expr:
    """The number without its point, nearly."""
    return x.to_physical().cast(pl.Float64)


def divide(call: VectorCall) -> Formed:
    by_zero = _is_zero(call.args[1], call.types[1]) & call.args[0].is_not_null()
    return Formed(interpreted(call), (by_zero, None))


def modulo(call: VectorCall) -> Formed:
    return divide(call)


def _is_zero(x: pl.Expr, t: Type) -> pl.Expr:
    return ~x.str.contains("[1-9]") if is_digits(t) else x == 0


def negate(call: VectorCall) -> pl.Expr:
    return interpreted(call) if _any_digits(call) else -call.args[0]


# ---------------------------------------------------------------- methods


def absolute(call: VectorCall) -> pl.Expr:
    x = call.args[0]
    return x.str.strip_prefix("-") if _any_digits(call) else x.abs()


def _near(x: pl.Expr) -> pl.Expr:
    return x.cast(dtype_of(decimal(0)))


def _one() -> pl.Expr:
    return pl.lit(Decimal(1), dtype=dtype_of(decimal(0)))


def floor(call: VectorCall) -> pl.Expr:
    if _any_digits(call):
        return interpreted(call)
    x = call.args[0]
    return pl.when(_near(x) > x).then(_near(x) - _one()).otherwise(_near(x))


def ceil(call: VectorCall) -> pl.Expr:
    if _any_digits(call):
        return interpreted(call)
    x = call.args[0]
    return pl.when(_near(x) < x).then(_near(x) + _one()).otherwise(_near(x))


def rounded(call: VectorCall) -> pl.Expr:
    """Polars casts half to even, too."""
    places = 0 if len(call.args) == 1 else call.literal(1)
    scale = call.types[0].scale
    if scale is None or not isinstance(places, int) or places < 0:
        return interpreted(call)
    return call.args[0] if places >= scale else call.args[0].cast(dtype_of(call.result))


def least(call: VectorCall) -> pl.Expr:
    return _better(call, call.args[0] < call.args[1])


def greatest(call: VectorCall) -> pl.Expr:
    return _better(call, call.args[0] > call.args[1])


def _better(call: VectorCall, first: pl.Expr) -> pl.Expr:
    scale = call.result.scale
    if scale is None or _any_digits(call):
        return interpreted(call)
    x, other = (fitting(arg, scale) for arg in call.args)
    return pl.when(first).then(x).when(call.args[0].is_not_null()).then(other)


def clamp(call: VectorCall) -> pl.Expr:
    scale = call.result.scale
    if scale is None or _any_digits(call):
        return interpreted(call, needed=1)
    x, low, high = call.args
    chosen = [fitting(arg, scale) for arg in call.args]
    return pl.when(x < low).then(chosen[1]).when(high < x).then(chosen[2]).otherwise(chosen[0])


def rounded_texts(x: pl.Expr, t: Type, most: int) -> pl.Expr:
    """The digits of decimals, with at most so many after the point."""
    if t.scale is not None:
        return (x if most >= t.scale else x.cast(dtype_of(decimal(most)))).cast(pl.String)

    def one(text: str) -> str:
        return text if len(text.partition(".")[2]) <= most else decimal_text(decimal_at(Decimal(text), most))

    return by_distinct(x, one, pl.String())


# ---------------------------------------------------------------- conversions


def from_int(call: VectorCall) -> pl.Expr:
    return call.args[0].cast(dtype_of(decimal(0)))


def from_float(call: VectorCall) -> pl.Expr:
    return interpreted(call)


def from_text(call: VectorCall) -> pl.Expr:
    """The usual spelling is the one that is kept."""
    text = call.args[0]
    usual = text.str.contains(_USUAL)
    return repaired(call, pl.when(usual).then(text), ~usual)


def to_int(call: VectorCall) -> pl.Expr:
    if _any_digits(call):
        return interpreted(call)
    x, near = call.args[0], _near(call.args[0])
    whole = pl.when((near > x) & (x > 0)).then(near - _one()).when((near < x) & (x < 0)).then(near + _one())
    return whole.otherwise(near).cast(pl.Int64, strict=False)


def to_float(call: VectorCall) -> pl.Expr:
    """The quotient of two numbers that floats have exactly is rounded once."""
    scale = call.types[0].scale
    if scale is None or scale > 22:
        return interpreted(call)
    digits = _digits(call.args[0])

    def divided(numbers: pl.Series) -> pl.Series:
        with np.errstate(all="ignore"):
            return pl.Series(numbers.fill_null(0.0).to_numpy() / 10.0**scale).set(numbers.is_null(), None)

    return repaired(call, digits.map_batches(divided, return_dtype=pl.Float64()), digits.abs() >= _EXACT_FLOAT)
