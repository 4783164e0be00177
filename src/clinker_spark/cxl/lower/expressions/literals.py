"""Constants as Spark SQL text."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import ANY, Kind, Type, decimal
from clinker_spark.cxl.builtins.physical import physical, widen_sql
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.values import decimal_scale, type_of


def literal_sql(value: Any, t: Type) -> str:
    """A constant of type `t`.

    >>> from clinker_spark.core.types import FLOAT, INT, STRING
    >>> literal_sql(5, INT), literal_sql(None, STRING), literal_sql(1.5, FLOAT)
    ('5L', 'CAST(NULL AS STRING)', '1.5D')
    """
    if value is None:
        return f"CAST(NULL AS {physical(t)})"
    if t.is_dynamic:
        static = static_type(value)
        return widen_sql(literal_sql(value, static), static, ANY)
    match t.kind:
        case Kind.BOOL:
            return "TRUE" if value else "FALSE"
        case Kind.INT:
            return f"{value}L"
        case Kind.FLOAT:
            return _float(float(value))
        case Kind.DECIMAL:
            text = format(value, "f")
            return f"'{text}'" if t.scale is None else f"CAST('{text}' AS DECIMAL(29, {t.scale}))"
        case Kind.STRING:
            return sql_string(value)
        case Kind.DATE:
            return f"DATE'{value.isoformat()}'"
        case Kind.DATETIME:
            return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
        case Kind.ARRAY:
            element = t.element or ANY
            items = ", ".join(literal_sql(v, element) for v in value)
            return f"array({items})" if value else f"CAST(array() AS {physical(t)})"
        case Kind.MAP:
            element = t.element or ANY
            pairs = ", ".join(f"{sql_string(k)}, {literal_sql(v, element)}" for k, v in value.items())
            return f"map({pairs})" if value else f"CAST(map() AS {physical(t)})"
    return "CAST(NULL AS STRING)"


def _float(value: float) -> str:
    if math.isnan(value) or math.isinf(value):
        return f"CAST('{value}' AS DOUBLE)"
    return f"{value!r}D"


def static_type(value: Any) -> Type:
    """The narrowest static type of a Python value; containers hold Any."""
    return decimal(decimal_scale(value)) if isinstance(value, Decimal) else type_of(value)
