"""Conversions. Texts are read strictly: a pattern says what Polars may read, the interpreter looks at the rest."""

from __future__ import annotations

import re

import polars as pl

from clinker_spark.core.types import BOOL, DATE, DATETIME, DECIMAL, FLOAT, INT, Type
from clinker_spark.cxl.dates.formats_sql import ISO_DATE, ISO_DATETIME
from clinker_spark.cxl.vector.call import VectorCall, dtype_of, repaired

_USUAL_FLOAT = r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$"
_PARTS = {"Y": "[0-9]{4}", "m": "[0-9]{2}", "d": "[0-9]{2}", "H": "[0-9]{2}", "M": "[0-9]{2}", "S": "[0-5][0-9]"}


def text_to_int(call: VectorCall) -> pl.Expr:
    """Polars reads an optional sign and digits, nothing else, and gives null beyond the bounds."""
    return call.args[0].cast(pl.Int64, strict=False)


def text_to_float(call: VectorCall) -> pl.Expr:
    text = call.args[0]
    return repaired(call, text.cast(pl.Float64, strict=False), ~text.str.contains(_USUAL_FLOAT))


def text_to_bool(call: VectorCall) -> pl.Expr:
    word = call.args[0]
    yes, no = word.is_in(["true", "1", "yes"]), word.is_in(["false", "0", "no"])
    known = pl.when(yes).then(True).when(no).then(False)
    return repaired(call, known, ~(yes | no))


def number(call: VectorCall) -> pl.Expr:
    """An Int or a Bool as the number it is."""
    return call.args[0].cast(pl.Int64)


def to_float(call: VectorCall) -> pl.Expr:
    return call.args[0].cast(pl.Float64)


def int_to_bool(call: VectorCall) -> pl.Expr:
    return call.args[0] != 0


def never(t: Type) -> pl.Expr:
    return pl.lit(None, dtype=dtype_of(t))


def no_int(call: VectorCall) -> pl.Expr:
    return never(INT)


def no_float(call: VectorCall) -> pl.Expr:
    return never(FLOAT)


def no_decimal(call: VectorCall) -> pl.Expr:
    return never(DECIMAL)


def no_bool(call: VectorCall) -> pl.Expr:
    return never(BOOL)


def no_date(call: VectorCall) -> pl.Expr:
    return never(DATE)


def no_datetime(call: VectorCall) -> pl.Expr:
    return never(DATETIME)


def text_to_date(call: VectorCall) -> pl.Expr:
    fmt = call.literal(1) if len(call.args) > 1 else ISO_DATE
    text, pattern = call.args[0], _pattern(fmt)
    if pattern is None:
        return repaired(call, never(DATE), text.is_not_null())
    usual = text.str.contains(pattern)
    return repaired(call, pl.when(usual).then(text).str.to_date(fmt, strict=False), ~usual)


def text_to_datetime(call: VectorCall) -> pl.Expr:
    fmt = call.literal(1) if len(call.args) > 1 else ISO_DATETIME
    text, pattern = call.args[0], _pattern(fmt)
    if pattern is None or not {"H", "M"} <= set(re.findall("%(.)", fmt)):
        return repaired(call, never(DATETIME), text.is_not_null())
    usual = text.str.contains(pattern)
    read = pl.when(usual).then(text).str.to_datetime(fmt, time_unit="us", strict=False)
    return repaired(call, read, ~usual)


def _pattern(fmt: str) -> str | None:
    """What a text in a simple format looks like at its usual width; None for formats that are not simple."""
    found: list[str] = []
    seen: list[str] = []
    for part in re.findall("%.|[^%]+", fmt):
        if part[0] != "%":
            if not re.fullmatch(r"[-/.:,T_]+", part):
                return None
            found.append(re.escape(part))
        elif part[1] in _PARTS and part[1] not in seen:
            seen.append(part[1])
            found.append(_PARTS[part[1]])
        else:
            return None
    # A year 0 is none, and an hour of 24 or a month of 13 is null for Polars, too.
    return f"^{''.join(found)}$" if {"Y", "m", "d"} <= set(seen) else None
