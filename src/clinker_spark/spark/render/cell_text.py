"""The text of a single value in a file, as Spark SQL. NULL stays NULL.

Formats differ in how dates read and in whether a fraction of `.0` is kept; the rest is the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from clinker_spark.config.model.schema import Column
from clinker_spark.core.types import DATE, DATETIME, FLOAT, Kind, Type
from clinker_spark.cxl.builtins.physical import kind_sql, variant_is
from clinker_spark.cxl.builtins.sqltext import NULL_STRING
from clinker_spark.cxl.builtins.text import sql_datetime_text, sql_decimal_text, sql_float_text, sql_let, sql_text
from clinker_spark.cxl.dates.formats import check_format
from clinker_spark.cxl.dates.formats_sql import sql_format
from clinker_spark.spark.render.contract import refuse

CHEAP = re.compile(r"(?:`(?:[^`]|``)+`|[A-Za-z_][A-Za-z0-9_]*)(?:\.[a-z0-9_]+)?")
"""SQL that costs nothing to repeat: a column, a lambda variable, or a field of one."""

_DIGITS = "0123456789"
# Every character that the text of a kind can have.
_ALPHABET = {
    Kind.BOOL: "truefalse",
    Kind.INT: _DIGITS + "-",
    Kind.FLOAT: _DIGITS + "-.NaNinf",
    Kind.DECIMAL: _DIGITS + "-.",
    Kind.DATE: _DIGITS + "-",
    Kind.DATETIME: _DIGITS + "-:.T ",
    Kind.NULL: "",
}


@dataclass(frozen=True)
class CellStyle:
    """How a format writes dates and decimals; the formats are strftime, None is ISO 8601."""

    between: str = " "
    """What stands between date and time."""
    date: str | None = None
    datetime: str | None = None
    scale: int | None = None
    """Decimals with more digits after the point are rounded to so many."""

    def of(self, column: Column | None) -> CellStyle:
        """This style with what the output's schema says about one column."""
        if column is None:
            return self
        style = self
        if column.data_type.kind is Kind.DECIMAL:
            style = replace(style, scale=column.data_type.scale)
        if column.format is None:
            return style
        # A format with times cannot write a date that an `any` column turns out to hold: those stay as they are.
        dates = column.format if check_format(column.format, Kind.DATE) is None else style.date
        return replace(style, date=dates, datetime=column.format)


def declared(schema: tuple[Column, ...]) -> dict[str, Column]:
    """What the schema says, by the name that a column has in the file."""
    return {column.source_name or column.name: column for column in schema}


def check_style(name: str, t: Type, column: Column | None) -> None:
    """A format must fit the values: no time of day is in a date."""
    if column is None or column.format is None or t.is_dynamic or t.kind not in (Kind.DATE, Kind.DATETIME):
        return
    reason = check_format(column.format, t.kind)
    if reason is not None:
        raise refuse("E226", f"column '{name}' cannot be written: {reason}", f"it is of type {t.unwrap()}")


def is_plain(t: Type, style: CellStyle, special: str) -> bool:
    """Can the text of a value of this type never have one of the characters `special`?"""
    if t.is_dynamic or t.kind not in _ALPHABET or (t.kind is Kind.DATE and style.date):
        return False
    if t.kind is Kind.DATETIME and style.datetime:
        return False
    return not set(special) & set(_ALPHABET[t.kind])


def bound(sql: str, name: str, body: Callable[[str], str]) -> str:
    """`body` over `sql`, which is evaluated once however often the body repeats it."""
    return body(sql) if CHEAP.fullmatch(sql) else sql_let(sql, name, body(name))


def scalar_text(sql: str, t: Type, style: CellStyle) -> str:
    """The text of a value that is neither array nor map."""
    if t.is_dynamic:
        return bound(sql, "out_v", lambda v: _variant_text(v, style))
    match t.kind:
        case Kind.NULL:
            return NULL_STRING
        case Kind.FLOAT:
            return bound(sql, "out_f", sql_float_text)
        case Kind.DECIMAL:
            return bound(sql, "out_d", lambda d: _decimal_text(d, t.scale, style.scale))
        case Kind.DATE if style.date:
            return bound(sql, "out_t", lambda d: sql_format(style.date or "", d, Kind.DATE) or NULL_STRING)
        case Kind.DATETIME if style.datetime:
            return bound(sql, "out_t", lambda d: sql_format(style.datetime or "", d, Kind.DATETIME) or NULL_STRING)
        case Kind.DATETIME:
            return bound(sql, "out_t", lambda d: sql_datetime_text(d, style.between))
    return sql_text(sql, t)


def _decimal_text(sql: str, scale: int | None, most: int | None) -> str:
    if scale is None:
        return sql if most is None else _rounded_digits(sql, most)
    if most is None or most >= scale:
        return sql_decimal_text(sql, scale)
    return sql_decimal_text(f"bround({sql}, {most})", most)


def _rounded_digits(s: str, places: int) -> str:
    """Digits of a decimal as text, rounded half-even: cut, then one unit away from zero where the rest asks for it."""
    point = f"instr({s}, '.')"
    kept = f"left({s}, {point} + {places})"
    rest = f"rtrim('0', substring({s}, {point} + {places + 1}))"
    last = f"right(rtrim('.', {kept}), 1)"
    up = f"({rest} > '5' OR ({rest} = '5' AND {last} IN ('1', '3', '5', '7', '9')))"
    unit = f"CAST('{_unit(places)}' AS DECIMAL({places + 1}, {places}))"
    step = f"CASE WHEN NOT {up} THEN 0BD WHEN startswith({s}, '-') THEN -{unit} ELSE {unit} END"
    # The cast also turns -0.00 into 0.00. All 29 digits and a carry fit.
    number = f"CAST(try_cast(rtrim('.', {kept}) AS DECIMAL(32, {places})) + {step} AS DECIMAL(33, {places}))"
    short = f"{point} = 0 OR length({s}) - {point} <= {places}"
    return f"CASE WHEN {short} THEN {s} ELSE {sql_decimal_text(number, places)} END"


def _unit(places: int) -> str:
    return "1" if places == 0 else "0." + "0" * (places - 1) + "1"


def _variant_text(v: str, style: CellStyle) -> str:
    """By the kind that the value turns out to have."""
    kind = kind_sql(v)
    as_string = f"try_variant_get({v}, '$', 'string')"
    number = sql_let(f"try_variant_get({v}, '$', 'double')", "out_f", scalar_text("out_f", FLOAT, style))
    moment = sql_let(f"try_variant_get({v}, '$', 'timestamp_ntz')", "out_t", scalar_text("out_t", DATETIME, style))
    day = sql_let(f"try_variant_get({v}, '$', 'date')", "out_t", scalar_text("out_t", DATE, style))
    return (
        f"CASE {kind} WHEN 'STRING' THEN {as_string} WHEN 'BIGINT' THEN {as_string} "
        f"WHEN 'DATE' THEN {day} WHEN 'TIMESTAMP_NTZ' THEN {moment} "
        f"ELSE IF({variant_is(kind, Kind.FLOAT, exact=True)}, {number}, {as_string}) END"
    )


def is_kind(sql: str, t: Type, kind: Kind) -> str | None:
    """A condition: is there a value, and is it of this kind? None when it never is."""
    if t.is_dynamic:
        return f"({sql} IS NOT NULL AND {variant_is(kind_sql(sql), kind)})"
    return f"({sql} IS NOT NULL)" if t.kind is kind else None
