"""Numbers read from text, strictly: in Python, and as Spark SQL templates over `{0}`.

>>> text_to_int("+5"), text_to_int(" 5"), text_to_float(".5"), text_to_decimal("1.50e1")
(5, None, 0.5, Decimal('15.0'))
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

from clinker_spark.core.types import MAX_SCALE
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.table import SqlCall
from clinker_spark.cxl.builtins.text import sql_let
from clinker_spark.cxl.errors import Fail

_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(
    r"[+-]?(?:inf|infinity|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE | re.ASCII
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")


def text_to_int(text: str) -> int | None:
    if not _INT.fullmatch(text):
        return None
    if len(text.lstrip("+-0")) > 19:  # Python refuses to read thousands of digits
        return None
    value = int(text)
    return value if values.I64_MIN <= value <= values.I64_MAX else None


# A cast trims blanks and control characters, so both ends must be of the number.
TEXT_TO_INT = (
    "CASE WHEN {0} >= '+' AND {0} < ':' AND right({0}, 1) BETWEEN '0' AND '9' THEN try_cast({0} AS BIGINT) END"
)


def text_to_float(text: str) -> float | None:
    """Rust's float syntax: `1e5`, `.5`, `5.`, `+5`, and inf, infinity, nan in any case. A number beyond all floats is
    none of them: only a written infinity is infinite."""
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    return None if math.isinf(value) and text[-1] in "0123456789." else value


# A cast reads `1.5d` and `0x1p3` too: no letter at the end, no x anywhere.
TEXT_TO_FLOAT = (
    "CASE WHEN {0} >= '+' AND {0} < ':' AND right({0}, 1) BETWEEN '.' AND '9' "
    "THEN IF(contains({0}, 'x') OR contains({0}, 'X') OR abs(⟦try_cast({0} AS DOUBLE)⟧) = double('Infinity'), "
    "NULL, ⟦try_cast({0} AS DOUBLE)⟧) "
    "WHEN lower({0}) IN ('inf', '+inf', 'infinity', '+infinity') THEN double('Infinity') "
    "WHEN lower({0}) IN ('-inf', '-infinity') THEN double('-Infinity') "
    "WHEN lower({0}) IN ('nan', '+nan', '-nan') THEN double('NaN') END"
)


def text_to_decimal(text: str) -> Decimal | None:
    """The number exactly as written, its scale included; None when it needs more than 29 digits."""
    if not _DECIMAL.fullmatch(text):
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if values.decimal_scale(value) > MAX_SCALE or (value and value.adjusted() >= values.DECIMAL_DIGITS):
        return None
    try:
        return values.decimal_fit(value)
    except Fail:
        return None


def text_to_decimal_sql(call: SqlCall) -> str:
    """Digits in the plain form of `decimal_text`. The usual spelling stays as it is, others are rebuilt."""
    x = call.args[0]
    usual = "^-?(0|[1-9][0-9]{0,28})([.][0-9]{1,28})?(?![^ ]| )"
    number = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})?(?![^ ]| )"
    plain = f"CASE WHEN {x} RLIKE '^-[0.]+(?![^ ]| )' THEN substring({x}, 2) ELSE {x} END"
    return (
        f"CASE WHEN {x} RLIKE '{usual}' AND length(translate({x}, '-.', '')) <= "
        f"{values.DECIMAL_DIGITS} THEN {plain} "
        f"WHEN {x} RLIKE '{number}' THEN {sql_let(f'upper({x})', '_cxl_s', _rebuilt_decimal('_cxl_s'))} END"
    )


def _rebuilt_decimal(s: str) -> str:
    """Any spelling of a number: its digits without leading zeros, and how many of them stand after the point."""
    mantissa = f"ltrim('+-', substring_index({s}, 'E', 1))"
    exponent = f"IF(contains({s}, 'E'), try_cast(substring_index({s}, 'E', -1) AS INT), 0)"
    fraction = f"IF(contains({s}, '.'), length(substring_index(substring_index({s}, 'E', 1), '.', -1)), 0)"
    padded = "lpad(_cxl_m, greatest(length(_cxl_m), _cxl_p + 1), '0')"
    split = "concat(left(_cxl_w, length(_cxl_w) - _cxl_p), '.', right(_cxl_w, _cxl_p))"
    shown = (
        "CASE WHEN _cxl_p <= 0 THEN IF(_cxl_m = '', '0', concat(_cxl_m, repeat('0', -_cxl_p))) "
        f"ELSE {sql_let(padded, '_cxl_w', split)} END"
    )
    most = values.DECIMAL_DIGITS
    fits = f"_cxl_p <= {MAX_SCALE} AND (_cxl_m = '' OR length(_cxl_m) - least(_cxl_p, 0) <= {most})"
    sign = f"IF({s} LIKE '-%' AND _cxl_m <> '', '-', '')"
    body = f"CASE WHEN {fits} THEN concat({sign}, {shown}) END"
    digits = f"ltrim('0', replace({mantissa}, '.', ''))"
    return sql_let(digits, "_cxl_m", sql_let(f"{fraction} - {exponent}", "_cxl_p", body))


def float_to_decimal(value: float) -> Decimal | None:
    """The float's exact value, as far as 29 digits and 28 places go."""
    if not math.isfinite(value):
        return None
    exact = Decimal(value)
    places = min(values.decimal_scale(exact), MAX_SCALE, values.DECIMAL_DIGITS - 1 - max(exact.adjusted(), 0))
    if places < 0:
        return None
    try:
        return values.decimal_fit(exact, places)
    except Fail:  # rounding up added a digit
        return values.decimal_fit(exact, places - 1) if places else None
