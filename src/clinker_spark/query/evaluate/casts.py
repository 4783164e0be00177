"""Turning values into declared types: `e as int`, `let p: Person = ...`, the rows of `load ... as T`.

A record type takes the fields it declares and drops the others; a missing one is an error.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal, InvalidOperation
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.query import values
from clinker_spark.query.evaluate.functions import plain_number
from clinker_spark.query.failures import Failed
from clinker_spark.query.types import ListType, MapType, QType, RecordType


def cast(value: Any, to: QType) -> Any:
    """The value as this type.

    >>> from clinker_spark.core.types import INT, STRING
    >>> from clinker_spark.query.types import record
    >>> cast({"id": "7", "name": "Ada", "more": 1}, record({"id": INT, "name": STRING}, "Person"))
    {'id': 7, 'name': 'Ada'}
    """
    if value is None or isinstance(value, values.Dataset):
        return value
    match to:
        case Type(kind=kind):
            return _scalar(value, kind, to)
        case ListType(element=element) if isinstance(value, list):
            return [cast(v, element) for v in value]
        case RecordType() if isinstance(value, dict):
            return _record(value, to)
        case MapType(value=inner) if isinstance(value, dict):
            return {k: cast(v, inner) for k, v in value.items()}
    return value


def _record(value: dict[str, Any], to: RecordType) -> dict[str, Any]:
    if to.open:
        return value
    made = {}
    for name, t in to.fields:
        if name not in value:
            shown = f" for {to.name}" if to.name else ""
            raise Failed(f"missing field {name}{shown}", f"the record has {', '.join(map(str, value))}", code="E711")
        made[name] = cast(value[name], t)
    return made


def _scalar(value: Any, kind: Kind, to: QType) -> Any:
    try:
        if kind is Kind.INT and not isinstance(value, bool):
            return int(plain_number(value))
        if kind is Kind.FLOAT and not isinstance(value, bool):
            return float(plain_number(value))
        if kind is Kind.DECIMAL:
            return Decimal(str(value))
        if kind is Kind.STRING:
            return values.show(value)
        if kind is Kind.DATE and isinstance(value, str):
            return dt.date.fromisoformat(value)
        if kind is Kind.DATETIME and isinstance(value, str):
            return dt.datetime.fromisoformat(value)
        if kind is Kind.BOOL and isinstance(value, str) and value in ("true", "false"):
            return value == "true"
    except (ValueError, OverflowError, InvalidOperation, TypeError):
        raise Failed(f"cannot read {values.show(value, False)} as {to:?}", code="E711") from None
    return value


def zero(t: QType) -> Any:
    """What a variable has that was declared with a type and no value."""
    match t:
        case Type(kind=Kind.INT):
            return 0
        case Type(kind=Kind.FLOAT):
            return 0.0
        case Type(kind=Kind.STRING):
            return ""
        case Type(kind=Kind.BOOL):
            return False
        case ListType():
            return []
        case MapType():
            return {}
    return None
