"""Methods of numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from clinker_spark.core.types import Kind
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.table import NOT_LITERAL
from clinker_spark.cxl.vector.call import Formed, VectorCall

_I64 = 9223372036854775808.0


def abs_int(call: VectorCall) -> Formed:
    return Formed(call.args[0].abs(), (call.args[0] == values.I64_MIN,))


def abs_float(call: VectorCall) -> pl.Expr:
    return call.args[0].abs()


def saturated(x: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """A float as an Int: `whole`, the bounds beyond them, 0 for NaN."""
    number = pl.lit(0, dtype=pl.Int64)
    return (
        pl.when(x.is_nan())
        .then(number)
        .when(x >= _I64)
        .then(number + values.I64_MAX)
        .when(x < -_I64)
        .then(number + values.I64_MIN)
        .otherwise(whole.cast(pl.Int64, strict=False))
    )


def ceil(call: VectorCall) -> pl.Expr:
    return saturated(call.args[0], call.args[0].ceil())


def floor(call: VectorCall) -> pl.Expr:
    return saturated(call.args[0], call.args[0].floor())


def truncated(call: VectorCall) -> pl.Expr:
    return saturated(call.args[0], call.args[0])


def round_float(call: VectorCall) -> pl.Expr:
    places = 0 if len(call.args) == 1 else call.literals[1]
    if abs(places) > 308:  # 10^places is no float
        return call.args[0]
    return call.args[0].map_batches(partial(_rounded, places), return_dtype=pl.Float64())


def _rounded(places: int, column: pl.Series) -> pl.Series:
    """In NumPy, where dividing by a constant is a division: Polars would multiply."""
    x = column.fill_null(0.0).to_numpy()
    power = float(f"1e{abs(places)}")
    with np.errstate(all="ignore"):
        scaled = x * power if places >= 0 else x / power
        near = np.rint(scaled)  # halves go to even: move those that went toward zero
        near = np.where((scaled > 0) & (scaled - near == 0.5), near + 1.0, near)
        near = np.where((scaled < 0) & (scaled - near == -0.5), near - 1.0, near)
        result = near / power if places >= 0 else near * power
    found = pl.Series(np.where(np.isfinite(scaled) & np.isfinite(result), result, x))
    return found.set(column.is_null(), None) if column.null_count() else found


def _less(call: VectorCall, i: int, j: int) -> pl.Expr:
    """Is one argument less than another? NaN, which Polars puts above all, is comparable to nothing."""
    a, b = call.args[i], call.args[j]
    return (a < b) & ~b.is_nan() if call.types[0].kind is Kind.FLOAT else a < b


def least(call: VectorCall) -> pl.Expr:
    x, other = call.args
    return pl.when(_less(call, 0, 1)).then(x).when(x.is_not_null()).then(other)


def greatest(call: VectorCall) -> pl.Expr:
    x, other = call.args
    return pl.when(_less(call, 1, 0)).then(x).when(x.is_not_null()).then(other)


def clamp(call: VectorCall) -> pl.Expr:
    x, low, high = call.args
    return pl.when(_less(call, 0, 1)).then(low).when(_less(call, 2, 0)).then(high).otherwise(x)


def unchanged(call: VectorCall) -> pl.Expr:
    """An Int is round already; a null number of places makes it null."""
    if len(call.args) == 1 or call.literal(1) not in (NOT_LITERAL, None):
        return call.args[0]
    return pl.when(call.args[1].is_not_null()).then(call.args[0])
