"""Values of the interpreter in and out of Spark rows (`createDataFrame`, `collect`)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pyspark.sql.types import VariantVal

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.spark.columns.variants import decode, encode


def to_row(value: Any, t: Type) -> Any:
    """A value as `createDataFrame` wants it for the physical type of `t`."""
    if value is None:
        return None
    if t.is_dynamic:
        return VariantVal(*encode(value))
    if t.kind is Kind.ARRAY:
        return [to_row(v, t.element or ANY) for v in value]
    if t.kind is Kind.MAP:
        return {k: to_row(v, t.element or ANY) for k, v in value.items()}
    if t.kind is Kind.DECIMAL and t.scale is None:
        return format(value, "f")
    return value


def from_row(value: Any, t: Type) -> Any:
    """A collected value as the interpreter has it."""
    if value is None:
        return None
    if isinstance(value, VariantVal):
        return decode(bytes(value.value), bytes(value.metadata))
    if t.kind is Kind.ARRAY:
        return [from_row(v, t.element or ANY) for v in value]
    if t.kind is Kind.MAP:
        return {k: from_row(v, t.element or ANY) for k, v in value.items()}
    if t.kind is Kind.DECIMAL:
        return value if isinstance(value, Decimal) else Decimal(value)
    return value
