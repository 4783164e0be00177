"""Small value types of the models: texts, numbers, sizes, durations, fractions.

Each reads what stands in a file, or says in plain words why it cannot. `{key}` in a message stands for the key that
the value belongs to; whoever reports the problem knows it.

>>> read_size(Plain("512M")), read_size(Plain("10KB")), read_duration("5m"), read_fraction("10%")
(536870912, 10000, datetime.timedelta(seconds=300), 0.1)
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from clinker_spark.config.tree.scalars import NO, YES, Plain, as_bool, as_float, as_int, resolve

_SIZE = re.compile(r"([0-9]+)\s*(?:([KMGT])(i?B)?|B)?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"([0-9]+)\s*(ms|s|m|h|d)", re.ASCII)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%", re.ASCII)
_MAX_SHOWN = 60
_MAX_BYTES = 2**63 - 1
_MAX_DAYS = 36_500


def problem(code: str, message: str, help_text: str | None = None) -> PydanticCustomError:
    """A finding that pydantic collects with its own; `translate.py` turns both into diagnostics."""
    context = {"message": message, "help": help_text or ""}
    return PydanticCustomError(code, "{message}", context)


def shown(value: Any) -> str:
    """A value as a message names it."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value).replace("\n", " ")
    return f"'{text}'" if len(text) <= _MAX_SHOWN else f"'{text[:_MAX_SHOWN]}…'"


# ---------------------------------------------------------------- plain values


def read_text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | int | float):  # from TOML, where numbers are numbers
        raise problem("E007", f"'{{key}}' must be a text, not the value {value}", "put it in quotes")
    raise problem("E007", f"'{{key}}' must be a text, not {shown(value)}", _text_help(value))


def _text_help(value: Any) -> str:
    if value is None:
        return "write the text after the colon, or remove the key"
    if isinstance(value, list):
        return "write one value without brackets, or put the text in quotes"
    if isinstance(value, dict):
        return "write '|' after the colon and the text below it, or put the text in quotes"
    return "write a text"


def read_bool(value: Any) -> bool:
    found = as_bool(value)
    if found is not None:
        return found
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in ("true", "false"):
        help_text = f"write {word} without quotes"
    elif word in YES or word in NO:
        help_text = f"write {'true' if word in YES else 'false'}; only true and false are read as yes and no"
    else:
        help_text = "write true or false"
    raise problem("E007", f"'{{key}}' must be true or false, not {shown(value)}", help_text)


def read_int(value: Any) -> int:
    found = as_int(value)
    if found is not None:
        return found
    help_text = "write it in digits"
    if isinstance(value, str):
        digits = value.strip().lstrip("+").replace("_", "")
        if digits.isascii() and digits.isdigit() and len(digits) < 20:
            help_text = f"write {int(digits)}" + ("" if isinstance(value, Plain) else " without quotes")
    raise problem("E007", f"'{{key}}' must be a whole number, not {shown(value)}", help_text)


def read_float(value: Any) -> float:
    found = as_float(value)
    if found is None:
        raise problem("E007", f"'{{key}}' must be a number, not {shown(value)}", "write it in digits, such as 0.5")
    return found


Text = Annotated[str, BeforeValidator(read_text)]
Words = Annotated[str, Field(min_length=1), BeforeValidator(read_text)]
"""A text that must not be empty."""


def read_path(value: Any) -> str:
    text = read_text(value)
    if "\0" in text:
        raise problem("E007", "'{key}' has a NUL character in it", "remove it: no path has one")
    return text


PathText = Annotated[str, Field(min_length=1), BeforeValidator(read_path)]
"""The path of a file or a folder."""
Bool = Annotated[bool, BeforeValidator(read_bool)]
Int = Annotated[int, BeforeValidator(read_int)]
Count = Annotated[int, Field(ge=1), BeforeValidator(read_int)]
"""1, 2, 3, ..."""
Natural = Annotated[int, Field(ge=0), BeforeValidator(read_int)]
"""0, 1, 2, ..."""
Float = Annotated[float, BeforeValidator(read_float)]
Anything = Annotated[Any, BeforeValidator(resolve)]


def read_flag_text(value: Any) -> str:
    """A text that people write as a bare number: a padding of 0, a record tag of 1."""
    return read_text(value if isinstance(value, str) or value is None else str(value))


# ---------------------------------------------------------------- units


def read_size(value: Any) -> int:
    """Bytes. `512M` and `512MiB` are binary, `512MB` is decimal."""
    whole = as_int(value)
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if whole is None and match is not None and len(match[1]) <= 19:
        unit, rest = (match[2] or "").upper(), (match[3] or "").lower()
        base = 1000 if rest == "b" else 1024
        whole = int(match[1]) * base ** " KMGT".index(unit or " ")
    if whole is None or not 0 <= whole <= _MAX_BYTES:
        raise problem(
            "E215",
            f"'{{key}}' must be a size, not {shown(value)}",
            "write bytes, or a unit: 512M (binary), 10MB (decimal)",
        )
    return whole


def read_duration(value: Any) -> dt.timedelta:
    """`500ms`, `30s`, `5m`, `2h`, `7d`: a whole number and a unit."""
    if isinstance(value, dt.timedelta):
        return value
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None and len(match[1]) <= 15:
        amount = int(match[1])
        if (
            amount * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[match[2]]
            <= _MAX_DAYS * 86_400_000
        ):
            return dt.timedelta(**{_UNITS[match[2]]: amount})
    help_text = "write a whole number and a unit: 500ms, 30s, 5m, 2h, 7d"
    if as_int(value) is not None:
        help_text = f"add a unit: {as_int(value)}s, {as_int(value)}m, ..."
    raise problem("E214", f"'{{key}}' must be a duration, not {shown(value)}", help_text)


def read_moment(value: Any) -> dt.timedelta | dt.datetime:
    """An age (`7d`) or a date (`2026-01-31`, `2026-01-31T08:00:00Z`); a date is naive UTC afterwards."""
    if isinstance(value, str) and not _DURATION.fullmatch(value.strip()):
        try:
            found = dt.datetime.fromisoformat(value.strip())
            return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)
        except (ValueError, OverflowError):
            raise problem(
                "E214",
                f"'{{key}}' must be a duration or a date, not {shown(value)}",
                "write an age such as 7d, or a date such as 2026-01-31 or 2026-01-31T08:00:00",
            ) from None
    return read_duration(value)


def read_tolerance(value: Any) -> dt.timedelta | float:
    """A distance on an axis: a duration for times, a number for numbers."""
    found = as_float(value)
    if found is not None and found >= 0:
        return found
    return read_duration(value)


def read_fraction(value: Any) -> float:
    """`0.1` or `10%`."""
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 30 else None
    found = float(match[1]) / 100 if match else as_float(value)
    if found is None or not 0 <= found <= 1:
        raise problem(
            "E007", f"'{{key}}' must be a fraction from 0 to 1, not {shown(value)}", "write 0.1, or 10% for the same"
        )
    return found


def read_rate(value: Any) -> float:
    """A share of records that may fail: above 0."""
    try:
        found = read_fraction(value)
    except PydanticCustomError:
        found = 0.0
    if not found:
        help_text = "write a fraction above 0 and up to 1, such as 0.05 or 5%"
        raise problem("E318", f"'{{key}}' must be a rate above 0 and at most 1, not {shown(value)}", help_text)
    return found


_SIZE_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "pattern": r"^[0-9]+\s*([KMGTkmgt]([iI]?[bB])?|[bB])?$"},
    ],
    "examples": ["512M", "10MB"],
}
_DURATION_SCHEMA = {"type": "string", "pattern": r"^[0-9]+\s*(ms|s|m|h|d)$", "examples": ["30s", "5m"]}
_FRACTION_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*%$"},
    ],
    "examples": [0.1, "10%"],
}

Size = Annotated[int, BeforeValidator(read_size), WithJsonSchema(_SIZE_SCHEMA)]
Duration = Annotated[dt.timedelta, BeforeValidator(read_duration), WithJsonSchema(_DURATION_SCHEMA)]
Moment = Annotated[
    dt.timedelta | dt.datetime,
    BeforeValidator(read_moment),
    WithJsonSchema({"type": "string", "examples": ["7d", "2026-01-31", "2026-01-31T08:00:00Z"]}),
]
Tolerance = Annotated[
    dt.timedelta | float,
    BeforeValidator(read_tolerance),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, _DURATION_SCHEMA], "examples": ["5m", 0.5]}),
]
Fraction = Annotated[float, BeforeValidator(read_fraction), WithJsonSchema(_FRACTION_SCHEMA)]
Rate = Annotated[float, BeforeValidator(read_rate), WithJsonSchema(_FRACTION_SCHEMA)]
FlagText = Annotated[
    str, BeforeValidator(read_flag_text), WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "integer"}]})
]
