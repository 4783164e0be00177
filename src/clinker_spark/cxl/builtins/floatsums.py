"""Sums of floats that do not depend on the order of the values, so that partitioning never shows in a result.

A value is cut into integers: the part before the point (in two 32-bit lanes) and 64 bits after it (in two more).
Integers add up exactly in any order, and the sum is rounded once, at the end. What lies below the last lane is added
as floats; for values above 1e-12 those are short numbers whose sums are exact as well. Values from 2^62 on, infinities
and NaN are added as they are, but 2^64 times smaller: on the way no sum of finite numbers is infinite, in whatever
order they come, and at the end it can be told from one with an infinity in it.

>>> float_sum([0.1] * 10), float_sum([1e16, 1.0, -1e16]), float_sum([1e308, 1e308, -1e308])
(1.0, 1.0, 1e+308)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from clinker_spark.cxl.errors import ErrorKind, Fail

_LIMIT = 2.0**62
_LANE = 2.0**32
_SCALE = 2.0**64
_MOST = 10**38


def float_sum(values: Iterable[float]) -> float:
    """The sum; 0.0 of nothing. Raises `Fail` when the values are finite and it is not."""
    big, small = float_sum_parts(values)
    total = big * _SCALE + small + 0.0
    if math.isinf(total) and math.isfinite(big):
        raise Fail(ErrorKind.INTEGER_OVERFLOW)
    return total


def float_mean(values: list[float]) -> float:
    """The mean, which is finite even where the sum is not; NaN and infinities make it one of them."""
    big, small = float_sum_parts(values)
    total = big * _SCALE + small + 0.0
    if math.isinf(total) and math.isfinite(big):
        total, count = big / len(values), 1.0 / _SCALE
    else:
        count = float(len(values))
    if math.isinf(result := total / count) and math.isfinite(big):
        raise Fail(ErrorKind.INTEGER_OVERFLOW)
    return result


def float_sum_parts(values: Iterable[float]) -> tuple[float, float]:
    """The sum of the large values, divided by 2^64, and that of the others."""
    whole = first = second = 0
    big = rest = 0.0
    for x in values:
        if not abs(x) < _LIMIT:
            big += x / _SCALE
            continue
        t = int(x)
        f = (x - t) * _LANE
        a = int(f)
        g = (f - a) * _LANE
        b = int(g)
        whole, first, second = whole + t, first + a, second + b
        rest += (g - b) * 2.0**-64
    return big, exact_total(whole, first, second) + rest


def exact_total(whole: int, first: int, second: int) -> float:
    """The sum of the lanes: rounded once, if it has not too many digits."""
    exact = (whole << 64) + (first << 32) + second
    if abs(exact) < _MOST:
        return float(exact) * 2.0**-64
    return float(whole) + (float(first) * 2.0**-32 + float(second) * 2.0**-64)


def terms(x: str) -> tuple[str, ...]:
    """What is added up of a value `x`, each in a sum of its own."""
    small = f"(CASE WHEN abs({x}) < 4611686018427387904D THEN {x} ELSE 0.0D END)"
    whole = f"CAST({small} AS BIGINT)"
    fraction = f"(({small} - {whole}) * 4294967296D)"
    first = f"CAST({fraction} AS BIGINT)"
    lower = f"(({fraction} - {first}) * 4294967296D)"
    second = f"CAST({lower} AS BIGINT)"
    return (
        f"CASE WHEN {x} IS NOT NULL THEN shiftright({whole}, 32) END",
        f"{whole} & 4294967295L",
        first,
        second,
        f"({lower} - {second}) * 5.421010862427522E-20D",
        f"CASE WHEN abs({x}) < 4611686018427387904D THEN 0.0D ELSE {x} * 5.421010862427522E-20D END",
    )


def partials(x: str) -> tuple[str, ...]:
    """The aggregates that `final` needs."""
    return tuple(f"sum({term})" for term in terms(x))


def final(start: int = 0) -> str:
    """A template over partials that begin at position `start`: the sum, null when there were no values."""
    h, low, a, b, rest, big = (f"{{{start + i}}}" for i in range(6))
    whole = f"(CAST({h} AS DECIMAL(38, 0)) * 4294967296BD + CAST({low} AS DECIMAL(38, 0)))"
    lanes = f"(CAST({a} AS DECIMAL(38, 0)) * 4294967296BD + CAST({b} AS DECIMAL(38, 0)))"
    exact = f"try_add(try_multiply(CAST({whole} AS DECIMAL(38, 0)), 18446744073709551616BD), {lanes})"
    one = f"CAST(try_cast({exact} AS DECIMAL(38, 0)) AS DOUBLE) * 5.421010862427522E-20D"
    other = (
        f"CAST({whole} AS DOUBLE) + (CAST({a} AS DOUBLE) * 2.3283064365386963E-10D "
        f"+ CAST({b} AS DOUBLE) * 5.421010862427522E-20D)"
    )
    return f"({big} * 18446744073709551616D + (coalesce({one}, {other}) + {rest}) + 0.0D)"


def mean(count: str) -> str:
    """A template for the mean of `count` values, which is finite even where the sum is not."""
    total, big = final(), "{5}"
    beyond = f"abs({big} * 18446744073709551616D) = double('Infinity') AND {finite()}"
    return f"CASE WHEN {beyond} THEN {big} / {count} * 18446744073709551616D ELSE {total} / nullif({count}, 0L) END"


def finite(start: int = 0) -> str:
    """A template for the condition that all the values were finite."""
    return f"abs({{{start + 5}}}) < double('Infinity')"


INFINITE = "abs({r}) = double('Infinity')"
"""A condition on a result."""


def or_stop(final: str, overflow: str, name: str, texts: Sequence[str]) -> str:
    """A template over `texts`, filled in, that stops the query on the condition `overflow`, in which it is `{r}`."""
    result = filled(final, texts)
    beyond = filled(overflow, texts, f"({result})")
    return f"CASE WHEN {beyond} THEN raise_error('float overflow in {name}') ELSE {result} END"


def array_sum(array: str) -> str:
    """The sum of an array without nulls, as one expression: 0 of nothing, and the same in any order of the elements.
    A sum of finite values that is infinite stops the query."""
    added_up = terms("cxl_e")
    names = [f"l{i}" for i in range(len(added_up))]
    kinds = ["0L"] * 4 + ["0.0D"] * (len(added_up) - 4)
    nothing = ", ".join(f"'{name}', {zero}" for name, zero in zip(names, kinds, strict=True))
    added = ", ".join(f"'{name}', cxl_a.{name} + ({term})" for name, term in zip(names, added_up, strict=True))
    done = or_stop(final(), f"{INFINITE} AND {finite()}", "sum", [f"cxl_a.{name}" for name in names])
    return f"aggregate({array}, named_struct({nothing}), (cxl_a, cxl_e) -> named_struct({added}), cxl_a -> {done})"


def filled(template: str, texts: Sequence[str], result: str = "") -> str:
    """The template with `{0}`, `{1}` ... as these texts, in which nothing is looked for, and `{r}` as a result.

    >>> print(filled("abs({r}) < {0}", ["{1}"], "x"))
    abs(x) < {1}
    """
    return re.sub(r"\{([0-9]+|r)\}", lambda m: result if m[1] == "r" else texts[int(m[1])], template)
