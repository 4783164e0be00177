"""Values of query programs at run time, and the rules they share: truth, equality, order, text.

Values are plain Python: None, bool, int, float, Decimal, str, date, datetime, list and dict (records and maps), and
beside them a `Group`. Rows that live on Spark are a `Dataset`, which only the engine can look into.

>>> equal(1, 1.0), equal(True, 1), equal({"a": [1]}, {"a": [1.0]}), equal(None, None)
(True, False, True, True)
>>> print(show([1.5, {"b": None, "a": "x"}]))
[1.5, {"a": "x", "b": null}]
"""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from clinker_spark.cxl.builtins.text import datetime_text


@dataclass(eq=False)
class Group:
    """The rows that share a key, in order of arrival."""

    key: Any
    items: list[Any] = field(default_factory=list)


class JoinedRow(dict[str, Any]):
    """A row of several sources inside a group: `{order: ..., customer: ...}`.

    A field that is no source is looked up in the sources, in their order, so `x.total` finds `x.order.total`.
    """

    def field(self, name: str) -> Any:
        if name in self:
            return self[name]
        return next((row[name] for row in self.values() if isinstance(row, dict) and name in row), None)


class NamedRow(dict[str, Any]):
    """A row of one source inside a group; `x.source.total` is `x.total`, as in a group of several sources."""

    source: str = ""

    def field(self, name: str) -> Any:
        return self if name == self.source and name not in self else self.get(name)


class Dataset:
    """Rows on Spark: a promise that the engine keeps when somebody looks."""


def truthy(value: Any) -> bool:
    """Null, zero, the empty text, list and record are false; everything else is true.

    >>> [truthy(v) for v in (None, 0, "", [], {}, 0.5, "no", {"a": None})]
    [False, False, False, False, False, True, True, True]
    """
    if isinstance(value, Group):
        return bool(value.items)
    return bool(value)


def equal(a: Any, b: Any) -> bool:
    """`==`: never null; null equals null; numbers by value, everything else by kind and content."""
    if a is b:
        return not (isinstance(a, float) and math.isnan(a))
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    if isinstance(a, Group):
        a = a.items
    if isinstance(b, Group):
        b = b.items
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(k in b and equal(v, b[k]) for k, v in a.items())
    if isinstance(a, dt.datetime) != isinstance(b, dt.datetime):
        return False
    return bool(a == b)


def identity(value: Any) -> Any:
    """Something to hash: the same for equal values and for no others. NaN is one value here, as in Spark's groups.

    >>> identity([1, {"a": True}]) == identity([1.0, {"a": True}]), identity(True) == identity(1)
    (True, False)
    """
    if isinstance(value, Group):
        value = value.items
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list | tuple):
        return ("list", tuple([identity(v) for v in value]))
    if isinstance(value, dict):
        return ("record", frozenset([(k, identity(v)) for k, v in value.items()]))
    if isinstance(value, float) and math.isnan(value):
        return ("nan",)
    if isinstance(value, dt.datetime):
        return ("datetime", value)
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return value


_RANK = {bool: 0, int: 1, float: 1, Decimal: 1, str: 2, dt.date: 3, dt.datetime: 4, list: 5, dict: 6}


def compare(a: Any, b: Any) -> int:
    """-1, 0 or 1 in the order of `sort by`: nulls last; lists by their elements, records by their fields' names.

    >>> compare(None, 5), compare([1, None], [1, 2]), compare("a", "B")
    (1, 1, 1)
    """
    if a is None or b is None:
        return (a is None) - (b is None)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        for x, y in zip(a, b, strict=False):
            if (order := compare(x, y)) != 0:
                return order
        return (len(a) > len(b)) - (len(a) < len(b))
    if isinstance(a, dict) and isinstance(b, dict):
        names = sorted({*a, *b}, key=str)
        return compare([a.get(n) for n in names], [b.get(n) for n in names])
    rank = _RANK.get(type(a), 9), _RANK.get(type(b), 9)
    if rank[0] != rank[1]:
        return -1 if rank[0] < rank[1] else 1
    if (isinstance(a, float) and math.isnan(a)) or (isinstance(b, float) and math.isnan(b)):
        return (1 if a != a else 0) - (1 if b != b else 0)  # NaN after all other numbers, as Spark has it
    try:
        return (1 if a > b else 0) - (1 if a < b else 0)
    except TypeError:
        return 0


sort_key = cmp_to_key(compare)


# ---------------------------------------------------------------------- text


def show(value: Any, top: bool = True) -> str:
    """What `print` prints: text as it is, and inside lists and records quoted, with the fields by name."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if top else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return float_text(value, point=not top)
    if isinstance(value, Group):
        value = {"count": len(value.items), "items": value.items, "key": value.key}
    if isinstance(value, list | tuple):
        return "[" + ", ".join(show(v, False) for v in value) + "]"
    if isinstance(value, dict):
        pairs = sorted((str(k), v) for k, v in value.items() if k != "__name")
        return "{" + ", ".join(f"{json.dumps(k, ensure_ascii=False)}: {show(v, False)}" for k, v in pairs) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return datetime_text(value, "T")
    return str(value)


def float_text(value: float, *, point: bool) -> str:
    """The shortest text that reads back as the number; `point` keeps `.0` on whole numbers.

    >>> float_text(3.0, point=False), float_text(3.0, point=True), float_text(1e21, point=False)
    ('3', '3.0', '1e+21')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if abs(value) >= 1e21 or (value and abs(value) < 1e-4 and not point):
        return repr(value)
    text = format(Decimal(repr(value)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text + ".0" if point and "." not in text else text


def plain(value: Any, whole: bool = True) -> Any:
    """The value as JSON has it: dates as text, groups as records, and with `whole` 2.0 as 2."""
    if isinstance(value, Group):
        value = {"key": value.key, "items": value.items}
    if isinstance(value, dict):
        return {str(k): plain(v, whole) for k, v in value.items() if k != "__name"}
    if isinstance(value, list | tuple):
        return [plain(v, whole) for v in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if whole and value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, Decimal):
        return int(value) if whole and value == value.to_integral_value() else float(value)
    if isinstance(value, dt.datetime):
        return datetime_text(value, "T")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def json_text(value: Any, *, sort: bool = True, indent: int | None = 2, whole: bool = True) -> str:
    """What `json` prints.

    >>> print(json_text({"b": 2.0, "a": None}, indent=None))
    {"a": null, "b": 2}
    """
    return json.dumps(plain(value, whole), indent=indent, sort_keys=sort, ensure_ascii=False)
