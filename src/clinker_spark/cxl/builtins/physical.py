"""How CXL types are kept on Spark, and the SQL that moves a value from one representation to another.

The interpreter's side of the same moves stands beside it (`widen_value`, `narrow_value`), so that the two
engines cannot drift: a decimal becomes a Float and the keys of a map come in sorted order when they enter
a dynamic value, because that is what a VARIANT keeps.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import ANY, Kind, Type
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.text import sql_text

_SCALARS = {
    Kind.NULL: "STRING",
    Kind.BOOL: "BOOLEAN",
    Kind.INT: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.STRING: "STRING",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP_NTZ",
}

# What schema_of_variant says of the variants that count as a kind.
_VARIANT_TEST = {
    Kind.BOOL: "{kind} = 'BOOLEAN'",
    Kind.INT: "{kind} = 'BIGINT'",
    Kind.FLOAT: "({kind} IN ('DOUBLE', 'BIGINT', 'FLOAT') OR startswith({kind}, 'DECIMAL'))",
    Kind.STRING: "{kind} = 'STRING'",
    Kind.DATE: "{kind} = 'DATE'",
    Kind.DATETIME: "{kind} = 'TIMESTAMP_NTZ'",
    Kind.ARRAY: "startswith({kind}, 'ARRAY')",
    Kind.MAP: "startswith({kind}, 'OBJECT')",
}
_EXACT_FLOAT = "({kind} IN ('DOUBLE', 'FLOAT') OR startswith({kind}, 'DECIMAL'))"


def physical(t: Type) -> str:
    """The Spark SQL type of a CXL type.

    >>> from clinker_spark.core.types import ANY, array_of, decimal, INT
    >>> physical(array_of(INT)), physical(decimal(2)), physical(decimal(None)), physical(ANY)
    ('ARRAY<BIGINT>', 'DECIMAL(29, 2)', 'STRING', 'VARIANT')
    """
    if t.is_dynamic:
        return "VARIANT"
    if t.kind is Kind.DECIMAL:
        return "STRING" if t.scale is None else f"DECIMAL(29, {t.scale})"
    if t.kind is Kind.ARRAY:
        return f"ARRAY<{physical(t.element or ANY)}>"
    if t.kind is Kind.MAP:
        return f"MAP<STRING, {physical(t.element or ANY)}>"
    return _SCALARS[t.kind]


def same_representation(a: Type, b: Type) -> bool:
    """May a value of type `a` stand where `b` is expected, as it is?"""
    if a.kind is Kind.NULL and b.kind is not Kind.NULL:
        return False
    text_and_digits = {a.kind, b.kind} == {Kind.STRING, Kind.DECIMAL}
    return physical(a) == physical(b) and not text_and_digits


def is_null_sql(sql: str, t: Type) -> str:
    """A condition that is never null itself."""
    return f"({sql} IS NULL OR is_variant_null({sql}))" if t.is_dynamic else f"({sql} IS NULL)"


def kind_sql(sql: str) -> str:
    """The run-time kind of a VARIANT, as text for `variant_is`."""
    return f"schema_of_variant({sql})"


def variant_is(kind_text: str, kind: Kind, *, exact: bool = False) -> str:
    """Does this `kind_sql` text stand for a value of `kind`? An Int also passes as Float unless `exact`."""
    if exact and kind is Kind.FLOAT:
        return _EXACT_FLOAT.format(kind=kind_text)
    return _VARIANT_TEST[kind].format(kind=kind_text)


def get_sql(sql: str, t: Type) -> str:
    """The content of a VARIANT already known to be of type `t`; never throws, whatever it holds."""
    if t.kind is Kind.ARRAY:
        array = f"try_cast({sql} AS ARRAY<VARIANT>)"
        return widen_elements(array, t, narrow=True)
    if t.kind is Kind.MAP:
        return widen_elements(f"try_cast({sql} AS MAP<STRING, VARIANT>)", t, narrow=True)
    if t.kind is Kind.DECIMAL:
        return f"try_cast(try_variant_get({sql}, '$', 'bigint') AS {physical(t)})"
    return f"try_variant_get({sql}, '$', '{physical(t).lower()}')"


def widen_elements(sql: str, t: Type, *, narrow: bool) -> str:
    element = t.element or ANY
    if not narrow or element.is_dynamic:
        return sql
    if t.kind is Kind.ARRAY:
        return f"transform({sql}, cxl_e -> {narrow_sql('cxl_e', element)})"
    return f"transform_values({sql}, (cxl_k, cxl_e) -> {narrow_sql('cxl_e', element)})"


def narrow_sql(sql: str, to: Type) -> str:
    """A VARIANT as a static type, null when it holds something else. `sql` is used twice."""
    if to.kind is Kind.NULL:
        return "CAST(NULL AS STRING)"
    kind = Kind.INT if to.kind is Kind.DECIMAL else to.kind
    return f"CASE WHEN {variant_is(kind_sql(sql), kind)} THEN {get_sql(sql, to)} END"


def widen_sql(sql: str, a: Type, b: Type) -> str:
    """A value of static type `a` in the representation of the wider type `b`."""
    if a.kind is Kind.NULL and not a.is_dynamic:
        return f"CAST(NULL AS {physical(b)})"
    if same_representation(a, b):
        return sql
    if b.is_dynamic:
        return _to_variant(sql, a)
    if a.kind is Kind.ARRAY:
        return f"transform({sql}, cxl_e -> {widen_sql('cxl_e', a.element or ANY, b.element or ANY)})"
    if a.kind is Kind.MAP:
        return f"transform_values({sql}, (cxl_k, cxl_e) -> {widen_sql('cxl_e', a.element or ANY, b.element or ANY)})"
    if physical(b) == "STRING":  # digits of a decimal
        return sql_text(sql, a)
    if a.kind is Kind.INT and b.kind is Kind.FLOAT:
        return f"CAST({sql} AS DOUBLE)"
    return f"try_cast({sql} AS {physical(b)})"


def _to_variant(sql: str, a: Type) -> str:
    if a.is_dynamic:
        return sql
    if a.kind is Kind.DECIMAL:
        return f"CAST(CAST({sql} AS DOUBLE) AS VARIANT)"
    element = a.element or ANY
    if a.kind is Kind.ARRAY:
        inner = sql if element.is_dynamic else f"transform({sql}, cxl_e -> {_to_variant('cxl_e', element)})"
        return f"CAST({inner} AS VARIANT)"
    if a.kind is Kind.MAP:
        inner = (
            sql if element.is_dynamic else f"transform_values({sql}, (cxl_k, cxl_e) -> {_to_variant('cxl_e', element)})"
        )
        return f"to_variant_object({inner})"
    return f"CAST({sql} AS VARIANT)"


# ------------------------------------------------- the interpreter's side of the same moves


def to_dynamic(value: Any) -> Any:
    """A value as a dynamic value keeps it."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [to_dynamic(v) for v in value]
    if isinstance(value, dict):
        return {key: to_dynamic(value[key]) for key in sorted(value)}
    return value


def widen_value(value: Any, a: Type, b: Type) -> Any:
    """`widen_sql` for a Python value."""
    if value is None:
        return None
    if b.is_dynamic:
        return value if a.is_dynamic else to_dynamic(value)
    if b.kind is Kind.FLOAT:
        return float(value)
    if b.kind is Kind.INT and isinstance(value, float):  # an argument that counts something: truncated
        whole = int(value) if math.isfinite(value) else values.I64_MAX + 1
        return whole if values.I64_MIN <= whole <= values.I64_MAX else None
    if b.kind is Kind.DECIMAL:
        number = value if isinstance(value, Decimal) else Decimal(value)
        return number if b.scale is None else values.decimal_fit(number, b.scale)
    if b.kind is Kind.ARRAY:
        return [widen_value(v, a.element or ANY, b.element or ANY) for v in value]
    if b.kind is Kind.MAP:
        return {k: widen_value(v, a.element or ANY, b.element or ANY) for k, v in value.items()}
    return value


def narrow_value(value: Any, to: Type) -> Any:
    """`narrow_sql` for a Python value."""
    if value is None:
        return None
    kind = values.kind_of(value)
    if to.kind is Kind.FLOAT and kind is Kind.INT:
        return float(value)
    if to.kind is Kind.DECIMAL and kind is Kind.INT:
        return widen_value(value, Type(Kind.INT), to)
    if kind is not to.kind:
        return None
    if kind is Kind.ARRAY and not (to.element or ANY).is_dynamic:
        return [narrow_value(v, to.element or ANY) for v in value]
    if kind is Kind.MAP and not (to.element or ANY).is_dynamic:
        return {k: narrow_value(v, to.element or ANY) for k, v in value.items()}
    return value
