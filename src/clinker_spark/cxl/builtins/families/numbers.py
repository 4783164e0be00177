"""The methods of numbers: rounding, sign, bounds. `min`, `max` and `clamp` take whatever can be ordered."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from clinker_spark.core.types import DATE, DATETIME, DECIMAL, FLOAT, INT, STRING, Kind, Type, decimal
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Nulls, Overload, SqlCall
from clinker_spark.cxl.errors import ErrorKind

_SCALE_REASON = "no Spark DECIMAL type holds decimals of a scale known only at run time, or of scales too far apart"
_OVERFLOW = Failure(ErrorKind.INTEGER_OVERFLOW, "integer overflow in absolute value")
_DIGITS = Failure(ErrorKind.INTEGER_OVERFLOW, f"decimal overflow: more than {values.DECIMAL_DIGITS} digits")

# ---------------------------------------------------------------- abs, ceil, floor


def saturating_sql(x: str, convert: str) -> str:
    """A DOUBLE as BIGINT by `convert`, which must not see what does not fit: bounds beyond i64, 0 for NaN."""
    return (
        f"CASE WHEN abs({x}) < 9223372036854775808D THEN {convert} WHEN isnan({x}) THEN 0L "
        f"WHEN {x} > 0D THEN {values.I64_MAX}L WHEN {x} < 0D THEN {values.I64_MIN}L END"
    )


def _decimal_abs_sql(call: SqlCall) -> str:
    x = call.args[0]
    return f"ltrim('-', {x})" if call.types[0].scale is None else f"abs({x})"


def _decimal_whole(rounding: str) -> Callable[[Decimal], Decimal]:
    return lambda x: values.decimal_fit(x.to_integral_value(rounding=rounding), 0)


def _decimal_whole_sql(function: str) -> Callable[[SqlCall], str]:
    def sql(call: SqlCall) -> str:
        x = call.args[0]
        if call.types[0].scale is not None:
            return f"CAST({function}({x}) AS DECIMAL(29, 0))"
        # Digits of any scale: the whole part, one step further when a fraction was cut off on that side.
        whole = f"try_cast(substring_index({x}, '.', 1) AS DECIMAL(28, 0))"
        sign, step = ("NOT LIKE", "+ 1BD") if function == "ceil" else ("LIKE", "- 1BD")
        cut = f"{x} {sign} '-%' AND {x} RLIKE '[.][0-9]*[1-9]'"
        exact = f"try_cast(substring_index({x}, '.', 1) AS DECIMAL(29, 0))"
        return f"CASE WHEN {cut} THEN CAST({whole} {step} AS DECIMAL(29, 0)) ELSE {exact} END"

    return sql


def _whole(name: str, doc: str, function: Callable[[float], float], rounding: str, examples: Any) -> Builtin:
    def run(x: float) -> int:
        return values.float_to_int(function(x) if math.isfinite(x) else x)

    return Builtin(
        name,
        "number",
        doc,
        (
            Overload((INT,), INT, lambda x: x, "{0}", vector="strings.itself"),
            Overload((FLOAT,), INT, run, saturating_sql("{0}", f"{name}({{0}})"), vector=f"numbers.{name}"),
            Overload(
                (DECIMAL,), decimal(0), _decimal_whole(rounding), _decimal_whole_sql(name), vector=f"decimals.{name}"
            ),
        ),
        examples=examples,
    )


# ---------------------------------------------------------------- round


def round_float(x: float, places: int = 0) -> float:
    """Half away from zero, by way of x * 10^places; x itself when that leaves the range of floats.

    >>> round_float(2.5), round_float(-0.4), round_float(1250.0, -2), round_float(1e300, 300)
    (3.0, -0.0, 1300.0, 1e+300)
    """
    power = float(f"1e{abs(places)}")
    scaled = x * power if places >= 0 else x / power
    if not math.isfinite(scaled):
        return x
    whole = math.trunc(scaled)
    if abs(scaled - whole) >= 0.5:
        whole += 1 if scaled > 0 else -1
    rounded = math.copysign(float(whole), scaled)
    result = rounded / power if places >= 0 else rounded * power
    return result if math.isfinite(result) else x


def _round_float_sql(call: SqlCall) -> str:
    x = call.args[0]
    places = 0 if len(call.args) == 1 else call.literal(1)
    if places is None:
        return "CAST(NULL AS DOUBLE)"
    if places is NOT_LITERAL:
        power = f"try_cast(concat('1E', ltrim('-', CAST({call.args[1]} AS STRING))) AS DOUBLE)"
        up, down = f"{x} * {power}", f"{x} / {power}"
        n = call.args[1]
        scaled = f"IF({n} >= 0L, {up}, {down})"
        near = _half_away_sql(scaled)
        result = f"IF({n} >= 0L, {near} / {power}, {near} * {power})"
        null = f"WHEN {n} IS NULL THEN NULL "
    else:
        if abs(places) > 308:  # 10^places is no float
            return x
        power = f"1E{abs(places)}D"
        scaled = x if places == 0 else f"({x} * {power})" if places > 0 else f"({x} / {power})"
        near = _half_away_sql(scaled)
        result = near if places == 0 else f"({near} / {power})" if places > 0 else f"({near} * {power})"
        null = ""
        if places == 0:  # NaN and infinities are their own rint
            return near
    finite = f"abs({scaled}) < double('Infinity')"
    if places is not NOT_LITERAL and places > 0:
        return f"CASE WHEN {finite} THEN {result} ELSE {x} END"
    return f"CASE {null}WHEN {finite} AND abs({result}) < double('Infinity') THEN {result} ELSE {x} END"


def _half_away_sql(y: str) -> str:
    """rint() is exact but takes halves to even: move those that went toward zero."""
    return (
        f"CASE WHEN {y} > 0D AND {y} - rint({y}) = 0.5D THEN rint({y}) + 1D "
        f"WHEN {y} < 0D AND {y} - rint({y}) = -0.5D THEN rint({y}) - 1D ELSE rint({y}) END"
    )


def round_decimal(x: Decimal, places: int = 0) -> Decimal:
    """Half to even. The scale becomes `places` unless it is smaller already; negative places leave scale 0."""
    scale = values.decimal_scale(x)
    if places >= scale:
        return x
    if places >= 0:
        return values.decimal_fit(x, places)
    return values.decimal_fit(values.decimal_at(x, max(places, -values.DECIMAL_DIGITS - 1)), 0)


class _RoundedScale:
    """The scale of a rounded decimal: known when the number of places is."""

    def __init__(self, places: int | None) -> None:
        self.places = places

    def __call__(self, types: Sequence[Type]) -> Type:
        return self.with_literals(types, [NOT_LITERAL] * len(types))

    def with_literals(self, types: Sequence[Type], literals: Sequence[Any]) -> Type:
        places = literals[1] if len(literals) > 1 else self.places
        scale = types[0].scale
        if places is NOT_LITERAL or places is None or scale is None:
            return decimal(None)
        return decimal(max(0, min(places, scale)))


def _round_decimal_sql(call: SqlCall) -> str | None:
    places = 0 if len(call.args) == 1 else call.literal(1)
    scale = call.types[0].scale
    if places is NOT_LITERAL or scale is None:
        return None
    if places is None:
        return "CAST(NULL AS STRING)"
    if places >= scale:
        return call.args[0]
    if places < -values.DECIMAL_DIGITS:
        return f"CAST({call.args[0]} * 0BD AS DECIMAL(29, 0))"
    return f"try_cast(bround({call.args[0]}, {places}) AS DECIMAL(29, {max(0, places)}))"


def _places_written(call: SqlCall) -> str | None:
    return "numbers.round_float" if len(call.args) == 1 or isinstance(call.literal(1), int) else None


def _round_row(name: str, doc: str, optional: int, examples: Any) -> Builtin:
    rule = _RoundedScale(0)
    return Builtin(
        name,
        "number",
        doc,
        (
            Overload(
                (INT, INT), INT, lambda x, n=0: x, _unchanged_int_sql, optional=optional, vector="numbers.unchanged"
            ),
            Overload((FLOAT, INT), FLOAT, round_float, _round_float_sql, optional=optional, vector=_places_written),
            Overload(
                (DECIMAL, INT),
                rule,
                round_decimal,
                _round_decimal_sql,
                (_DIGITS,),
                optional=optional,
                python_reason=_SCALE_REASON,
                vector="decimals.rounded",
            ),
        ),
        examples=examples,
    )


def _unchanged_int_sql(call: SqlCall) -> str:
    if len(call.args) == 1 or call.literal(1) not in (NOT_LITERAL, None):
        return call.args[0]
    return f"IF({call.args[1]} IS NULL, NULL, {call.args[0]})"


# ---------------------------------------------------------------- clamp, min, max


def _clamp(x: Any, low: Any, high: Any) -> Any:
    if values.compare(x, low) == -1:
        return _common(low, x, low, high)
    return _common(high if values.compare(x, high) == 1 else x, x, low, high)


def _lesser(x: Any, other: Any) -> Any:
    return _common(x if values.compare(x, other) == -1 else other, x, other)


def _greater(x: Any, other: Any) -> Any:
    return _common(x if values.compare(x, other) == 1 else other, x, other)


def _common(chosen: Any, *candidates: Any) -> Any:
    """Decimals answer at the largest scale that took part, as the static type says."""
    if isinstance(chosen, Decimal):
        return values.decimal_fit(chosen, max(values.decimal_scale(c) for c in candidates if c is not None))
    return chosen


def _same_scale(types: Sequence[Type]) -> Type:
    if types[0].kind is not Kind.DECIMAL:
        return types[0]
    scales = [t.scale for t in types if t.kind is not Kind.NULL]
    known = [s for s in scales if s is not None]
    return decimal(max(known) if len(known) == len(scales) else None)


def _is_number(literal: Any) -> bool:
    return isinstance(literal, int | float) and not math.isnan(literal)


def _less(a: str, b: str, floats: bool, known: bool) -> str:
    """a < b as CXL sees it: Spark puts NaN above all, here it is comparable to nothing. `known`: b is not NaN."""
    return f"{a} < {b} AND NOT isnan({b})" if floats and not known else f"{a} < {b}"


def _comparable(call: SqlCall, type: Type) -> Sequence[str] | None:
    """The arguments in one SQL type; None for decimals that no DECIMAL holds side by side without loss."""
    scales = [t.scale for t in call.types]
    if type.kind is not Kind.DECIMAL or len(set(scales)) == 1:
        return call.args if type.kind is not Kind.DECIMAL or type.scale is not None else None
    if type.scale is None or type.scale - min(s for s in scales if s is not None) > 38 - values.DECIMAL_DIGITS:
        return None
    return [f"CAST({x} AS DECIMAL(38, {type.scale}))" for x in call.args]


def _bound_sql(name: str) -> Callable[[SqlCall], str | None]:
    def sql(call: SqlCall) -> str | None:
        type = _same_scale(call.types)
        floats = type.kind is Kind.FLOAT
        args = _comparable(call, type)
        if args is None:
            return None
        x, *bounds = args
        known = [_is_number(call.literal(i)) for i in range(len(call.args))]
        if name == "clamp":
            low, high = bounds
            below, above = _less(x, low, floats, known[1]), _less(high, x, floats, known[0])
            text = f"CASE WHEN {below} THEN {low} WHEN {above} THEN {high} ELSE {x} END"
        else:
            other = bounds[0]
            better = _less(x, other, floats, known[1]) if name == "min" else _less(other, x, floats, known[0])
            text = f"CASE WHEN {better} THEN {x} WHEN {x} IS NOT NULL THEN {other} END"
        return f"try_cast({text} AS DECIMAL(29, {type.scale}))" if type.kind is Kind.DECIMAL else text

    return sql


_BOUND_FORMS = {"min": "least", "max": "greatest", "clamp": "clamp"}


def _ordered(name: str, run: Callable[..., Any], params: int) -> tuple[Overload, ...]:
    return tuple(
        Overload(
            (type,) * params,
            _same_scale if type is DECIMAL else type,
            run,
            _bound_sql(name),
            (_DIGITS,) if type is DECIMAL else (),
            python_reason=_SCALE_REASON if type is DECIMAL else "",
            vector=f"{'decimals' if type is DECIMAL else 'numbers'}.{_BOUND_FORMS[name]}",
        )
        for type in (INT, FLOAT, DECIMAL, STRING, DATE, DATETIME)
    )


BUILTINS: tuple[Builtin, ...] = (
    Builtin(
        "abs",
        "number",
        "The number without its sign. The smallest Int has no counterpart and overflows.",
        (
            Overload(
                (INT,),
                INT,
                lambda x: values.checked_int(abs(x)),
                f"abs(nullif({{0}}, {values.I64_MIN}L))",
                (_OVERFLOW,),
                vector="numbers.abs_int",
            ),
            Overload((FLOAT,), FLOAT, abs, "abs({0})", vector="numbers.abs_float"),
            Overload(
                (DECIMAL,), lambda types: types[0], Decimal.copy_abs, _decimal_abs_sql, vector="decimals.absolute"
            ),
        ),
        examples=(("(-42).abs()", "42"), ("(-2.5).abs()", "2.5")),
    ),
    _whole(
        "ceil",
        "The smallest whole number that is not less; a Float becomes an Int, held within its bounds.",
        math.ceil,
        ROUND_CEILING,
        (("3.2.ceil()", "4"), ("(-3.2).ceil()", "-3")),
    ),
    _whole(
        "floor",
        "The largest whole number that is not greater; a Float becomes an Int, held within its bounds.",
        math.floor,
        ROUND_FLOOR,
        (("3.8.floor()", "3"), ("(-3.2).floor()", "-4")),
    ),
    _round_row(
        "round",
        "Rounds to a number of decimal places (0 when left out): floats half away from zero, decimals half to even.",
        1,
        (("3.456.round()", "3.0"), ("2.5.round()", "3.0"), ("3.14159.round(2)", "3.14")),
    ),
    _round_row(
        "round_to",
        "Rounds to a number of decimal places, as `round` does; negative places round to tens, hundreds, …",
        0,
        (("3.14159.round_to(3)", "3.142"), ("1250.0.round_to(-2)", "1300.0"), ("7.round_to(2)", "7")),
    ),
    Builtin(
        "clamp",
        "number",
        "The receiver, or the bound it lies beyond. A null or NaN bound does not bind.",
        _ordered("clamp", _clamp, 3),
        Nulls.RECEIVER,
        (("(-5).clamp(0, 100)", "0"), ("50.clamp(0, 100)", "50")),
    ),
    Builtin(
        "min",
        "number",
        "The receiver if it is strictly less than the argument, else the argument.",
        _ordered("min", _lesser, 2),
        examples=(("10.min(5)", "5"), ('"a".min("b")', '"a"')),
    ),
    Builtin(
        "max",
        "number",
        "The receiver if it is strictly greater than the argument, else the argument.",
        _ordered("max", _greater, 2),
        examples=(("10.max(20)", "20"), ("#2024-01-01#.max(#2023-12-31#)", '"2024-01-01"')),
    ),
)
