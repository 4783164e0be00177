"""Records from outside (JSON, Python) as the interpreter wants them: values of the schema's types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.physical import to_dynamic
from clinker_spark.cxl.builtins.text import to_text
from clinker_spark.cxl.errors import ErrorKind, EvalError, Fail


def coerce_record(record: Mapping[str, Any], schema: Mapping[str, Type]) -> dict[str, Any]:
    """The record with JSON spellings read: dates and decimals from text, floats from whole numbers.

    Raises `EvalError` for a value that is not of its column's type."""
    result = {}
    for name, value in record.items():
        try:
            result[name] = coerce_value(value, schema.get(name, ANY))
        except (ValueError, InvalidOperation, Fail):
            message = f"the value of '{name}' is not of type {schema[name].unwrap()}"
            raise EvalError(ErrorKind.TYPE_MISMATCH.value, message, field=name, value=to_text(value)) from None
    return result


def coerce_value(value: Any, t: Type) -> Any:
    """One value as its type; raises `ValueError` (or the error of its reader) when it is of another.

    >>> from clinker_spark.core.types import DATE
    >>> coerce_value("2024-03-15", DATE)
    datetime.date(2024, 3, 15)
    """
    if value is None or t.is_dynamic:
        return to_dynamic(value)
    match t.kind:
        case Kind.DATE if isinstance(value, str):
            value = dt.date.fromisoformat(value)
        case Kind.DATETIME if isinstance(value, str):
            value = dt.datetime.fromisoformat(value)
        case Kind.DECIMAL if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
            value = _decimal(Decimal(str(value)), t.scale)
        case Kind.FLOAT if isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        case Kind.INT if isinstance(value, float) and value.is_integer():
            value = int(value)
        case Kind.ARRAY if isinstance(value, list):
            return [coerce_value(v, t.element or ANY) for v in value]
        case Kind.MAP if isinstance(value, Mapping):
            return {str(k): coerce_value(v, t.element or ANY) for k, v in value.items()}
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    if values.kind_of(value) is not t.kind:
        raise ValueError(f"{value!r} is not {t}")
    return value


def _decimal(number: Decimal, scale: int | None) -> Decimal:
    if not number.is_finite():
        raise ValueError(f"{number} is not a decimal")
    return number if scale is None else values.decimal_fit(number, scale)
