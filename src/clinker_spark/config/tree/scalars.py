"""What an unquoted YAML text means, decided by what is wanted in its place.

A column named `on`, a version `1.10` and a time `12:30` stay texts. Only `true` and `false` are bools, only plain
decimal digits are numbers, and only where something other than a text is wanted.

>>> resolve(Plain("12")), resolve(Plain("012")), resolve(Plain("no")), resolve("12")
(12, '012', 'no', '12')
"""

from __future__ import annotations

import re
from typing import Any

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:_[0-9]{3})+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_MAX_DIGITS = 400  # a number with more is a mistake, and Python refuses to convert a very long one

YES = frozenset(("yes", "on", "y", "t"))
NO = frozenset(("no", "off", "n", "f"))


class Plain(str):
    """The text of an unquoted scalar. It may be meant as a number or a bool; a quoted text is a plain `str`."""

    __slots__ = ()


def is_null(text: str) -> bool:
    """Does this unquoted text mean that there is no value?"""
    return text in _NULLS


def as_bool(value: Any) -> bool | None:
    """The bool that a value is, or None."""
    if isinstance(value, Plain):
        return _BOOLS.get(value)
    return value if isinstance(value, bool) else None


def as_int(value: Any) -> int | None:
    """The integer that a value is, or None. `1_000` counts, `012` does not: YAML once read it as ten."""
    if isinstance(value, str):
        plain = isinstance(value, Plain) and len(value) <= _MAX_DIGITS
        return int(value) if plain and (_INT.fullmatch(value) or _GROUPED.fullmatch(value)) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def as_float(value: Any) -> float | None:
    """The finite number that a value is, or None."""
    whole = as_int(value)
    if whole is not None:
        return float(whole) if abs(whole) < 10**300 else None
    if isinstance(value, Plain) and len(value) <= _MAX_DIGITS and _FLOAT.fullmatch(value):
        return _finite(float(value))
    return _finite(value) if isinstance(value, float) else None


def _finite(number: float) -> float | None:
    return number if abs(number) != float("inf") and number == number else None


def resolve(value: Any) -> Any:
    """A value where anything is allowed: unquoted texts become what they look like, inside lists and maps too."""
    if isinstance(value, Plain):
        if is_null(value):
            return None
        numbers = () if "_" in value else (as_int(value), as_float(value))
        return next((found for found in (as_bool(value), *numbers) if found is not None), str(value))
    if isinstance(value, dict):
        return {str(key): resolve(item) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item) for item in value]
    return value
