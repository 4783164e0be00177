"""How a value reads as text (`to_string`, `concat`, `join`, CSV fields), in Python and as Spark SQL.

>>> to_text(3.0), to_text(1e23), to_text(5e-7), to_text(True), to_text([1, "a", None])
('3', '100000000000000000000000', '0.0000005', 'true', '[1,"a",null]')

**Floats** are the hard part. CXL writes the shortest digits that read back as the same float, without an
exponent. `cast(double AS STRING)` writes an exponent outside of 1e-3..1e7 and, on Java before 19, more
digits than needed from 2^53 upward and for subnormal numbers. Between 1e-30 and 2^53 its digits were right for
every one of several million floats tried, so that range costs a cast; the rest is repaired digit by digit.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.values import decimal_text, kind_of

# ---------------------------------------------------------------- Python


def to_text(value: Any) -> str:
    """CXL's `to_string`; None is the empty string, arrays and maps are compact JSON."""
    kind = kind_of(value)
    if kind is Kind.STRING:
        return str(value)
    if kind is Kind.NULL:
        return ""
    if kind is Kind.BOOL:
        return "true" if value else "false"
    if kind is Kind.INT:
        return str(int(value))
    if kind is Kind.FLOAT:
        return float_text(value)
    if kind is Kind.DECIMAL:
        return decimal_text(value)
    if kind is Kind.DATE:
        return str(value.isoformat())
    if kind is Kind.DATETIME:
        return datetime_text(value)
    return json_text(value)


def float_text(value: float) -> str:
    """Shortest round trip, no exponent, no trailing `.0`.

    >>> [float_text(v) for v in (-0.0, 0.1, 1e16, 1e-10, float("inf"), float("nan"))]
    ['-0', '0.1', '10000000000000000', '0.0000000001', 'inf', 'NaN']
    """
    text = repr(value)
    if text[-1] in "fn":  # inf, -inf, nan
        return "NaN" if text == "nan" else text
    if "e" in text:
        text = format(Decimal(text), "f")
    return text.removesuffix(".0")


def datetime_text(value: dt.datetime, between: str = " ") -> str:
    """A fraction is written with 3 or 6 digits, and not at all if it is zero: `2024-03-15 14:30:00.500`."""
    text = value.replace(tzinfo=None).isoformat(between)
    return text if value.microsecond % 1000 or not value.microsecond else text[:-3]


_ESCAPES = {
    **{code: f"\\u{code:04X}" for code in range(0x20)},
    **{ord(char): "\\" + name for char, name in zip('"\\\b\f\n\r\t', '"\\bfnrt', strict=True)},
}


def json_text(value: Any) -> str:
    """Compact JSON as Spark's `to_json` writes it; decimals, dates and datetimes are strings.

    >>> json_text({"a": [1.0, 1e10, None], "b": Decimal("1.50")})
    '{"a":[1.0,1.0E10,null],"b":"1.50"}'
    """
    if value is None:
        return "null"
    if isinstance(value, bool | int):
        return to_text(value)
    if isinstance(value, float):
        return _json_float(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quote(str(key))}:{json_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(json_text(item) for item in value) + "]"
    return _quote(to_text(value))


def _quote(text: str) -> str:
    return '"' + text.translate(_ESCAPES) + '"'


def _json_float(value: float) -> str:
    if not math.isfinite(value):
        return {"inf": '"Infinity"', "-inf": '"-Infinity"'}.get(repr(value), '"NaN"')
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    mantissa = "".join(map(str, digits))
    point = len(digits) - 1 + int(exponent)
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{point}"


# ---------------------------------------------------------------- Spark SQL


def sql_text(sql: str, type: Type) -> str:
    """The text of a SQL expression of static type `type`; NULL stays NULL.

    `sql` stands many times in the answer for floats and dynamic types: pass a column, not a long expression.
    """
    if type.is_dynamic:
        return _sql_variant_text(sql)
    if type.kind is Kind.FLOAT:
        return sql_float_text(sql)
    if type.kind is Kind.STRING:
        return sql
    if type.kind is Kind.DECIMAL:
        return sql if type.scale is None else sql_decimal_text(sql, type.scale)
    if type.kind in (Kind.ARRAY, Kind.MAP):
        return f"to_json({_json_ready(sql, type)})"
    if type.kind is Kind.DATETIME:
        return sql_datetime_text(sql)
    return f"CAST({sql} AS STRING)"


_FIRST, _LAST = "TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
"""The times of which the year has four digits."""


def sql_datetime_text(sql: str, between: str = " ") -> str:
    """The text of a TIMESTAMP_NTZ as `datetime_text` has it; `sql` is repeated. Years beyond 9999 have more digits.

    Spark leaves out zeros at the end of a fraction. Where its text has the length of one with none, three or six
    digits, it is right as it is: to look at it twice would take half as long again as to make it."""
    text = f"CAST({sql} AS STRING)"
    right = f"octet_length({text}) IN (19, 23, 26) AND {sql} BETWEEN {_FIRST} AND {_LAST}"
    point = f"instr({text}, '.')"
    full = f"rpad({text}, {point} + IF(length({text}) - {point} <= 3, 3, 6), '0')"
    if between != " ":
        text, full = f"replace({text}, ' ', '{between}')", f"replace({full}, ' ', '{between}')"
    return f"CASE WHEN {right} THEN {text} ELSE CASE WHEN {point} = 0 THEN {text} ELSE {full} END END"


def sql_let(value: str, name: str, body: str) -> str:
    """`body` with the lambda variable `name` bound to `value`: the only way to name a value inside an expression."""
    return f"get(transform(array({value}), {name} -> {body}), 0)"


def sql_decimal_text(sql: str, scale: int) -> str:
    """Plain digits of a DECIMAL(p, scale)."""
    plain = f"CAST({sql} AS STRING)"
    if scale <= 6:
        return plain
    # Without ANSI mode the cast writes 1.00E-8 below a millionth. One plus it has no exponent.
    tiny = f"concat(IF({sql} < 0, '-0', '0'), substring(CAST(abs({sql}) + 1BD AS STRING), 2))"
    return f"CASE WHEN abs({sql}) < 0.000001BD THEN {tiny} ELSE {plain} END"


_WHOLE = "9007199254740992D"  # 2^53: below it every whole number is its own shortest text


def sql_float_text(x: str) -> str:
    """The text of a DOUBLE; `x` is repeated.

    Only the common cases are compiled by Spark. The rare ones stand in a lambda that Spark interprets: with them in
    the generated code, a row with a few floats has methods that are too long for the JVM to compile. That is
    zip_with; transform and aggregate generate code (measured, four floats: 2.7 s, with transform 3.6 s).
    """
    size = f"abs({x})"
    rare = f"get(zip_with(array({x}), array(1), (_cxl_r, _cxl_1) -> {_rare('_cxl_r')}), 0)"
    return (
        f"CASE WHEN {size} < {_WHOLE} AND rint({x}) = {x} AND {x} != 0D THEN CAST(CAST({x} AS BIGINT) AS STRING) "
        f"WHEN {size} >= 1E-3D AND {size} < 1E7D THEN CAST({x} AS STRING) "
        f"WHEN {x} IS NULL THEN NULL ELSE {rare} END"
    )


def _rare(x: str) -> str:
    size = f"abs({x})"
    return (
        f"CASE WHEN {x} = 0D THEN IF(CAST({x} AS STRING) = '-0.0', '-0', '0') "
        # a cast to decimal takes the digits of the cast to string
        f"WHEN {size} >= 1E-6D AND {size} < {_WHOLE} THEN rtrim('0', CAST(try_cast({x} AS DECIMAL(38, 22)) AS STRING)) "
        f"WHEN isnan({x}) THEN 'NaN' "
        f"WHEN {size} = double('Infinity') THEN IF({x} > 0D, 'inf', '-inf') "
        f"ELSE concat(IF({x} < 0D, '-', ''), {sql_let(size, '_cxl_f', _repaired('_cxl_f'))}) END"
    )


def _repaired(x: str) -> str:
    i64 = "9223372036854775808D"
    return f"CASE WHEN {x} >= {_WHOLE} AND {x} < {i64} THEN {_repaired_whole(x)} ELSE {_repaired_extreme(x)} END"


def _repaired_whole(x: str) -> str:
    """2^53 to 2^63: round the exact integer to 15, 16 or 17 digits, whichever first reads back as the float."""

    def rounded(unit: str) -> str:
        return f"try_add(_cxl_n, {unit} div 2L) div {unit} * {unit}"

    unit = f"CASE WHEN {x} < 1E16D THEN 10L WHEN {x} < 1E17D THEN 100L WHEN {x} < 1E18D THEN 1000L ELSE 10000L END"
    finer, finest = "(_cxl_u div 10L)", "greatest(1L, _cxl_u div 100L)"
    choice = (
        f"CASE WHEN CAST({rounded('_cxl_u')} AS DOUBLE) = {x} THEN {rounded('_cxl_u')} "
        f"WHEN CAST({rounded(finer)} AS DOUBLE) = {x} THEN {rounded(finer)} ELSE {rounded(finest)} END"
    )
    bound = sql_let(f"try_cast({x} AS BIGINT)", "_cxl_n", sql_let(unit, "_cxl_u", choice))
    return f"CAST({bound} AS STRING)"


def _repaired_extreme(x: str) -> str:
    """Below a millionth and from 2^63: the first of 15, 16, 17 digits that reads back, its exponent written out.

    Subnormal numbers have fewer digits: they end at the place of 1e-323 if that reads back, else at 1e-324.
    A power of two has a lopsided neighbourhood, in which 16 digits rounded up may do although the nearest do not.
    """

    def same(text: str) -> str:
        return f"try_cast({text} AS DOUBLE) = {x}"

    def digits(form: str) -> str:
        return f"format_string({form}, {x})"

    place = f"try_cast(substring_index(CAST({x} AS STRING), 'E', -1) AS INT)"
    coarse = f"concat('%.', CAST(greatest(0, {place} + 323) AS STRING), 'e')"
    fine = f"concat('%.', CAST({place} + 324 AS STRING), 'e')"
    longest = digits("'%.16e'")
    up = f"try_cast(substring({longest}, 1, 17) AS DECIMAL(16, 15)) + 0.000000000000001BD"
    after = f"concat(CAST({up} AS STRING), substring({longest}, 19))"
    text = (
        f"CASE WHEN {x} < 2.3E-308D THEN {digits(f'IF({same(digits(coarse))}, {coarse}, {fine})')} "
        + "".join(f"WHEN {same(t)} THEN {t} " for t in (digits("'%.14e'"), digits("'%.15e'"), after))
        + f"ELSE {longest} END"
    )
    mantissa = "replace(substring_index(_cxl_t, 'e', 1), '.', '')"
    exponent = "try_cast(substring_index(_cxl_t, 'e', -1) AS INT)"
    small = f"concat('0.', repeat('0', -1 - {exponent}), rtrim('0', {mantissa}))"
    return sql_let(text, "_cxl_t", f"IF({x} < 1D, {small}, rpad({mantissa}, {exponent} + 1, '0'))")


VARIANT_FLOAT = "({0} IN ('DOUBLE', 'FLOAT') OR {0} LIKE 'DECIMAL%')"
"""Over a `schema_of_variant`: is the value a Float? (JSON readers keep 1.5 as a decimal.)"""


def _sql_variant_text(sql: str) -> str:
    is_float = VARIANT_FLOAT.format(f"schema_of_variant({sql})")
    as_float = sql_let(f"try_variant_get({sql}, '$', 'double')", "_cxl_v", sql_float_text("_cxl_v"))
    as_time = sql_let(f"try_variant_get({sql}, '$', 'timestamp_ntz')", "_cxl_v", sql_datetime_text("_cxl_v"))
    # as a string a scalar is what CXL writes, an array or object is JSON, the variant null is NULL
    return (
        f"CASE WHEN {is_float} THEN {as_float} WHEN schema_of_variant({sql}) = 'TIMESTAMP_NTZ' THEN {as_time} "
        f"ELSE try_variant_get({sql}, '$', 'string') END"
    )


def _json_ready(sql: str, type: Type, depth: int = 0) -> str:
    """`sql` with what `to_json` would write otherwise (decimals, datetimes) made strings."""
    if not _needs_text(type):
        return sql
    if type.kind not in (Kind.ARRAY, Kind.MAP) or type.element is None:
        return sql_text(sql, type)
    item = _json_ready(f"_cxl_e{depth}", type.element, depth + 1)
    if type.kind is Kind.ARRAY:
        return f"transform({sql}, _cxl_e{depth} -> {item})"
    return f"transform_values({sql}, (_cxl_k{depth}, _cxl_e{depth}) -> {item})"


def _needs_text(type: Type) -> bool:
    if type.is_dynamic:
        return False
    if type.kind in (Kind.ARRAY, Kind.MAP):
        return type.element is not None and _needs_text(type.element)
    return type.kind in (Kind.DECIMAL, Kind.DATETIME)
