"""Cells that hold a JSON array, as `split_values` with `json: true` declares them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import STRING, Kind, Type
from clinker_spark.cxl.values import I64_MAX, I64_MIN
from clinker_spark.spark.scan.text.readers import Reader, read_float, reader_of

_PLAIN: dict[Kind, type] = {Kind.STRING: str, Kind.INT: int, Kind.BOOL: bool}


def array_reader(t: Type, formats: Sequence[str], *, only_formats: bool) -> Reader:
    """What makes an array of type `t` of a text; None for one that is no JSON array, or has values of other types.

    >>> from clinker_spark.core.types import INT, array_of
    >>> read = array_reader(array_of(INT), (), only_formats=False)
    >>> read("[1, -2]"), read("[]"), read('[1, "2"]'), read("7"), read("[1")
    ([1, -2], [], None, None, None)
    """
    element = t.element or STRING
    read = _element_reader(element, formats, only_formats)

    def array(text: str) -> list[Any] | None:
        try:
            found = json.loads(text, parse_float=Decimal, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
        if type(found) is not list:
            return None
        values = [None if value is None else read(value) for value in found]
        for value, there in zip(values, found, strict=True):
            if value is None and (there is not None or not element.nullable):
                return None
        return values

    return array


def _element_reader(t: Type, formats: Sequence[str], only_formats: bool) -> Callable[[Any], Any]:
    if t.kind is Kind.FLOAT:
        return lambda value: read_float(str(value)) if type(value) in (int, Decimal) else None
    if t.kind in _PLAIN:
        own = _PLAIN[t.kind]
        fits = (lambda value: I64_MIN <= value <= I64_MAX) if own is int else lambda value: True
        return lambda value: value if type(value) is own and fits(value) else None
    texts = reader_of(t, None, formats, only_formats=only_formats)
    return lambda value: texts(value) if type(value) is str else None


def _refuse(word: str) -> None:
    """NaN and Infinity are no JSON."""
    raise ValueError(word)
