"""What the typechecker says: one row per mistake, with the exact words, the underlined text and the help."""

from __future__ import annotations

import pytest

from clinker_spark.core.types import Type
from clinker_spark.cxl import CxlError, compile
from clinker_spark.cxl.program import Program

SCHEMA = {
    "name": "string",
    "qty": "int",
    "price": "float",
    "amount": "decimal(2)",
    "rate": "decimal(4)",
    "ok": "bool",
    "day": "date",
    "items": "array",
    "doc": "map",
    "x": "any",
}

MISTAKES = [
    ('emit v = "x" + 1', '"x" + 1', "cannot apply '+' to String and Int", ".to_int() or .to_string()"),
    ("emit v = name * 2", "name * 2", "cannot apply '*' to String and Int", ".to_int() or .to_string()"),
    ("emit v = amount + price", "amount + price", "cannot apply '+' to Decimal and Float", "do not mix"),
    ('emit v = qty == "5"', 'qty == "5"', "cannot compare Int and String for equality", ".to_string()"),
    ("emit v = ok > false", "ok > false", "cannot compare Bool and Bool with an ordering operator", None),
    ("emit v = qty.upper()", "qty", "method 'upper' expects a String receiver, but got Int", ".to_string()"),
    ("emit v = name.starts_with(5)", "5", "argument 1 of 'starts_with' expects String, but got Int", ".to_string()"),
    ('emit v = name.upper("x")', 'name.upper("x")', "method 'upper' takes no arguments, but got 1", None),
    ("filter qty", "qty", "filter predicate must be type Bool, got Int", "comparison"),
    ("emit v = not qty", "qty", "'not' needs a Bool, but got Int", "compare it"),
    ("emit v = if name then 1 else 2", "name", "'if' needs a Bool, but got String", None),
    ("emit v = match qty { 1 => 2 }", "match qty { 1 => 2 }", "match must have a '_' arm", "_ => null"),
    ("emit v = sum(qty)", "sum(qty)", "aggregate function 'sum' is not allowed in a row-level transform", None),
    ('emit v = name.matches("[")', '"["', "", None),
    ("emit v = name.matches(name)", "name", "argument 1 of 'matches' must be a literal", "quotes"),
    ("emit v = name.upper", "upper", "'upper' is a method of String", ".upper()"),
    ("emit v = name.city", "city", "a String has no field 'city'", "maps"),
    ("emit v = day + 1", "day + 1", "cannot apply '+' to Date and Int", None),
    ("emit each e in qty { emit v = e }", "qty", "emit each needs an Array to loop over, but got Int", None),
    ("emit each e in items { filter e > 1 }", "filter e > 1", "filter is not possible inside emit each", "it => "),
    ("emit v = $window.row_numbr()", "row_numbr", "unknown window function $window.row_numbr()", "row_number"),
    ("emit v = $window.lag(1).qtty", "qtty", "unknown field 'qtty' in the window's rows", "qty"),
    ("emit v = [n for n in qty]", "qty", "a comprehension needs an Array, but got Int", None),
    ("emit v = {[qty]: 1}", "qty", "a map key must be a String, but got Int", ".to_string()"),
    ("emit v = items[name]", "items[name]", "cannot index Array with String", "Int"),
    ("emit v = items.map(1)", "items.map(1)", "method 'map' takes one closure", "it =>"),
    ("emit v = name.upper(it => 1)", "it => 1", "a closure can only be an argument of", None),
]


def compiled(text: str) -> Program:
    return compile(text, SCHEMA)


@pytest.mark.parametrize(("text", "underlined", "message", "help_text"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistake(text: str, underlined: str, message: str, help_text: str | None) -> None:
    with pytest.raises(CxlError) as caught:
        compiled(text)
    assert caught.value.phase == "typecheck"
    found = caught.value.diagnostics[0]
    assert found.code == "E200"
    assert message in found.message
    assert found.span is not None
    assert text[found.span.start : found.span.end] == underlined
    if help_text is not None:
        assert found.help is not None and help_text in found.help


def test_all_mistakes_at_once() -> None:
    with pytest.raises(CxlError) as caught:
        compiled('emit a = "x" + 1\nemit b = qty.upper()\nemit c = a\nfilter name\n')
    assert len(caught.value.diagnostics) == 3  # and nothing about c: what is wrong already is said once


def test_a_column_used_as_two_types_cites_both_places() -> None:
    text = 'emit a = x == "active"\nemit b = x + 1'
    with pytest.raises(CxlError) as caught:
        compiled(text)
    found = caught.value.diagnostics[0]
    assert "field 'x' is used as Numeric here but as String elsewhere" in found.message
    assert found.labels and text[found.labels[0].span.start : found.labels[0].span.end] == 'x == "active"'


TYPES = [
    ("1 + 2", "Int", False),
    ("qty + 1", "Int", True),
    ("qty / 2", "Int", False),
    ("qty / qty", "Int", True),
    ("price / 2.0", "Float", False),
    ("price / 0.5", "Float", True),
    ("price + 1", "Float", False),
    ("price + price", "Float", True),
    ("qty + price", "Float", False),
    ("amount + 1", "Decimal", True),
    ("name + name", "String", False),
    ("qty > 1", "Bool", False),
    ("null + qty", "Nullable(Int)", True),
    ("if ok then 1", "Nullable(Int)", False),
    ("if ok then 1 else 2.5", "Float", False),
    ('if ok then 1 else "a"', "Any", False),
    ("x + 1", "Int", True),
    ("x", "Any", False),
    ('x ?? "none"', "String", False),
    ("amount ?? rate", "Decimal", True),  # with more places, not all amounts fit
    ("rate ?? amount", "Decimal", True),
    ("name.to_int()", "Int", True),
    ("name.try_int() ?? 0", "Int", False),
    ('"12".to_int()', "Int", False),
    ("[1, 2]", "Array(Int)", False),
    ("[1, 2.5]", "Array", False),
    ("{a: 1}", "Map(Int)", False),
    ('{a: 1, b: "x"}', "Map", False),
    ("items.map(it => 1)", "Array(Int)", False),
    ("[1, 2].map(it => it * qty)", "Array(Int)", True),
    ("doc.address.city", "Nullable(Any)", False),
    ("[n for n in items]", "Array", True),
    ("day.add_days(1)", "Date", False),
]


@pytest.mark.parametrize(("text", "spelled", "fallible"), TYPES, ids=[t[0] for t in TYPES])
def test_type_and_fallibility(text: str, spelled: str, fallible: bool) -> None:
    program = compiled(f"emit v = {text}")
    shown: Type = program.output["v"]
    assert (
        str(shown).replace("Nullable(", "").rstrip(")") == spelled.replace("Nullable(", "").rstrip(")")
        or str(shown) == spelled
    )
    assert program.fallible is fallible


def test_a_program_without_emit_is_warned_about() -> None:
    assert [w.code for w in compiled("let a = 1").warnings] == ["W200"]
    assert compiled("emit a = 1").warnings == ()
    with pytest.raises(CxlError) as caught:  # also for conditions, where nobody emits anything
        compiled('1 + "a"')
    assert [d.code for d in caught.value.diagnostics] == ["E200"]
