"""Conversions: `to_x` fails on what it cannot convert, `try_x` gives null instead.

Texts are read strictly: no surrounding blanks, no thousands separators, no other spelling than the documented one.
A receiver that can never be converted (a Date `to_int`) still has a signature, one that always fails, so that
a value whose type is only known at run time gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import (
    ANY,
    ARRAY,
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    FLOAT,
    INT,
    MAP,
    STRING,
    Kind,
    Type,
    decimal,
)
from clinker_spark.cxl import values
from clinker_spark.cxl.builtins.families.numbers import saturating_sql
from clinker_spark.cxl.builtins.numbertext import (
    TEXT_TO_FLOAT,
    TEXT_TO_INT,
    float_to_decimal,
    text_to_decimal,
    text_to_decimal_sql,
    text_to_float,
    text_to_int,
)
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Builtin, Failure, Overload, SqlCall
from clinker_spark.cxl.builtins.text import sql_text, to_text
from clinker_spark.cxl.dates import formats as dateformats
from clinker_spark.cxl.dates.formats_sql import ISO_DATE, ISO_DATETIME, sql_parse
from clinker_spark.cxl.errors import ErrorKind, Fail

# ---------------------------------------------------------------- single conversions


def _decimal_to_int(value: Decimal) -> int | None:
    whole = int(value)
    return whole if values.I64_MIN <= whole <= values.I64_MAX else None


def _decimal_to_int_sql(call: SqlCall) -> str:
    x = call.args[0]
    return (
        f"try_cast({x} AS BIGINT)"
        if call.types[0].scale is not None
        else (f"try_cast(substring_index({x}, '.', 1) AS BIGINT)")
    )


_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def text_to_bool(text: str) -> bool | None:
    word = text.lower()
    return True if word in _TRUE else False if word in _FALSE else None


_TEXT_TO_BOOL = f"CASE WHEN lower({{0}}) IN {_TRUE} THEN TRUE WHEN lower({{0}}) IN {_FALSE} THEN FALSE END"

# ---------------------------------------------------------------- rows

Sql = str | Callable[[SqlCall], str | None] | None
Way = tuple[Type, Callable[..., Any], Sql]

_PHYSICAL = {
    Kind.BOOL: "BOOLEAN",
    Kind.INT: "BIGINT",
    Kind.FLOAT: "DOUBLE",
    Kind.DECIMAL: "STRING",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMP_NTZ",
}
_RECEIVERS = (BOOL, INT, FLOAT, DECIMAL, STRING, DATE, DATETIME, ARRAY, MAP)
_EXPANSION = "the exact value of a float is beyond Spark's double-to-decimal cast, which rounds to the shortest digits"


def _never(*args: Any) -> None:
    return None


def _strict(run: Callable[..., Any]) -> Callable[..., Any]:
    """None from a conversion is a failure."""

    def convert(value: Any, *rest: Any) -> Any:
        result = run(value, *rest)
        if result is None:
            raise Fail(ErrorKind.CONVERSION_FAILED, value)
        return result

    return convert


def _rows(
    suffix: str,
    result: Type,
    what: str,
    ways: Sequence[Way],
    examples: tuple[Any, Any],
    untried: frozenset[Kind] = frozenset(),
) -> tuple[Builtin, Builtin]:
    """The pair `to_x` and `try_x`. Receivers in `untried` are null for `try_x` whatever they hold."""
    known = {type.kind: (run, sql) for type, run, sql in ways}
    failure = Failure(ErrorKind.CONVERSION_FAILED, f"cannot convert to {result.kind.value}")

    def overload(type: Type, strict: bool) -> Overload:
        never = type.kind not in known or (not strict and type.kind in untried)
        certain = (type.kind, result.kind) in _CERTAIN and not never
        nothing: tuple[Callable[..., Any], Sql] = (_never, f"CAST(NULL AS {_PHYSICAL[result.kind]})")
        run, sql = nothing if never else known[type.kind]
        given = result if strict or certain else result.as_nullable()
        return Overload(
            (type,),
            _KeptScale() if result.kind is Kind.DECIMAL and certain else given,
            _strict(run) if strict else run,
            sql,
            (failure,) if strict and not certain else (),
            python_reason=_EXPANSION if sql is None else "",
            vector=_NEVER_FORMS.get(result.kind) if never else _FORMS.get((type.kind, result.kind)),
        )

    def overloads(strict: bool) -> tuple[Overload, ...]:
        return tuple(overload(type, strict) for type in _RECEIVERS)

    to_examples, try_examples = examples
    return (
        Builtin(f"to_{suffix}", "conversion", f"{what}; fails otherwise.", overloads(True), examples=to_examples),
        Builtin(f"try_{suffix}", "conversion", f"{what}; null otherwise.", overloads(False), examples=try_examples),
    )


_CERTAIN = {
    (Kind.INT, Kind.INT),
    (Kind.BOOL, Kind.INT),
    (Kind.FLOAT, Kind.INT),
    (Kind.INT, Kind.FLOAT),
    (Kind.FLOAT, Kind.FLOAT),
    (Kind.DECIMAL, Kind.FLOAT),
    (Kind.BOOL, Kind.BOOL),
    (Kind.INT, Kind.BOOL),
    (Kind.INT, Kind.DECIMAL),
    (Kind.DECIMAL, Kind.DECIMAL),
}
"""Receiver and result of the conversions that cannot fail."""


_FORMS = {
    (Kind.BOOL, Kind.INT): "conversions.number",
    (Kind.INT, Kind.INT): "strings.itself",
    (Kind.FLOAT, Kind.INT): "numbers.truncated",
    (Kind.STRING, Kind.INT): "conversions.text_to_int",
    (Kind.INT, Kind.FLOAT): "conversions.to_float",
    (Kind.FLOAT, Kind.FLOAT): "strings.itself",
    (Kind.STRING, Kind.FLOAT): "conversions.text_to_float",
    (Kind.BOOL, Kind.BOOL): "strings.itself",
    (Kind.INT, Kind.BOOL): "conversions.int_to_bool",
    (Kind.STRING, Kind.BOOL): "conversions.text_to_bool",
    (Kind.DECIMAL, Kind.INT): "decimals.to_int",
    (Kind.DECIMAL, Kind.FLOAT): "decimals.to_float",
    (Kind.INT, Kind.DECIMAL): "decimals.from_int",
    (Kind.FLOAT, Kind.DECIMAL): "decimals.from_float",
    (Kind.DECIMAL, Kind.DECIMAL): "strings.itself",
    (Kind.STRING, Kind.DECIMAL): "decimals.from_text",
}
_NEVER_FORMS = {
    Kind.INT: "conversions.no_int",
    Kind.FLOAT: "conversions.no_float",
    Kind.DECIMAL: "conversions.no_decimal",
    Kind.BOOL: "conversions.no_bool",
    Kind.DATE: "conversions.no_date",
    Kind.DATETIME: "conversions.no_datetime",
}
"""The Polars forms of the conversions, by receiver and result, and of those that no value has."""


class _KeptScale:
    """An Int has scale 0 and a Decimal its own. Chosen on the record, all that is known is that it is a Decimal."""

    def __call__(self, types: Sequence[Type]) -> Type:
        return DECIMAL

    def with_literals(self, types: Sequence[Type], literals: Sequence[Any]) -> Type:
        return decimal(0) if types[0].kind is Kind.INT else types[0]


def _itself(value: Any) -> Any:
    return value


# ---------------------------------------------------------------- dates


def _date_row(name: str, want: Type, strict: bool, examples: Any) -> Builtin:
    kind = want.kind
    default = ISO_DATE if kind is Kind.DATE else ISO_DATETIME

    def run(text: str, fmt: str = default) -> Any:
        return dateformats.parse_text(fmt, text, kind) if strict else dateformats.try_parse_text(fmt, text, kind)

    def sql(call: SqlCall) -> str | None:
        fmt = call.literal(1) if len(call.args) > 1 else default
        if fmt is NOT_LITERAL:
            return None
        if fmt is None:
            return f"CAST(NULL AS {_PHYSICAL[kind]})"
        return sql_parse(fmt, call.args[0], kind)

    def check(literals: Sequence[Any]) -> tuple[int, str] | None:
        fmt = literals[1] if len(literals) > 1 else None
        message = dateformats.check_format(fmt) if isinstance(fmt, str) else None
        return None if message is None else (1, message)

    failures = (
        Failure(ErrorKind.CONVERSION_FAILED, f"cannot convert to {kind.value}"),
        Failure(ErrorKind.INVALID_FORMAT, "the date format is not valid", "FALSE", 1),
    )
    reading = "conversions.text_to_date" if kind is Kind.DATE else "conversions.text_to_datetime"
    parsing = Overload(
        (STRING, STRING),
        want if strict else want.as_nullable(),
        _strict(run) if strict else run,
        sql,
        failures if strict else (),
        optional=1,
        check=check,
        python_reason="a date format that is computed, or names weeks, has to be read in Python",
        vector=lambda call: reading if len(call.args) < 2 or isinstance(call.literal(1), str) else None,
    )
    others = tuple(
        Overload(
            (type, STRING),
            want if strict else want.as_nullable(),
            _strict(_never) if strict else _never,
            f"CAST(NULL AS {_PHYSICAL[kind]})",
            failures[:1] if strict else (),
            optional=1,
            vector=_NEVER_FORMS[kind],
        )
        for type in _RECEIVERS
        if type is not STRING
    )
    form = "YYYY-MM-DD" if kind is Kind.DATE else "YYYY-MM-DDTHH:MM:SS"
    doc = f"Reads a {kind.value} from a String, by a strftime format or as `{form}`"
    return Builtin(
        name, "conversion", f"{doc}; {'fails' if strict else 'null'} otherwise.", (parsing, *others), examples=examples
    )


BUILTINS: tuple[Builtin, ...] = (
    *_rows(
        "int",
        INT,
        "An Int: digits of a String, a Float or Decimal without its fraction, 1 and 0 for a Bool",
        (
            (BOOL, int, "CAST({0} AS BIGINT)"),
            (INT, _itself, "{0}"),
            (FLOAT, values.float_to_int, saturating_sql("{0}", "try_cast({0} AS BIGINT)")),
            (DECIMAL, _decimal_to_int, _decimal_to_int_sql),
            (STRING, text_to_int, TEXT_TO_INT),
        ),
        ((('"42".to_int()', "42"), ("(-3.9).to_int()", "-3")), (('"7".try_int()', "7"), ('"abc".try_int()', "null"))),
        untried=frozenset((Kind.DECIMAL,)),
    ),
    *_rows(
        "float",
        FLOAT,
        "A Float from a number or a String such as `3.14`, `1e5` or `inf`",
        (
            (INT, float, "CAST({0} AS DOUBLE)"),
            (FLOAT, _itself, "{0}"),
            (DECIMAL, float, "try_cast({0} AS DOUBLE)"),
            (STRING, text_to_float, TEXT_TO_FLOAT),
        ),
        (
            (('"3.14".to_float()', "3.14"), ("42.to_float()", "42.0")),
            (('"2.5".try_float()', "2.5"), ('"N/A".try_float()', "null")),
        ),
        untried=frozenset((Kind.DECIMAL,)),
    ),
    *_rows(
        "decimal",
        DECIMAL,
        "A Decimal, exactly as the String or number is written",
        (
            (INT, Decimal, "CAST({0} AS DECIMAL(29, 0))"),
            (FLOAT, float_to_decimal, None),
            (DECIMAL, _itself, "{0}"),
            (STRING, text_to_decimal, text_to_decimal_sql),
        ),
        (
            (('"0.10".to_decimal()', '"0.10"'), ("5.to_decimal()", '"5"')),
            (('"19.99".try_decimal()', '"19.99"'), ('"abc".try_decimal()', "null")),
        ),
    ),
    *_rows(
        "bool",
        BOOL,
        "A Bool from true, 1, yes, false, 0, no in any case, or from an Int (0 is false)",
        (
            (BOOL, _itself, "{0}"),
            (INT, bool, "{0} <> 0L"),
            (STRING, text_to_bool, _TEXT_TO_BOOL),
        ),
        (
            (('"yes".to_bool()', "true"), ("0.to_bool()", "false")),
            (('"NO".try_bool()', "false"), ('"maybe".try_bool()', "null")),
        ),
    ),
    Builtin(
        "to_string",
        "conversion",
        "Any value as text: floats without exponent or trailing `.0`, arrays and maps as JSON; never fails.",
        (
            Overload(
                (ANY,), STRING, to_text, lambda call: sql_text(call.args[0], call.types[0]), vector="text.to_string"
            ),
        ),
        examples=(("42.to_string()", '"42"'), ("3.0.to_string()", '"3"'), ("true.to_string()", '"true"')),
    ),
    _date_row(
        "to_date",
        DATE,
        True,
        (('"2024-03-15".to_date()', '"2024-03-15"'), ('"15/03/2024".to_date("%d/%m/%Y")', '"2024-03-15"')),
    ),
    _date_row(
        "to_datetime",
        DATETIME,
        True,
        (
            ('"2024-03-15T14:30:00".to_datetime()', '"2024-03-15T14:30:00"'),
            ('"15.03.2024 14:30".to_datetime("%d.%m.%Y %H:%M")', '"2024-03-15T14:30:00"'),
        ),
    ),
    _date_row(
        "try_date",
        DATE,
        False,
        (('"2024-03-15".try_date()', '"2024-03-15"'), ('"soon".try_date()', "null")),
    ),
    _date_row(
        "try_datetime",
        DATETIME,
        False,
        (
            ('"2024-03-15T14:30:00".try_datetime()', '"2024-03-15T14:30:00"'),
            ('"2024-03-15".try_datetime()', "null"),
        ),
    ),
)
