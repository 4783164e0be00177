"""The window functions, one row each: `$window.sum(x)`, `$window.lag(1).price`, ...

All frames are the whole partition, except `cumulative_sum`, which runs up to the current row. On Spark each
is an OVER expression; `{whole}`, `{running}` and `{ranked}` stand for the three window clauses, `{x}` for the argument,
and `{double}` for the argument as a DOUBLE: not cast if it is one, as Spark would send the copy through the shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.types import ANY, BOOL, FLOAT, INT, Kind, Type, array_of
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.keys import partition_key, shown_key
from clinker_spark.cxl.errors import ErrorKind, Fail


@dataclass(frozen=True)
class Partition:
    """What the interpreter sees: one value per row of the partition, the current row, ties by sort key."""

    values: list[Any]
    current: int
    keys: list[Any]


@dataclass(frozen=True)
class WindowFunction:
    """`argument`: "none", "value", "predicate", "offset" (a literal Int, before `.field`) or "row" (only `.field`)."""

    name: str
    doc: str
    argument: str
    result: Callable[[Type], Type | str]
    run: Callable[[Partition, int], Any]
    sql: str
    prepare: Callable[[str, Type], str] = lambda x, t: x
    """The argument's SQL as `sql` wants it."""
    finite: str = ""
    """For sums of floats: were all the values finite?"""


def _number(t: Type) -> Type | str:
    if t.is_numeric or t.is_dynamic or t.kind is Kind.NULL:
        return FLOAT.as_nullable()
    return f"needs a number, but got {t}"


def _ordered(t: Type) -> Type | str:
    if t.is_dynamic or t.kind in (Kind.ARRAY, Kind.MAP, Kind.BOOL):
        return f"needs values with an order, but got {t}"
    return _DIGITS if _is_digits(t) else t.as_nullable()


def _comparable(t: Type) -> Type | str:
    if t.is_dynamic or t.kind in (Kind.ARRAY, Kind.MAP):
        return f"needs comparable values, but got {t}"
    return _DIGITS if _is_digits(t) else array_of(t.unwrap())


# Spark keeps such decimals as text, which has another order and takes 1.5 and 1.50 for two values.
_DIGITS = "of a Decimal whose scale is not known"


def _is_digits(t: Type) -> bool:
    return t.kind is Kind.DECIMAL and t.scale is None


def _floats(rows: Sequence[Any]) -> list[float]:
    return [float(v) for v in rows if v is not None]


def _sum(found: list[float]) -> float | None:
    total = 0.0
    for x in found:
        total += x
    if math.isinf(total) and all(map(math.isfinite, found)):
        raise Fail(ErrorKind.INTEGER_OVERFLOW)
    return total if found else None


def _mean(p: Partition, _: int) -> float | None:
    found = _floats(p.values)
    total = _sum(found)
    return None if total is None else total / len(found)


def overflow_message(name: str) -> str:
    """Why a record fails whose window has finite values and an infinite sum."""
    return f"float overflow in $window.{name}"


def _extreme(sign: int) -> Callable[[Partition, int], Any]:
    def run(p: Partition, _: int) -> Any:
        best: Any = None
        for value in p.values:
            if value is None:
                continue
            if isinstance(value, float):
                if math.isnan(value):
                    continue
                value += 0.0  # -0.0 and 0.0 are equal: whichever comes first, the answer is 0.0
            order = None if best is None else values.compare(value, best)
            if best is None or (order is not None and order * sign > 0):
                best = value
        return best

    return run


def _rank(p: Partition, _: int) -> int:
    return p.keys.index(p.keys[p.current]) + 1


def _dense_rank(p: Partition, _: int) -> int:
    seen: list[Any] = []
    for key in p.keys:
        if key not in seen:
            seen.append(key)
        if key == p.keys[p.current]:
            break
    return len(seen)


def _at(index: int, p: Partition) -> Any:
    return p.values[index] if 0 <= index < len(p.values) else None


def _any(found: Sequence[Any]) -> bool | None:
    return True if True in found else (None if None in found else False)


def _every(found: Sequence[Any]) -> bool | None:
    return False if False in found else (None if None in found else True)


def _distinct(p: Partition, _: int) -> list[Any]:
    result: dict[Any, Any] = {}
    for value in p.values:
        if value is not None:
            result.setdefault(partition_key(value), shown_key(value))
    return list(result.values())


def _plain_zero(x: str, t: Type) -> str:
    return f"({x} + 0.0D)" if t.kind is Kind.FLOAT else x


def _no_nan(x: str, t: Type) -> str:
    return f"(nanvl({x}, CAST(NULL AS DOUBLE)) + 0.0D)" if t.kind is Kind.FLOAT else x


def _fold_sql(wins: str, result: str, otherwise: str) -> str:
    return (
        f"CASE WHEN max(CASE WHEN {wins} THEN 1 ELSE 0 END) OVER {{whole}} = 1 THEN {result} "
        f"WHEN max(CASE WHEN {{x}} IS NULL THEN 1 ELSE 0 END) OVER {{whole}} = 1 THEN NULL ELSE {otherwise} END"
    )


_ANY_SQL = _fold_sql("{x}", "TRUE", "FALSE")


def _finite(frame: str) -> str:
    return f"greatest(max({{x}}) OVER {{{frame}}}, -min({{x}}) OVER {{{frame}}}) < double('Infinity')"


WINDOWS = {
    row.name: row
    for row in (
        WindowFunction(
            "count",
            "The number of rows of the partition.",
            "none",
            lambda t: INT,
            lambda p, n: len(p.values),
            "count(1) OVER {whole}",
        ),
        WindowFunction(
            "sum",
            "The sum over the partition, as Float; nulls are skipped.",
            "value",
            _number,
            lambda p, n: _sum(_floats(p.values)),
            "sum({double}) OVER {whole}",
            finite=_finite("whole"),
        ),
        WindowFunction(
            "cumulative_sum",
            "The sum up to and including the current row.",
            "value",
            _number,
            lambda p, n: _sum(_floats(p.values[: p.current + 1])),
            "sum({double}) OVER {running}",
            finite=_finite("running"),
        ),
        WindowFunction(
            "avg",
            "The mean over the partition, as Float.",
            "value",
            _number,
            _mean,
            "(sum({double}) OVER {whole} / nullif(count({x}) OVER {whole}, 0L))",
            finite=_finite("whole"),
        ),
        WindowFunction(
            "min",
            "The smallest value of the partition.",
            "value",
            _ordered,
            _extreme(-1),
            "min({x}) OVER {whole}",
            _no_nan,
        ),
        WindowFunction(
            "max",
            "The largest value of the partition.",
            "value",
            _ordered,
            _extreme(1),
            "max({x}) OVER {whole}",
            _no_nan,
        ),
        WindowFunction(
            "first_value",
            "The value in the first row.",
            "value",
            Type.as_nullable,
            lambda p, n: _at(0, p),
            "first_value({x}) OVER {whole}",
        ),
        WindowFunction(
            "last_value",
            "The value in the last row.",
            "value",
            Type.as_nullable,
            lambda p, n: _at(len(p.values) - 1, p),
            "last_value({x}) OVER {whole}",
        ),
        WindowFunction(
            "row_number",
            "The 1-based position of the row.",
            "none",
            lambda t: INT,
            lambda p, n: p.current + 1,
            "CAST(row_number() OVER {ranked} AS BIGINT)",
        ),
        WindowFunction(
            "rank",
            "The 1-based rank by sort_by; ties share it and leave a gap.",
            "none",
            lambda t: INT,
            _rank,
            "CAST(rank() OVER {tied} AS BIGINT)",
        ),
        WindowFunction(
            "dense_rank",
            "The 1-based rank by sort_by; ties share it without a gap.",
            "none",
            lambda t: INT,
            _dense_rank,
            "CAST(dense_rank() OVER {tied} AS BIGINT)",
        ),
        WindowFunction(
            "first",
            "The first row; follow it with `.field`.",
            "row",
            Type.as_nullable,
            lambda p, n: _at(0, p),
            "first_value({x}) OVER {whole}",
        ),
        WindowFunction(
            "last",
            "The last row; follow it with `.field`.",
            "row",
            Type.as_nullable,
            lambda p, n: _at(len(p.values) - 1, p),
            "last_value({x}) OVER {whole}",
        ),
        WindowFunction(
            "lag",
            "The row n before the current one; follow it with `.field`.",
            "offset",
            Type.as_nullable,
            lambda p, n: _at(p.current - n, p),
            "lag({x}, {n}) OVER {ranked}",
        ),
        WindowFunction(
            "lead",
            "The row n after the current one; follow it with `.field`.",
            "offset",
            Type.as_nullable,
            lambda p, n: _at(p.current + n, p),
            "lead({x}, {n}) OVER {ranked}",
        ),
        WindowFunction(
            "any",
            "Is the predicate true for some row? Null when only nulls could decide.",
            "predicate",
            lambda t: BOOL.as_nullable(),
            lambda p, n: _any(p.values),
            _ANY_SQL,
        ),
        WindowFunction(
            "exists",
            "The same as `any`.",
            "predicate",
            lambda t: BOOL.as_nullable(),
            lambda p, n: _any(p.values),
            _ANY_SQL,
        ),
        WindowFunction(
            "every",
            "Is the predicate true for all rows?",
            "predicate",
            lambda t: BOOL.as_nullable(),
            lambda p, n: _every(p.values),
            _fold_sql("NOT {x}", "FALSE", "TRUE"),
        ),
        WindowFunction(
            "not_exists",
            "Is the predicate true for no row?",
            "predicate",
            lambda t: BOOL.as_nullable(),
            lambda p, n: _every([None if v is None else not v for v in p.values]),
            _fold_sql("{x}", "FALSE", "TRUE"),
        ),
        WindowFunction(
            "collect",
            "All non-null values of the partition, in order.",
            "value",
            lambda t: array_of(t.unwrap() if t.kind is not Kind.NULL else ANY),
            lambda p, n: [v for v in p.values if v is not None],
            "collect_list({x}) OVER {whole}",
        ),
        WindowFunction(
            "distinct",
            "The distinct non-null values, in order of first appearance.",
            "value",
            _comparable,
            _distinct,
            "array_distinct(collect_list({x}) OVER {whole})",
            _plain_zero,
        ),
    )
}
