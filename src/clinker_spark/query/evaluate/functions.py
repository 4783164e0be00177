"""What the free functions do with plain values."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from clinker_spark.cxl.builtins.floatsums import float_mean, float_sum
from clinker_spark.cxl.errors import Fail
from clinker_spark.query import values
from clinker_spark.query.failures import Failed
from clinker_spark.query.values import Group


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


def length(value: Any) -> int | None:
    return None if value is None else count(value)


def count(value: Any) -> int:
    return len(value) if isinstance(value, str | dict) else len(items(value))


def first(value: Any) -> Any:
    found = items(value)
    return found[0] if found else None


def last(value: Any) -> Any:
    found = items(value)
    return found[-1] if found else None


def to_int(value: Any) -> Any:
    """A whole number; a fraction is cut off. Raises `Failed` for a text that is none."""
    if value is None:
        return None
    try:
        return int(plain_number(value))
    except (ValueError, OverflowError, TypeError):
        raise Failed(f"{values.show(value, False)} is not a whole number") from None


def to_float(value: Any) -> Any:
    if value is None:
        return None
    try:
        return float(plain_number(value))
    except (ValueError, TypeError):
        raise Failed(f"{values.show(value, False)} is not a number") from None


def plain_number(value: Any) -> Any:
    """A text as numbers are written everywhere: Python would also read `1_000` and the digits of other scripts."""
    if isinstance(value, str) and ("_" in value or not value.isascii()):
        raise ValueError(value)
    return value.strip() if isinstance(value, str) else value


def substring(text: Any, start: Any, end: Any) -> Any:
    """From a position up to another; those below 0 count from the end."""
    if text is None or start is None or end is None:
        return None
    n = len(text)
    start = max(0, start + n if start < 0 else start)
    return text[start : max(start, end + n if end < 0 else end)]


def part(value: Any, start: Any, end: Any) -> list[Any]:
    return items(value)[start:end]


def reverse(value: Any) -> Any:
    if value is None:
        return None
    return value[::-1] if isinstance(value, str) else items(value)[::-1]


def appended(value: Any, item: Any) -> list[Any]:
    return [*items(value), item]


def concatenated(*lists: Any) -> Any:
    if any(part is None for part in lists):
        return None
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
    """A function of floats. Where they are finite, its result must be, too."""

    def run(*args: Any) -> Any:
        if any(a is None for a in args):
            return None
        try:
            return float(function(*map(float, args)))
        except (ValueError, OverflowError):
            raise Failed("there is no such number") from None

    return run


def joined(value: Any, separator: str) -> str:
    return separator.join(values.show(v) for v in items(value))
