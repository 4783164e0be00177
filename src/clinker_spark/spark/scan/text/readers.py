"""Single texts as values: the rules of source columns in plain Python, for values that no whole-column cast reads.

>>> read_int("+7"), read_int(" 7"), read_float("nan"), read_date_time("2024-03-05T14:00:00+02:00")
(7, None, None, datetime.datetime(2024, 3, 5, 12, 0))
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.numbertext import text_to_decimal, text_to_int
from clinker_spark.cxl.dates.formats import parse_text
from clinker_spark.cxl.values import DECIMAL_DIGITS

Reader = Callable[[str], Any]
"""The value of a text, or None."""

_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:(?<=:[0-9]{2}:[0-9]{2})\.([0-9]+))?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)

read_int: Reader = text_to_int


def read_float(text: str) -> float | None:
    """A finite number; the words inf and nan are not numbers, and neither is 1e999."""
    value = float(text) if _FLOAT.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


def read_bool(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def read_decimal(text: str, scale: int | None, digits: int | None) -> Decimal | None:
    """Plain digits that need no rounding to `scale` and have at most `digits` digits at it.

    >>> read_decimal("1.50", 1, None), read_decimal("1.55", 1, None), read_decimal("12.5", 1, 2)
    (Decimal('1.5'), None, None)
    """
    if not _PLAIN.fullmatch(text) or len(text) > 500:
        return None
    if scale is None:
        value = text_to_decimal(text)
    else:
        whole, _, fraction = text.partition(".")
        value = text_to_decimal(f"{whole}.{fraction.rstrip('0').ljust(scale, '0')}" if scale else whole)
        if len(fraction.rstrip("0")) > scale:
            return None
    if value is None or len(value.as_tuple().digits) > DECIMAL_DIGITS:
        return None
    places = scale if scale is not None else max(-int(value.as_tuple().exponent), 0)
    if value and digits is not None and value.adjusted() + 1 > digits - places:
        return None
    return value


def read_date(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def read_date_time(text: str) -> dt.datetime | None:
    """ISO with `T` or a blank; digits after the sixth of a fraction are cut, an offset is taken off."""
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    try:
        moment = dt.datetime.fromisoformat(f"{day}T{clock}")
        moment = moment.replace(microsecond=int((fraction or "").ljust(6, "0")[:6]))
        return moment - _offset(zone) if zone else moment
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> dt.timedelta:
    if zone == "Z":
        return dt.timedelta()
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        raise ValueError(zone)
    found = dt.timedelta(hours=hours, minutes=minutes)
    return -found if zone[0] == "-" else found


def reader_of(t: Type, digits: int | None, formats: Sequence[str], *, only_formats: bool) -> Reader:
    """How a text of this type is read. Decimals without a scale come back as their digits, in text."""
    scale = t.scale
    match t.kind:
        case Kind.INT:
            return read_int
        case Kind.FLOAT:
            return read_float
        case Kind.BOOL:
            return read_bool
        case Kind.DECIMAL if scale is None:
            return lambda text: None if (v := read_decimal(text, None, digits)) is None else format(v, "f")
        case Kind.DECIMAL:
            return lambda text: read_decimal(text, scale, digits)
    iso = read_date if t.kind is Kind.DATE else read_date_time

    def read(text: str) -> dt.date | None:
        found = None if only_formats else iso(text)
        return found if found is not None else next(filter(None, (parse_text(f, text, t.kind) for f in formats)), None)

    return read
