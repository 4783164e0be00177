"""The arithmetic operators, as rows of the builtin table. Their name is their symbol.

Comparisons and the lazy operators (`and`, `or`, `??`) are nodes of the typed tree, not rows: they see
nulls or leave their right side unevaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import DECIMAL, FLOAT, INT, STRING, Type, decimal
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.table import Builtin, Failure, Overload, SqlCall
from clinker_spark.cxl.errors import ErrorKind, Fail

FLOAT_OVERFLOW = "abs({r}) = double('Infinity') AND abs({0}) < double('Infinity') AND abs({1}) < double('Infinity')"
"""When a float operation left the range of floats: NaN is above all in Spark, and so neither equal nor less."""

_MAX_EXACT_PRODUCT_SCALE = 6  # beyond it Spark's decimal product drops digits


def _overflow(operation: str, when: str = "") -> Failure:
    return Failure(ErrorKind.INTEGER_OVERFLOW, f"integer overflow in {operation}", when, value=None)


def _beyond(operation: str) -> Failure:
    """Finite numbers whose result is infinite. An infinity that was read goes on as it is."""
    return Failure(ErrorKind.INTEGER_OVERFLOW, f"float overflow in {operation}", FLOAT_OVERFLOW)


_BY_ZERO = Failure(ErrorKind.DIVISION_BY_ZERO, "division by zero", "{1} = 0 AND {0} IS NOT NULL", 0)


def _checked(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def run(a: int, b: int) -> int:
        result = function(a, b)
        if not values.I64_MIN <= result <= values.I64_MAX:
            raise Fail(ErrorKind.INTEGER_OVERFLOW)
        return result

    return run


def _negate_int(a: int) -> int:
    return _checked(lambda x, _: -x)(a, 0)


def _divide_int(a: int, b: int) -> int:
    if b == 0:
        raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
    return _checked(values.div_trunc)(a, b)


def _modulo_int(a: int, b: int) -> int:
    if b == 0:
        raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
    if a == values.I64_MIN and b == -1:
        raise Fail(ErrorKind.INTEGER_OVERFLOW)
    return values.mod_trunc(a, b)


def _finite(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def run(a: float, b: float) -> float:
        result = function(a, b)
        if math.isinf(result) and math.isfinite(a) and math.isfinite(b):
            raise Fail(ErrorKind.INTEGER_OVERFLOW, a)
        return result

    return run


def _divide_float(a: float, b: float) -> float:
    if b == 0:
        raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
    return _finite(lambda x, y: x / y)(a, b)


def _modulo_float(a: float, b: float) -> float:
    if b == 0 or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


def _guard_zero_decimal(function: Callable[[Decimal, Decimal], Decimal]) -> Callable[[Decimal, Decimal], Decimal]:
    def run(a: Decimal, b: Decimal) -> Decimal:
        if b == 0:
            raise Fail(ErrorKind.DIVISION_BY_ZERO, a)
        return function(a, b)

    return run


def _wider_scale(types: Sequence[Type]) -> Type:
    a, b = types[0].scale, types[1].scale
    return decimal(None if a is None or b is None else max(a, b))


def _product_scale(types: Sequence[Type]) -> Type:
    a, b = types[0].scale, types[1].scale
    if a is None or b is None or a + b > _MAX_EXACT_PRODUCT_SCALE:
        return decimal(None)
    return decimal(a + b)


def _decimal_sql(template: str, rule: Callable[[Sequence[Type]], Type]) -> Callable[[SqlCall], str | None]:
    def sql(call: SqlCall) -> str | None:
        scale = rule(call.types).scale
        # A scale not known before the run has no DECIMAL type to compute in.
        return None if scale is None else f"try_cast({template.format(*call.args)} AS DECIMAL(29, {scale}))"

    return sql


def _int_division(call: SqlCall, operator: str) -> str:
    a, b = call.args
    if _safe_divisor(call.literals):
        return f"({a} {operator} {b})"
    return f"CASE WHEN {b} = 0L OR ({b} = -1L AND {a} = {values.I64_MIN}L) THEN NULL ELSE {a} {operator} {b} END"


def _float_division(call: SqlCall) -> str:
    a, b = call.args
    return f"({a} / {b})" if _safe_divisor(call.literals) else f"({a} / nullif({b}, 0.0D))"


def _safe_divisor(literals: Sequence[Any]) -> bool:
    return isinstance(literals[1], (int, float)) and literals[1] not in (0, -1)


HALF_STEP = 2.0**970
"""Half the distance of the largest floats: less than this cannot carry a sum beyond them."""


def _small_term(literals: Sequence[Any]) -> bool:
    return any(isinstance(x, float) and abs(x) < HALF_STEP for x in literals)


def _no_factor(literals: Sequence[Any]) -> bool:
    return any(isinstance(x, float) and abs(x) <= 1 for x in literals)


def _large_divisor(literals: Sequence[Any]) -> bool:
    return isinstance(literals[1], float) and abs(literals[1]) >= 1


_SCALE_REASON = "a decimal whose scale is only known at run time has no Spark DECIMAL type"
_MIN_BY_MINUS_ONE = f"{{1}} = -1L AND {{0}} = {values.I64_MIN}L"


BUILTINS: tuple[Builtin, ...] = (
    Builtin(
        "+",
        "operator",
        "Adds numbers; joins strings.",
        (
            Overload(
                (INT, INT),
                INT,
                _checked(lambda a, b: a + b),
                "try_add({0}, {1})",
                (_overflow("addition"),),
                vector="arithmetic.add_int",
            ),
            Overload(
                (FLOAT, FLOAT),
                FLOAT,
                _finite(lambda a, b: a + b),
                "({0} + {1})",
                (_beyond("addition"),),
                safe=_small_term,
                vector="arithmetic.add_float",
            ),
            Overload(
                (DECIMAL, DECIMAL),
                _wider_scale,
                values.decimal_add,
                _decimal_sql("try_add({0}, {1})", _wider_scale),
                (_overflow("decimal addition"),),
                python_reason=_SCALE_REASON,
                vector="decimals.add",
            ),
            Overload((STRING, STRING), STRING, lambda a, b: a + b, "concat({0}, {1})", vector="arithmetic.join_texts"),
        ),
        examples=(("1 + 2", "3"), ('"a" + "b"', '"ab"'), ("null + 5", "null")),
    ),
    Builtin(
        "-",
        "operator",
        "Subtracts.",
        (
            Overload(
                (INT, INT),
                INT,
                _checked(lambda a, b: a - b),
                "try_subtract({0}, {1})",
                (_overflow("subtraction"),),
                vector="arithmetic.subtract_int",
            ),
            Overload(
                (FLOAT, FLOAT),
                FLOAT,
                _finite(lambda a, b: a - b),
                "({0} - {1})",
                (_beyond("subtraction"),),
                safe=_small_term,
                vector="arithmetic.subtract_float",
            ),
            Overload(
                (DECIMAL, DECIMAL),
                _wider_scale,
                values.decimal_sub,
                _decimal_sql("try_subtract({0}, {1})", _wider_scale),
                (_overflow("decimal subtraction"),),
                python_reason=_SCALE_REASON,
                vector="decimals.subtract",
            ),
        ),
        examples=(("5 - 2", "3"), ("1.5 - 1", "0.5")),
    ),
    Builtin(
        "*",
        "operator",
        "Multiplies.",
        (
            Overload(
                (INT, INT),
                INT,
                _checked(lambda a, b: a * b),
                "try_multiply({0}, {1})",
                (_overflow("multiplication"),),
                vector="arithmetic.multiply_int",
            ),
            Overload(
                (FLOAT, FLOAT),
                FLOAT,
                _finite(lambda a, b: a * b),
                "({0} * {1})",
                (_beyond("multiplication"),),
                safe=_no_factor,
                vector="arithmetic.multiply_float",
            ),
            Overload(
                (DECIMAL, DECIMAL),
                _product_scale,
                values.decimal_mul,
                _decimal_sql("try_multiply({0}, {1})", _product_scale),
                (_overflow("decimal multiplication"),),
                python_reason=_SCALE_REASON,
                vector="decimals.multiply",
            ),
        ),
        examples=(("6 * 7", "42"), ("2 * 0.5", "1.0")),
    ),
    Builtin(
        "/",
        "operator",
        "Divides. Int by Int truncates toward zero; a zero divisor is an error of the record.",
        (
            Overload(
                (INT, INT),
                INT,
                _divide_int,
                lambda call: _int_division(call, "div"),
                (_BY_ZERO, _overflow("division", _MIN_BY_MINUS_ONE)),
                safe=_safe_divisor,
                vector="arithmetic.divide_int",
            ),
            Overload(
                (FLOAT, FLOAT),
                FLOAT,
                _divide_float,
                _float_division,
                (_BY_ZERO, _beyond("division")),
                safe=_large_divisor,
                vector="arithmetic.divide_float",
            ),
            Overload(
                (DECIMAL, DECIMAL),
                decimal(None),
                _guard_zero_decimal(values.decimal_div),
                None,
                (_BY_ZERO, _overflow("decimal division")),
                python_reason="an exact quotient has as many digits as it needs; Spark's DECIMAL has a fixed scale",
                vector="decimals.divide",
            ),
        ),
        examples=(("10 / 3", "3"), ("-7 / 2", "-3"), ("7.0 / 2", "3.5")),
    ),
    Builtin(
        "%",
        "operator",
        "Remainder, with the sign of the dividend. A float modulo 0.0 is NaN.",
        (
            Overload(
                (INT, INT),
                INT,
                _modulo_int,
                lambda call: _int_division(call, "%"),
                (_BY_ZERO, _overflow("modulo", _MIN_BY_MINUS_ONE)),
                safe=_safe_divisor,
                vector="arithmetic.modulo_int",
            ),
            Overload(
                (FLOAT, FLOAT),
                FLOAT,
                _modulo_float,
                "CASE WHEN {1} = 0.0D AND {0} IS NOT NULL THEN CAST('NaN' AS DOUBLE) ELSE {0} % nullif({1}, 0.0D) END",
                vector="arithmetic.modulo_float",
            ),
            Overload(
                (DECIMAL, DECIMAL),
                _wider_scale,
                _guard_zero_decimal(values.decimal_mod),
                _decimal_sql("({0} % nullif({1}, 0))", _wider_scale),
                (_BY_ZERO, _overflow("decimal modulo")),
                python_reason=_SCALE_REASON,
                vector="decimals.modulo",
            ),
        ),
        examples=(("10 % 3", "1"), ("-7 % 3", "-1")),
    ),
    Builtin(
        "negate",
        "operator",
        "Unary minus. The smallest Int has no negative: that is an overflow.",
        (
            Overload(
                (INT,),
                INT,
                _negate_int,
                "try_subtract(0L, {0})",
                (_overflow("negation"),),
                vector="arithmetic.negate_int",
            ),
            Overload((FLOAT,), FLOAT, lambda a: -a, "(- {0})", vector="arithmetic.negate_float"),
            Overload(
                (DECIMAL,),
                lambda types: decimal(types[0].scale),
                lambda a: a.copy_negate() if a else a,
                lambda call: None if call.types[0].scale is None else f"(- {call.args[0]})",
                python_reason=_SCALE_REASON,
                vector="decimals.negate",
            ),
        ),
        examples=(("-5", "-5"), ("-(2.5)", "-2.5")),
    ),
)
