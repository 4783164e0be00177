"""Values from outside as values of a column's type. What a text may look like follows the rules of source columns."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from clinker_spark.cli.cxl.json_input import Number, json_values
from clinker_spark.core.span import Source
from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.physical import to_dynamic
from clinker_spark.cxl.errors import Fail

_INT = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLS = {**dict.fromkeys(("true", "yes", "1", "on"), True), **dict.fromkeys(("false", "no", "0", "off"), False)}
_DATES = ("%Y-%m-%d", "%m/%d/%Y", "%Y/%m/%d", "%m-%d-%Y")
_DATETIMES = ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M")


class Unfit(Exception):
    """A value that cannot stand in a column; `help` says what could."""

    def __init__(self, message: str, help_text: str | None = None) -> None:
        self.help = help_text
        super().__init__(message)


class Guessed(str):
    """The text of a field. Without a declared type it is what it looks like."""

    __slots__ = ()

    @property
    def value(self) -> Any:
        """
        >>> [Guessed(text).value for text in ("7", "1e3", "true", "null", "nan", " 7", "")]
        [7, 1000.0, True, None, 'nan', ' 7', '']
        """
        text = str(self)
        if is_int(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        return {"true": True, "false": False, "null": None}.get(text, text)


def is_int(text: str) -> bool:
    """Is this the text of a 64-bit integer?"""
    if not _INT.fullmatch(text) or len(text.lstrip("+-0")) > 19:  # Python refuses to read thousands of digits
        return False
    return values.I64_MIN <= int(text) <= values.I64_MAX


def fit_value(raw: Any, t: Type) -> Any:
    """`raw` (from JSON, with numbers as written, or the text of a field) as a value of type `t`. Raises `Unfit`."""
    if raw is None:
        return None
    if t.is_dynamic:
        return to_dynamic(_untyped(raw))
    if t.kind is Kind.ARRAY and isinstance(raw, list):
        return [fit_value(item, t.element or ANY) for item in raw]
    if t.kind is Kind.MAP and isinstance(raw, Mapping):
        return {key: fit_value(item, t.element or ANY) for key, item in raw.items()}
    if t.kind in (Kind.ARRAY, Kind.MAP) and isinstance(raw, str):
        return _from_json(raw, t)
    if isinstance(raw, str):
        return _read(raw, t)
    if isinstance(raw, bool) and t.kind is Kind.BOOL:
        return raw
    raise _mismatch(raw, t)


def _untyped(raw: Any) -> Any:
    """A value for a column of any type: what it looks like."""
    if isinstance(raw, Guessed):
        return raw.value
    if isinstance(raw, Number):
        return _int(raw) if _INT.fullmatch(raw) else _float(raw)
    if isinstance(raw, list):
        return [_untyped(item) for item in raw]
    if isinstance(raw, dict):
        return {key: _untyped(item) for key, item in raw.items()}
    return raw


def _read(text: str, t: Type) -> Any:
    if isinstance(text, Guessed) and text == "null" and t.kind is not Kind.STRING:
        return None
    if isinstance(text, Number) and t.kind not in (Kind.INT, Kind.FLOAT, Kind.DECIMAL):
        raise _mismatch(text, t)
    match t.kind:
        case Kind.STRING:
            return str(text)
        case Kind.INT:
            return _int(text)
        case Kind.FLOAT:
            return _float(text)
        case Kind.DECIMAL:
            return _decimal(text, t)
        case Kind.BOOL if text.lower() in _BOOLS:
            return _BOOLS[text.lower()]
        case Kind.DATE:
            return _date(text, t)
        case Kind.DATETIME:
            return _datetime(text, t)
    raise _mismatch(text, t)


def _int(text: str) -> int:
    if is_int(text):
        return int(text)
    if _INT.fullmatch(text):
        help_text = "integers have 64 bits; write a float (with .0), or declare the column as decimal"
        raise Unfit(f"the integer {_shorten(text)} does not fit in 64 bits", help_text)
    if _NUMBER.fullmatch(text) and float(text).is_integer() and abs(float(text)) < 2**53:
        return int(float(text))  # 2.0 is as good as 2
    raise _mismatch(text, Type(Kind.INT))


def _float(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _mismatch(text, Type(Kind.FLOAT))
    value = float(text)
    if math.isinf(value) and text[-1].isdigit():
        raise Unfit(f"the number {_shorten(text)} is too large for a float", "the largest float is about 1.8e308")
    return value


def _decimal(text: str, t: Type) -> Decimal:
    try:
        number = Decimal(text)
        # The exponent is looked at first: writing out 1e999999999 would fill the memory.
        if number.is_finite() and number.adjusted() <= values.DECIMAL_DIGITS and "_" not in text:
            return values.decimal_fit(number, t.scale)
    except (InvalidOperation, ValueError):
        raise _mismatch(text, t) from None
    except Fail:
        pass
    raise Unfit(f"{_shorten(text)} does not fit a decimal", f"a decimal has up to {values.DECIMAL_DIGITS} digits")


def _date(text: str, t: Type) -> dt.date:
    for form in _DATES:
        try:
            return dt.datetime.strptime(text, form).date()
        except ValueError:
            continue
    try:
        return _datetime(text, t).date()
    except Unfit:
        raise Unfit(f"{_quote(text)} is not a date", "write it as 2024-03-15") from None


def _datetime(text: str, t: Type) -> dt.datetime:
    try:
        value = dt.datetime.fromisoformat(text)
        # CXL times have no zone: an offset is taken off, and the time is UTC.
        return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        pass
    for form in _DATETIMES:
        try:
            return dt.datetime.strptime(text, form)
        except ValueError:
            continue
    raise Unfit(f"{_quote(text)} is not a date with a time", "write it as 2024-03-15T14:30:00")


def _from_json(text: str, t: Type) -> Any:
    """An array or map given as the text of one field."""
    found = json_values(Source("<field>", text))
    value = found[0][0] if len(found) == 1 else None
    if not isinstance(value, list if t.kind is Kind.ARRAY else dict):
        example = '["a", "b"]' if t.kind is Kind.ARRAY else '{"a": 1}'
        raise Unfit(f"{_quote(text)} is not {_article(t)}", f"write it as JSON: {example}")
    return fit_value(value, t)


def _mismatch(raw: Any, t: Type) -> Unfit:
    shown = _shorten(raw) if isinstance(raw, Number) else _quote(raw)
    return Unfit(f"{shown} is not {_article(t)}", f"the column is declared as {t}")


def _article(t: Type) -> str:
    name = str(t.unwrap())
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _quote(raw: Any) -> str:
    match raw:
        case bool():
            return str(raw).lower()
        case str():
            return f"'{_shorten(raw)}'"
        case list():
            return "an array"
        case dict():
            return "an object"
    return _shorten(str(raw))


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"
