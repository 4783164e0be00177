"""Records from outside (JSON, Python) as the interpreter wants them: values of the schema's types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.physical import to_dynamic


def coerce_record(record: Mapping[str, Any], schema: Mapping[str, Type]) -> dict[str, Any]:
    """The record with JSON spellings read: dates and decimals from text, floats from whole numbers."""
    return {name: coerce_value(value, schema.get(name, ANY)) for name, value in record.items()}


def coerce_value(value: Any, t: Type) -> Any:
    """One value; what does not fit the type is left as it is.

    >>> from clinker_spark.core.types import DATE
    >>> coerce_value("2024-03-15", DATE)
    datetime.date(2024, 3, 15)
    """
    if value is None or t.is_dynamic:
        return to_dynamic(value)
    match t.kind:
        case Kind.DATE if isinstance(value, str):
            return _or_same(dt.date.fromisoformat, value)
        case Kind.DATETIME if isinstance(value, str):
            return _or_same(dt.datetime.fromisoformat, value)
        case Kind.DECIMAL if isinstance(value, str | int | float) and not isinstance(value, bool):
            number = _or_same(Decimal, str(value))
            if isinstance(number, Decimal) and t.scale is not None:
                return values.decimal_fit(number, t.scale)
            return number
        case Kind.FLOAT if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        case Kind.ARRAY if isinstance(value, list):
            return [coerce_value(v, t.element or ANY) for v in value]
        case Kind.MAP if isinstance(value, Mapping):
            return {str(k): coerce_value(v, t.element or ANY) for k, v in value.items()}
    return value


def _or_same(read: Any, text: str) -> Any:
    try:
        return read(text)
    except (ValueError, InvalidOperation):
        return text
