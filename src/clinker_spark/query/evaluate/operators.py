"""Binary operators on plain values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from clinker_spark.query import values
from clinker_spark.query.evaluate.functions import contains, distinct, items
from clinker_spark.query.failures import Failed
from clinker_spark.query.values import Group, compare, equal

_ORDER: dict[str, Callable[[int], bool]] = {
    "<": lambda c: c < 0,
    "<=": lambda c: c <= 0,
    ">": lambda c: c > 0,
    ">=": lambda c: c >= 0,
}


_SUMS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def operate(op: str, a: Any, b: Any) -> Any:
    """A binary operator on two values.

    >>> operate("/", 7, -2), operate("+", None, 1), operate("<", None, 1), operate("in", "ell", "hello")
    (-3, None, False, True)
    """
    if op == "==":
        return equal(a, b)
    if op == "!=":
        return not equal(a, b)
    if op in _ORDER:
        return _in_order(op, a, b)
    if op == "in":
        return contains(b, a)
    if op in ("union", "union all", "except", "intersect"):
        return set_operator(op, a, b)
    if op == "+" and (isinstance(a, list | Group) or isinstance(b, list | Group)):
        return [*items(a), *items(b)]
    if a is None or b is None:
        return None
    if op == "+" and isinstance(a, str) and isinstance(b, str):
        return a + b
    return _arithmetic(op, a, b)


def _in_order(op: str, a: Any, b: Any) -> bool:
    if a is None or b is None or a != a or b != b:
        return False
    numeric = (int, float, Decimal)
    same = type(a) is type(b) or (isinstance(a, numeric) and isinstance(b, numeric))
    if not same:
        raise Failed(f"cannot compare {values.show(a, False)} and {values.show(b, False)}")
    return _ORDER[op](compare(a, b))


def _arithmetic(op: str, a: Any, b: Any) -> Any:
    for side in (a, b):
        if isinstance(side, bool) or not isinstance(side, int | float | Decimal):
            raise Failed(f"cannot apply '{op}' to {values.show(a, False)} and {values.show(b, False)}")
    if isinstance(a, Decimal) != isinstance(b, Decimal):  # a float takes part: the result is one
        a, b = (float(a), float(b)) if isinstance(a, float) or isinstance(b, float) else (Decimal(a), Decimal(b))
    if op in _SUMS:
        return _in_range(_SUMS[op](a, b), a, b)
    if b == 0:
        raise Failed("division by zero")
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - b * quotient
    if op == "/":
        return _in_range(a / b, a, b)
    return math.fmod(a, b) if isinstance(a, float) else a % b


def _in_range(made: Any, a: Any, b: Any) -> Any:
    """The result, unless it is infinite although the operands are not."""
    if isinstance(made, float) and math.isinf(made) and math.isfinite(a) and math.isfinite(b):
        raise Failed("float overflow", "the result is larger than every float")
    return made


def set_operator(op: str, a: Any, b: Any) -> list[Any]:
    """Left then right, first occurrences; `except` keeps what the left repeats.

    >>> set_operator("union", [2, 1, 2], [3, 1]), set_operator("except", [1, 2, 1], [2])
    ([2, 1, 3], [1, 1])
    """
    left, right = items(a), items(b)
    if op == "union all":
        return left + right
    if op == "union":
        return distinct(left + right)
    known = {values.identity(v) for v in right}
    if op == "except":
        return [v for v in left if values.identity(v) not in known]
    return [v for v in distinct(left) if values.identity(v) in known]
