"""Help lines of the typechecker: the conversion that would make two types meet."""

from __future__ import annotations

from clinker_spark.core.types import Kind, Type

_CONVERSIONS = {
    "Int": ".to_int()",
    "Float": ".to_float()",
    "Decimal": ".to_decimal()",
    "String": ".to_string()",
    "Bool": ".to_bool()",
    "Date": ".to_date()",
    "DateTime": ".to_datetime()",
}


def conversion_help(expected: str) -> str | None:
    found = next((word for word in expected.split(" or ") if word in _CONVERSIONS), None)
    return f"convert it first: {_CONVERSIONS[found]}" if found else None


def coercion_help(a: Type, b: Type) -> str | None:
    wanted = [_CONVERSIONS[t.kind.value] for t in (b, a) if t.kind.value in _CONVERSIONS]
    if {a.kind, b.kind} == {Kind.DECIMAL, Kind.FLOAT}:
        return "decimals and floats do not mix: use .to_decimal() or .to_float() on one side"
    return f"convert one operand: use {' or '.join(wanted)}" if len(wanted) == 2 and a.kind is not b.kind else None


def bool_help(t: Type) -> str | None:
    if t.is_numeric:
        return "compare it with a number, for example x != 0"
    return 'compare it, for example x == "yes"' if t.kind is Kind.STRING else None
