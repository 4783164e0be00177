"""Python values as SQL text, and query types as Spark's."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.query.failures import Failed
from clinker_spark.query.types import (
    ANY,
    ListType,
    MapType,
    QType,
    RecordType,
    Scalar,
    is_any,
    type_of_value,
)

_NAMES = {
    Kind.BOOL: "BOOLEAN",
    Kind.INT: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.STRING: "STRING",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP_NTZ",
    Kind.NULL: "VOID",
}


def ddl(t: QType) -> str:
    """The Spark type of a query type.

    >>> from clinker_spark.query.types import INT, STRING, record, list_of
    >>> ddl(list_of(record({"id": INT, "name": STRING})))
    'ARRAY<STRUCT<`id`: BIGINT, `name`: STRING>>'
    """
    match t:
        case Scalar(kind=Kind.DECIMAL, scale=scale):
            return f"DECIMAL(38, {scale if scale is not None else 10})"
        case Scalar(kind=kind) if kind in _NAMES:
            return _NAMES[kind]
        case ListType(element=element):
            return f"ARRAY<{ddl(element)}>"
        case RecordType(fields=fields):
            return f"STRUCT<{', '.join(f'{quote(n)}: {ddl(f)}' for n, f in fields)}>"
        case MapType(key=key, value=value):
            return f"MAP<{ddl(key)}, {ddl(value)}>"
    raise Failed(f"{t} has no Spark type", "declare the type, or keep values of one kind in a column", code="E708")


def has_ddl(t: QType) -> bool:
    try:
        ddl(t)
    except Failed:
        return False
    return True


def literal(value: Any) -> tuple[str, QType]:
    """A value as SQL, and its type.

    >>> literal(3)[0], literal(0.5)[0], literal("it's")[0], literal(None)[0]
    ('3', '0.5D', "translate('it~s', '~', chr(39))", 'NULL')
    """
    t = type_of_value(value)
    if value is None:
        return "NULL", t
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE"), t
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Failed(f"the integer {value} does not fit in 64 bits", code="E708")
        return (str(value) if -(2**31) < value < 2**31 else f"{value}L"), t
    if isinstance(value, float):
        return (f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"), t
    if isinstance(value, Decimal):
        return f"{value:f}BD", t
    if isinstance(value, str):
        return sql_string(value), t
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'", t
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'", t
    if isinstance(value, list):
        if not value:
            return "array()", ListType(ANY)
        return _typed_list(value, t)
    if isinstance(value, dict):
        parts = ", ".join(f"{sql_string(str(k))}, {literal(v)[0]}" for k, v in value.items())
        return f"named_struct({parts})", t
    raise Failed(f"{value!r} has no Spark form", code="E708")


def _typed_list(value: list[Any], t: QType) -> tuple[str, QType]:
    assert isinstance(t, ListType)
    if is_any(t.element):
        raise Failed("a list of different kinds of values has no Spark form", code="E708")
    if isinstance(t.element, RecordType):
        items = []
        for item in value:
            parts = ", ".join(
                f"{sql_string(n)}, CAST({literal((item or {}).get(n))[0]} AS {ddl(f)})" for n, f in t.element.fields
            )
            items.append(f"named_struct({parts})")
        return f"array({', '.join(items)})", t
    return f"array({', '.join(f'CAST({literal(v)[0]} AS {ddl(t.element)})' for v in value)})", t
