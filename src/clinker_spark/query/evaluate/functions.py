"""What the free functions do with plain values."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from clinker_spark.cxl.builtins.floatsums import float_mean, float_sum
from clinker_spark.cxl.builtins.numbers import round_float
from clinker_spark.cxl.errors import Fail
from clinker_spark.query import values
from clinker_spark.query.failures import Failed
from clinker_spark.query.values import Group

_MOST_DIGITS = 40
_WIDE = Context(prec=3 * _MOST_DIGITS)


def items(value: Any) -> list[Any]:
    """The elements of a list, a group, a text or a map; a map gives `{key, value}` records in its own order."""
    if value is None:
        return []
    if isinstance(value, Group):
        return value.items
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        return list(value)
    if isinstance(value, dict):
        return [{"key": k, "value": v} for k, v in value.items()]
    raise Failed(f"expected a list, but got {values.show(value, False)}")


def numbers(value: Any) -> list[Any]:
    found = [v for v in items(value) if v is not None]
    for v in found:
        if isinstance(v, bool) or not isinstance(v, int | float | Decimal):
            raise Failed(f"expected a list of numbers, but {values.show(v, False)} is in it")
    return found


def total(value: Any) -> Any:
    found = numbers(value)
    if any(isinstance(v, float) for v in found):
        try:
            return float_sum(float(v) for v in found)
        except Fail:
            raise Failed("float overflow in sum", "the total is larger than every float") from None
    return sum(found)


def mean(value: Any) -> float:
    found = numbers(value)
    if any(isinstance(v, float) for v in found):
        try:
            return float_mean([float(v) for v in found])
        except Fail:
            raise Failed("float overflow in avg", "the mean is larger than every float") from None
    return float(total(found)) / len(found) if found else 0.0


def extreme(sign: int) -> Callable[[Any], Any]:
    def pick(value: Any) -> Any:
        best: Any = None
        for v in items(value):
            if v is not None and (best is None or values.compare(v, best) * sign > 0):
                best = v
        return 0 if best is None else best

    return pick


def distinct(value: Any) -> list[Any]:
    """The first of each that are equal."""
    seen = set()
    kept = []
    for item in items(value):
        key = values.identity(item)
        if key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def length(value: Any) -> int:
    if isinstance(value, str | dict):
        return len(value)
    return len(items(value))


def first(value: Any) -> Any:
    found = items(value)
    return found[0] if found else None


def last(value: Any) -> Any:
    found = items(value)
    return found[-1] if found else None


def to_int(value: Any) -> Any:
    if value is None:
        return None
    try:
        return int(value.strip()) if isinstance(value, str) else int(value)
    except (ValueError, OverflowError, TypeError):
        raise Failed(f"{values.show(value, False)} is not a whole number") from None


def to_float(value: Any) -> Any:
    if value is None:
        return None
    try:
        return float(value)
    except (ValueError, TypeError):
        raise Failed(f"{values.show(value, False)} is not a number") from None


def substring(text: Any, start: int, end: int) -> Any:
    if text is None:
        return None
    n = len(text)
    start = max(0, start + n if start < 0 else start)
    end = min(n, end + n if end < 0 else end)
    return text[start : max(start, end)]


def substr(text: Any, start: int, length: int) -> Any:
    return substring(text, start, start + length)


def reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else items(value)[::-1]


def rounded(value: Any, digits: int = 0) -> Any:
    """Half away from zero, as Spark's round does. More digits than a number can have change nothing."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return round_float(value, digits)
    digits = max(-_MOST_DIGITS, min(digits, _MOST_DIGITS))
    rounded = value.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE)
    return rounded.quantize(Decimal(1), context=_WIDE) if digits < 0 else rounded


def appended(value: Any, item: Any) -> list[Any]:
    return [*items(value), item]


def concatenated(*lists: Any) -> Any:
    if any(isinstance(part, str) for part in lists):
        return "".join(values.show(part) for part in lists)
    return [item for part in lists for item in items(part)]


def keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else []


def map_values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else []


def contains(where: Any, what: Any) -> bool:
    if isinstance(where, str):
        return isinstance(what, str) and what in where
    if isinstance(where, dict):
        return what in where
    return any(values.equal(item, what) for item in items(where))


def math_function(function: Callable[..., float]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        if any(a is None for a in args):
            return None
        try:
            return float(function(*map(float, args)))
        except (ValueError, OverflowError) as error:
            raise Failed(f"cannot compute this: {error}") from None

    return run


def joined(value: Any, separator: str) -> str:
    return separator.join(values.show(v) for v in items(value))
