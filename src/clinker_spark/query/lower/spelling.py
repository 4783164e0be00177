"""Python values as SQL, and query types as Spark's."""

from __future__ import annotations

from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.query.failures import Failed
from clinker_spark.query.types import ANY, ListType, MapType, QType, RecordType, is_any, type_of_value
from clinker_spark.sql import tree as sql
from clinker_spark.sql.build import call, struct


def spark_type(t: QType) -> sql.Type:
    """The Spark type of a query type.

    >>> from clinker_spark.core.types import INT, STRING
    >>> from clinker_spark.query.types import ListType, record
    >>> from clinker_spark.sql.render import type_text
    >>> type_text(spark_type(ListType(record({"id": INT, "name": STRING}))))
    'ARRAY<STRUCT<`id`: BIGINT, `name`: STRING>>'
    """
    match t:
        case Type(kind=Kind.NULL) | Type(kind=Kind.ANY, dynamic=True):  # the latter: elements of a list that has none
            return sql.Named("VOID")
        case Type(kind=Kind.DECIMAL, scale=scale):
            return sql.Named(f"DECIMAL(38, {scale if scale is not None else 10})")
        case Type() if not is_any(t):
            return sql.Named(physical(t))
        case ListType(element=element):
            return sql.ArrayOf(spark_type(element))
        case RecordType(fields=fields):
            return sql.StructOf(tuple((n, spark_type(f)) for n, f in fields))
        case MapType(key=key, value=value):
            return sql.MapOf(spark_type(key), spark_type(value))
    raise Failed(f"{t:?} has no Spark type", "declare the type, or keep values of one kind in a column", code="E708")


def literal(value: Any) -> tuple[sql.Expr, QType]:
    """A value as SQL, and its type.

    >>> from clinker_spark.sql.render import render
    >>> [str(render(literal(v)[0])) for v in (3, "it's", [{"a": 1}])]  # doctest: +NORMALIZE_WHITESPACE
    ['3', "translate('it~s', '~', chr(39))", "array(named_struct('a', CAST(1 AS BIGINT)))"]
    """
    t = type_of_value(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise Failed(f"the integer {value} does not fit in 64 bits", code="E708")
    if isinstance(value, list):
        return (_typed(value, t) if value else call("array")), t
    if isinstance(value, dict):
        return struct((str(k), literal(v)[0]) for k, v in value.items()), t
    if value is not None and is_any(t):
        raise Failed(f"{value!r} has no Spark form", code="E708")
    return sql.Literal(value), t


def _typed(value: Any, t: QType) -> sql.Expr:
    """A value as one of this type, which it may share with others: in a list all elements have one."""
    if value and isinstance(value, list) and isinstance(t, ListType):
        if t.element == ANY:
            raise Failed("a list of different kinds of values has no Spark form", code="E708")
        return call("array", *(_typed(item, t.element) for item in value))
    if isinstance(value, dict) and isinstance(t, RecordType):
        return struct((name, _typed(value.get(name), field)) for name, field in t.fields)
    return sql.Cast(literal(value)[0], spark_type(t))
