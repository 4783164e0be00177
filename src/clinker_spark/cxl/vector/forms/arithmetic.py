"""The operators. Whole numbers wrap around in Polars, so what left its range is found by other means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from clinker_spark.cxl import values
from clinker_spark.cxl.vector.call import Formed, VectorCall

_SURE = 9.2e18
"""A product of two Ints that is less as a float is less than 2^63 in truth, whatever was rounded."""


def add_int(call: VectorCall) -> Formed:
    a, b = call.args
    return Formed(a + b, (lambda total: ((a ^ total) & (b ^ total)) < 0,))


def subtract_int(call: VectorCall) -> Formed:
    a, b = call.args
    return Formed(a - b, (lambda rest: ((a ^ b) & (a ^ rest)) < 0,))


def multiply_int(call: VectorCall) -> Formed:
    a, b = call.args
    large = (a.cast(pl.Float64) * b.cast(pl.Float64)).abs() >= _SURE

    def exceeds(columns: Sequence[pl.Series]) -> pl.Series:
        suspects, x, y = columns
        if not suspects.any():
            return suspects
        at = suspects.arg_true()
        pairs = zip(*((side.gather(at) if len(side) > 1 else [side[0]] * len(at)) for side in (x, y)), strict=True)
        found = [not values.I64_MIN <= int(p) * int(q) <= values.I64_MAX for p, q in pairs]
        return suspects.scatter(at, pl.Series(found, dtype=pl.Boolean))

    return Formed(a * b, (pl.map_batches([large, a, b], exceeds),))


def _truncated(call: VectorCall) -> tuple[pl.Expr, pl.Expr]:
    """The quotient toward zero, and the divisor that was used: 1 where the real one must fail."""
    a, b = call.args
    if call.is_constant(1) and call.literals[1] not in (0, -1, None):
        divisor = b
    else:
        unfit = (b == 0) | ((b == -1) & (a == values.I64_MIN))
        divisor = pl.when(unfit).then(pl.lit(1, dtype=pl.Int64)).otherwise(b)
    floor = a // divisor
    rest = a - floor * divisor
    up = (rest != 0) & ((a < 0) != (divisor < 0))
    return floor + up.cast(pl.Int64), divisor


def _division_failures(call: VectorCall) -> tuple[pl.Expr, pl.Expr]:
    a, b = call.args
    return (b == 0) & a.is_not_null(), (b == -1) & (a == values.I64_MIN)


def divide_int(call: VectorCall) -> Formed:
    return Formed(_truncated(call)[0], _division_failures(call))


def modulo_int(call: VectorCall) -> Formed:
    quotient, divisor = _truncated(call)
    return Formed(call.args[0] - quotient * divisor, _division_failures(call))


def negate_int(call: VectorCall) -> Formed:
    return Formed(-call.args[0], (call.args[0] == values.I64_MIN,))


def _floats(call: VectorCall, operation: Callable[[Any, Any], Any]) -> pl.Expr:
    """In NumPy, which computes what is written: over a constant, Polars takes short cuts that round otherwise (it
    multiplies by 0.1 where it should divide by 10), and `fmod` it has only with the other sign."""

    def compute(columns: Sequence[pl.Series]) -> pl.Series:
        size = 0 if 0 in map(len, columns) else max(map(len, columns))
        if not size:
            return pl.Series([], dtype=pl.Float64)
        a, b = (column.to_numpy() if len(column) == size else column[0] for column in columns)
        missing = [column.is_null() for column in columns if column.null_count()]
        if a is None or b is None:
            return pl.Series([None] * size, dtype=pl.Float64)
        with np.errstate(all="ignore"):
            found = pl.Series(operation(a, b))
        for mask in missing:
            found = found.set(mask, None)
        return found

    return pl.map_batches(list(call.args), compute, return_dtype=pl.Float64())


def _beyond(call: VectorCall) -> Callable[[pl.Expr], pl.Expr]:
    a, b = call.args
    return lambda result: result.is_infinite() & a.is_finite() & b.is_finite()


def add_float(call: VectorCall) -> Formed:
    return Formed(_floats(call, np.add), (_beyond(call),))


def subtract_float(call: VectorCall) -> Formed:
    return Formed(_floats(call, np.subtract), (_beyond(call),))


def multiply_float(call: VectorCall) -> Formed:
    return Formed(_floats(call, np.multiply), (_beyond(call),))


def divide_float(call: VectorCall) -> Formed:
    a, b = call.args
    beyond = _beyond(call)
    by_zero = (b == 0) & a.is_not_null()
    return Formed(_floats(call, np.divide), (by_zero, lambda result: (b != 0) & beyond(result)))


def modulo_float(call: VectorCall) -> pl.Expr:
    return _floats(call, np.fmod)


def negate_float(call: VectorCall) -> pl.Expr:
    return -call.args[0]


def join_texts(call: VectorCall) -> pl.Expr:
    return pl.concat_str(call.args)
