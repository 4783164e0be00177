"""Grouping keys as SQL, for `distinct`, `group_by` and window partitions.

The same rules for the interpreter are in `cxl/builtins/keys.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl import ir
from clinker_spark.cxl.builtins import physical as ph
from clinker_spark.cxl.builtins.keys import bad_key
from clinker_spark.cxl.builtins.text import sql_text
from clinker_spark.cxl.errors import ErrorKind
from clinker_spark.cxl.lower.errors import failing
from clinker_spark.cxl.lower.lowering import Lowering
from clinker_spark.cxl.lower.plan import Failing, Sql, combine


@dataclass(frozen=True)
class LoweredKey:
    """`key` is what to group by, `shown` the value that a group shows of its first record.

    They are the same text where equal keys always look the same. `failures` includes those of the value itself."""

    key: Sql
    shown: Sql
    failures: tuple[Failing, ...]

    @property
    def looks_differ(self) -> bool:
        """Can two values of one group look different, as 1 and 1.0 do?"""
        return self.key.text != self.shown.text


def lower_key(lowering: Lowering, e: ir.TExpr, statement: str) -> LoweredKey:
    """A value as a key of `statement`; NaN, arrays and maps fail the record."""
    value = lowering.bound(e)
    failures = value.failures
    bad = _bad_sql(value.text, e.type)
    if bad is not None:
        shown_bad = sql_text(value.text, e.type)
        refused = failing(bad, ErrorKind.TYPE_MISMATCH, bad_key(statement), value.level, shown_bad)
        failures = (*failures, refused)
    value = value.bare()
    key = lowering.builder.bind(combine(key_sql(value.text, e.type), [value]))
    shown_sql = _shown_sql(value.text, e.type)
    shown = key if shown_sql is None else lowering.builder.bind(combine(shown_sql, [value]))
    return LoweredKey(key, shown, failures)


def key_sql(x: str, t: Type) -> str:
    """A text that is equal exactly where two values are one key. `x` stands in it many times: pass a column."""
    if t.is_dynamic:
        return _variant_key(x)
    if t.kind in (Kind.ARRAY, Kind.MAP):
        return f"({x} IS NULL)"  # all others have failed
    if t.kind is Kind.FLOAT:
        return f"({x} + 0.0D)"  # -0.0 becomes 0.0
    return _digits_key(x) if _is_digits(t) else x


def partition_sql(x: str, t: Type) -> str | None:
    """The key of a window partition; None: the column itself. No record fails here, so NaN, arrays and maps are
    partitions as Spark makes them: all NaN are one."""
    if t.is_dynamic:
        return _variant_key(f"CAST({x} AS VARIANT)")  # nobody has checked how the DataFrame keeps the column
    return _digits_key(f"CAST({x} AS STRING)") if _is_digits(t) else None


def join_key_sql(x: str, t: Type) -> str:
    """The key of a join: equal exactly where a combine takes two values for equal; null for null, which equals nothing.

    Numbers of different types are different keys here. Spark itself takes -0.0 for 0.0 and NaN for NaN."""
    if t.is_dynamic:
        kind = ph.kind_sql(x)
        return f"CASE WHEN {kind} IS NOT NULL AND NOT is_variant_null({x}) THEN concat({kind}, ':', to_json({x})) END"
    if t.kind in (Kind.ARRAY, Kind.MAP):
        return f"to_json(to_variant_object({x}))"  # the keys of an object are sorted
    return _digits_key(x) if _is_digits(t) else x


def _is_digits(t: Type) -> bool:
    """A decimal without a scale is kept as the text of its digits."""
    return t.kind is Kind.DECIMAL and t.scale is None


def _bad_sql(x: str, t: Type) -> str | None:
    """When a value cannot be a key; None: it always can."""
    if t.is_dynamic:
        kind = ph.kind_sql(x)
        nested = f"{ph.variant_is(kind, Kind.ARRAY)} OR {ph.variant_is(kind, Kind.MAP)}"
        return f"{nested} OR ({ph.variant_is(kind, Kind.FLOAT)} AND isnan({ph.get_sql(x, Type(Kind.FLOAT))}))"
    if t.kind in (Kind.ARRAY, Kind.MAP):
        return f"{x} IS NOT NULL"
    return f"isnan({x})" if t.kind is Kind.FLOAT else None


def _variant_key(x: str) -> str:
    """Numbers by their value, everything else by kind and text; null for null."""
    kind = ph.kind_sql(x)
    number, whole = ph.get_sql(x, Type(Kind.FLOAT)), ph.get_sql(x, Type(Kind.INT))
    # Whole floats are the same key as their Int; as floats, large Ints would be one key with their neighbours.
    like_int = f"{number} = rint({number}) AND {number} >= -9223372036854775808D AND {number} < 9223372036854775808D"
    as_int = f"CAST(try_cast({number} AS BIGINT) AS STRING)"
    return (
        f"CASE WHEN {ph.variant_is(kind, Kind.INT)} THEN CAST({whole} AS STRING) "
        f"WHEN {ph.variant_is(kind, Kind.FLOAT)} THEN CASE WHEN {like_int} THEN {as_int} "
        f"ELSE CAST({number} AS STRING) END "
        f"ELSE concat({kind}, try_variant_get({x}, '$', 'string')) END"
    )


def _digits_key(x: str) -> str:
    """1.5 and 1.50 are one, and so are 0 and -0."""
    short = f"IF(contains({x}, '.'), rtrim('.', rtrim('0', {x})), {x})"
    return f"regexp_replace({short}, '^-0$', '0')"


def _shown_sql(x: str, t: Type) -> str | None:
    """What a group shows of a value; None: the key itself."""
    if not t.is_dynamic:
        return x if _is_digits(t) or t.kind in (Kind.ARRAY, Kind.MAP) else None
    is_float = ph.variant_is(ph.kind_sql(x), Kind.FLOAT, exact=True)
    zero = f"{is_float} AND {ph.get_sql(x, Type(Kind.FLOAT))} = 0.0D"
    return f"CASE WHEN {zero} THEN CAST(0.0D AS VARIANT) ELSE {x} END"
