"""Methods of Date and DateTime, mostly by the numbers of days and microseconds behind them."""

from __future__ import annotations

import datetime as dt

import polars as pl

from clinker_spark.core.types import DATETIME, Kind, Type
from clinker_spark.cxl.vector.call import VectorCall, by_distinct, dtype_of, literal

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_DAY = 86_400_000_000


def _days(x: pl.Expr, t: Type) -> pl.Expr:
    """Days since 1970."""
    return (x if t.kind is Kind.DATE else x.dt.date()).cast(pl.Int32).cast(pl.Int64)


def year(call: VectorCall) -> pl.Expr:
    return call.args[0].dt.year().cast(pl.Int64)


def month(call: VectorCall) -> pl.Expr:
    return call.args[0].dt.month().cast(pl.Int64)


def day(call: VectorCall) -> pl.Expr:
    return call.args[0].dt.day().cast(pl.Int64)


def hour(call: VectorCall) -> pl.Expr:
    return call.args[0].dt.hour().cast(pl.Int64)


def minute(call: VectorCall) -> pl.Expr:
    return call.args[0].dt.minute().cast(pl.Int64)


def second(call: VectorCall) -> pl.Expr:
    return call.args[0].dt.second().cast(pl.Int64)


def no_time(call: VectorCall) -> pl.Expr:
    return pl.lit(None, dtype=pl.Int64)


def add_days(call: VectorCall) -> pl.Expr:
    x, n, t = call.args[0], call.args[1], call.types[0]
    most = _LAST_DAY - _FIRST_DAY
    moved = _days(x, t) + n.clip(-most - 1, most + 1)
    inside = moved.is_between(_FIRST_DAY, _LAST_DAY)
    if t.kind is Kind.DATE:
        return pl.when(inside).then(moved).cast(pl.Int32).cast(pl.Date)
    rest = x.cast(pl.Int64) - _days(x, t) * _DAY
    return pl.when(inside).then(moved * _DAY + rest).cast(dtype_of(DATETIME))


def _moved_months(call: VectorCall, per_unit: int) -> pl.Expr:
    x, t, units = call.args[0], call.types[0], call.literals[1]
    if units is None or abs(units) * per_unit >= 9999 * 12:
        return literal(None, t)
    months = units * per_unit
    index = x.dt.year().cast(pl.Int64) * 12 + x.dt.month().cast(pl.Int64) - 1 + months
    return pl.when(index.is_between(12, 119_999)).then(x).dt.offset_by(f"{months}mo")


def add_months(call: VectorCall) -> pl.Expr:
    return _moved_months(call, 1)


def add_years(call: VectorCall) -> pl.Expr:
    return _moved_months(call, 12)


def diff_days(call: VectorCall) -> pl.Expr:
    a, b = (_days(x, t) for x, t in zip(call.args, call.types, strict=True))
    return a - b


def _position(x: pl.Expr, t: Type) -> pl.Expr:
    """A number that grows with the moment, in which every month counts 32 days."""
    date = (x.dt.year().cast(pl.Int64) * 12 + x.dt.month().cast(pl.Int64)) * 32 + x.dt.day().cast(pl.Int64)
    if t.kind is Kind.DATE:
        return date * _DAY
    return date * _DAY + (x.cast(pl.Int64) - _days(x, t) * _DAY)


def _diff(call: VectorCall, months: int) -> pl.Expr:
    a, b = (_position(x, t) for x, t in zip(call.args, call.types, strict=True))
    apart = a - b
    whole = apart.abs() // (months * 32 * _DAY)
    return pl.when(apart < 0).then(-whole).otherwise(whole)


def diff_months(call: VectorCall) -> pl.Expr:
    return _diff(call, 1)


def diff_years(call: VectorCall) -> pl.Expr:
    return _diff(call, 12)


def format_date(call: VectorCall) -> pl.Expr:
    fmt, run, t = call.literals[1], call.overload.run, call.types[0]
    if fmt is None:
        return pl.lit(None, dtype=pl.String)
    if t.kind is Kind.DATE:
        return by_distinct(call.args[0], lambda value: run(value, fmt), pl.String())
    return by_distinct(call.args[0], lambda value: run(_naive(value), fmt), pl.String())


def _naive(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=None)
