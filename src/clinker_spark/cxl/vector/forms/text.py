"""Values as text: what `to_string`, `concat`, CSV and JSON write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.table import NOT_LITERAL
from clinker_spark.cxl.builtins.text import float_text, to_text
from clinker_spark.cxl.vector.call import VectorCall, mended


def text_of(column: pl.Expr, t: Type) -> pl.Expr:
    """The text of a column that is cheap to repeat; null stays null."""
    match t.kind:
        case Kind.STRING | Kind.NULL:
            return column
        case Kind.FLOAT:
            return float_texts(column)
        case Kind.DATETIME:
            return datetime_texts(column)
        case Kind.DATE:
            return column.map_batches(_date_texts, return_dtype=pl.String())
    return column.cast(pl.String)


def _date_texts(dates: pl.Series) -> pl.Series:
    """Days are looked up among those from the first to the last one, where these are not more than there are dates:
    Polars makes a text five times as slowly as it copies one."""
    days = dates.to_physical()
    first, last = days.min(), days.max()
    if not (isinstance(first, int) and isinstance(last, int)) or last - first >= len(days):
        return dates.cast(pl.String)
    texts = pl.int_range(first, last + 1, dtype=pl.Int32, eager=True).cast(pl.Date).cast(pl.String)
    return texts.gather(days - first)


def float_texts(x: pl.Expr, *, fraction: bool = False) -> pl.Expr:
    """The shortest digits, without an exponent. With `fraction`, whole numbers end in `.0`.

    Polars writes just those digits, but an exponent for the very large and the very small."""
    size = x.abs()
    doubtful = (size >= 1e15) | ((size < 1e-4) & (size > 0.0))
    shown = x.cast(pl.String) if fraction else x.map_batches(_without_point, return_dtype=pl.String())
    return mended(shown, doubtful, [x], _whole if fraction else _plain)


def _without_point(numbers: pl.Series) -> pl.Series:
    """Only whole numbers have a `.0`, and nearly all numbers are whole, or few are."""
    texts = numbers.cast(pl.String)
    whole = (numbers == numbers.floor()).fill_null(False).arg_true()
    if 4 * len(whole) > len(texts):
        return texts.str.strip_suffix(".0")
    return texts.scatter(whole, texts.gather(whole).str.strip_suffix(".0")) if len(whole) else texts


def _plain(values: Sequence[Any]) -> str:
    return float_text(values[0])


def _whole(values: Sequence[Any]) -> str:
    text = float_text(values[0])
    return text + ".0" if values[0].is_integer() else text


def datetime_texts(x: pl.Expr, between: str = " ") -> pl.Expr:
    """A fraction of a second has 3 or 6 digits, and none if it is zero."""
    second = f"%Y-%m-%d{between}%H:%M:%S"
    part = x.dt.microsecond()
    return (
        pl.when(part == 0)
        .then(x.dt.strftime(second))
        .when(part % 1000 == 0)
        .then(x.dt.strftime(second + "%.3f"))
        .otherwise(x.dt.strftime(second + "%.6f"))
    )


def to_string(call: VectorCall) -> pl.Expr:
    return text_of(call.args[0], call.types[0])


def concat(call: VectorCall) -> pl.Expr:
    parts = [call.args[0]]
    for i in range(1, len(call.args)):
        constant = call.literal(i)
        if constant is NOT_LITERAL:
            parts.append(text_of(call.args[i], call.types[i]).fill_null(""))
        elif text := to_text(constant):
            parts.append(pl.lit(text))
    return pl.concat_str(parts)
