"""Totals of some of the records of a group, which can be put together in any order.

A sum is kept in integers of which it is made exactly (decision 0006): an Int in two lanes of 32 bits, a float in those
and two more for what stands behind the point. A lane in which nothing stands is not added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from clinker_spark.core.types import Kind
from clinker_spark.cxl.vector.totals import ARG, KEY, Total, VectorTotals, one_zero

Numbers = np.ndarray[Any, np.dtype[Any]]
FIRST, COUNT = "first", "count"
"""The place of the first record of a group, and how many records it has."""
DIGITS = "digits"
LANES = {
    Kind.INT: ("high", "low"),
    Kind.FLOAT: ("high", "low", "upper", "lower", "rest", "big"),
    Kind.DECIMAL: (DIGITS,),
}
"""Of a float: what stands before its point, behind it, below that, and the values that are too large for lanes. A
decimal is a lane itself: in Polars it has nine digits more than a value, so that a billion of them can be added up."""
_ADDED = ("sum", "avg")
_LANE, _MASK, _SHORT = 2.0**32, (1 << 32) - 1, 1 << 31
_LARGE, _SCALE = 2.0**62, 2.0**64


def keys_of(totals: VectorTotals) -> list[str]:
    return [f"{KEY}{i}" for i in range(totals.keys)]


def states(totals: VectorTotals, rows: pl.DataFrame) -> pl.DataFrame:
    """The groups of some records, which have the columns of keys and arguments and their place (`FIRST`)."""
    columns: list[pl.Series] = []
    for number, kind in _summed(totals.totals):
        columns += _lanes(rows[f"{ARG}{number}"], number, kind)
    frame = rows.with_columns(columns)
    made = [pl.len().cast(pl.Int64).alias(COUNT), pl.col(FIRST).min()]
    made += [pl.col(f"{ARG}{i}").count().cast(pl.Int64).alias(f"{COUNT}{i}") for i in sorted(_counted(totals.totals))]
    for number, kind in _summed(totals.totals):
        made += [pl.col(f"{lane}{number}").sum() for lane in LANES[kind] if _there(frame, f"{lane}{number}")]
    for total in _extremes(totals.totals):
        value = pl.col(f"{ARG}{total.arg}")
        if total.kind is Kind.FLOAT:
            value = one_zero(value.fill_nan(None))
        made.append((value.min() if total.function == "min" else value.max()).alias(f"{total.function}{total.arg}"))
    return _grouped(totals, frame, made)


def merged(totals: VectorTotals, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The same groups of several parts, put together."""
    if len(parts) == 1:
        return parts[0]
    frame = pl.concat(parts)
    made = [pl.col(COUNT).sum(), pl.col(FIRST).min()]
    made += [pl.col(f"{COUNT}{i}").sum() for i in sorted(_counted(totals.totals))]
    for number, kind in _summed(totals.totals):
        made += [pl.col(f"{lane}{number}").sum() for lane in LANES[kind] if _there(frame, f"{lane}{number}")]
    for total in _extremes(totals.totals):
        value = pl.col(f"{total.function}{total.arg}")
        made.append(value.min() if total.function == "min" else value.max())
    return _grouped(totals, frame, made)


def _grouped(totals: VectorTotals, frame: pl.DataFrame, made: Sequence[pl.Expr]) -> pl.DataFrame:
    groups = frame.group_by(keys_of(totals)).agg(made)
    missing = [
        pl.lit(0.0 if lane in ("rest", "big") else 0, dtype=pl.Float64 if lane in ("rest", "big") else pl.Int64).alias(
            f"{lane}{number}"
        )
        for number, kind in _summed(totals.totals)
        for lane in LANES[kind]
        if f"{lane}{number}" not in groups.columns
    ]
    columns = [f"{lane}{number}" for number, kind in _summed(totals.totals) for lane in LANES[kind]]
    rest = [name for name in groups.columns if name not in columns]
    return groups.with_columns(missing).select([*rest, *columns])


def _there(frame: pl.DataFrame, name: str) -> bool:
    """Does anything stand in a lane?"""
    if name.startswith(DIGITS):
        return True
    return name in frame.columns and bool((frame[name].to_numpy() != 0).any())


def _summed(totals: Sequence[Total]) -> list[tuple[int, Kind]]:
    """The numbers and kinds of the arguments that are added up."""
    return sorted({(t.arg, t.kind) for t in totals if t.arg is not None and t.function in _ADDED}, key=lambda p: p[0])


def _counted(totals: Sequence[Total]) -> set[int]:
    """The arguments of which it must be known how many there are."""
    return {t.arg for t in totals if t.arg is not None and t.function in (*_ADDED, "count")}


def _extremes(totals: Sequence[Total]) -> list[Total]:
    return list(dict.fromkeys(t for t in totals if t.function in ("min", "max")))


def _lanes(values: pl.Series, number: int, kind: Kind) -> Iterator[pl.Series]:
    if kind is Kind.DECIMAL:
        yield values.alias(f"{DIGITS}{number}")
        return
    given = values.fill_null(0).to_numpy() if values.null_count() else values.to_numpy()
    if kind is Kind.INT:
        yield from _whole_lanes(given, number)
        return
    small = np.abs(given) < _LARGE  # not so for NaN
    if not small.all():
        yield pl.Series(f"big{number}", np.where(small, 0.0, given * (1 / _SCALE)))
        given = np.where(small, given, 0.0)
    whole = np.trunc(given)
    yield from _whole_lanes(whole.astype(np.int64), number)
    fraction = (given - whole) * _LANE
    upper = np.trunc(fraction)
    fraction = (fraction - upper) * _LANE
    lower = np.trunc(fraction)
    yield pl.Series(f"upper{number}", upper.astype(np.int64))
    yield pl.Series(f"lower{number}", lower.astype(np.int64))
    yield pl.Series(f"rest{number}", (fraction - lower) * (1 / _SCALE))


def _whole_lanes(values: Numbers, number: int) -> Iterator[pl.Series]:
    """Short numbers need no second lane."""
    if len(values) and (values.min() < -_SHORT or values.max() >= _SHORT):
        yield pl.Series(f"high{number}", values >> 32)
        values = values & _MASK
    yield pl.Series(f"low{number}", values)
