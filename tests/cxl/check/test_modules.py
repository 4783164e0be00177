"""Modules: constants, functions, private imports, and everything that can be wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.cxl import CxlError, compile

MONEY = """
# prices
use base.rates as r
let FACTOR = 1 + r.VAT
fn gross(net) = net * FACTOR
fn twice(x) = gross(x) + gross(x)
"""
MODULES = {"shared.money": MONEY, "base.rates": "let VAT = 0.25"}


def values(text: str, modules: dict[str, str] = MODULES, **record: object) -> dict[str, object]:
    schema = {name: "float" if isinstance(v, float) else "int" for name, v in record.items()}
    return compile(text, schema, modules=modules).evaluate(record)[0]


def test_constants_and_functions() -> None:
    text = "use shared.money as m\nemit a = m.FACTOR\nemit b = m.gross(price)\nemit c = m.twice(price + 1)"
    assert values(text, price=100.0) == {"a": 1.25, "b": 125.0, "c": 252.5}


def test_functions_are_typed_at_each_call() -> None:
    text = 'use f\nemit a = f.add(1, 2)\nemit b = f.add("x", "y")'
    assert values(text, {"f": "fn add(a, b) = a + b"}) == {"a": 3, "b": "xy"}


def test_a_failing_argument_fails_even_when_the_body_ignores_it() -> None:
    program = compile("use f\nemit a = f.one(1 / n)", {"n": "int"}, modules={"f": "fn one(x) = 1"})
    assert program.fallible


def test_modules_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "money.cxl").write_text("let RATE = 2", encoding="utf-8")
    program = compile("use shared.money\nemit a = money.RATE * n", {"n": "int"}, modules=tmp_path)
    assert program.evaluate({"n": 4}) == [{"a": 8}]


WRONG = [
    ("use nowhere\nemit a = 1", {}, "E227", "module 'nowhere' not found"),
    ("use a\nemit v = 1", {"a": "use b", "b": "use a"}, "E227", "in a circle: a -> b -> a"),
    ("use a\nemit v = 1", {"a": "fn f(x) = g(x)\nfn g(x) = f(x)"}, "E227", "in a circle: f -> g -> f"),
    ("use a\nemit v = a.nope", {"a": "let yes = 1"}, "E203", "module 'a' has no constant 'nope'"),
    ("use a\nemit v = a.f(1)", {"a": "fn ff(x) = x"}, "E203", "module 'a' has no function 'f'"),
    ("use a\nemit v = a.f(1, 2)", {"a": "fn f(x) = x"}, "E200", "takes 1 arguments, but got 2"),
    ("use a\nemit v = a", {"a": "let x = 1"}, "E203", "'a' is a module, not a value"),
    ("use a\nemit v = a.x", {"a": "let x = unknown"}, "E203", "unresolved identifier 'unknown'"),
    ("use a\nemit v = a.x", {"a": "emit x = 1"}, "E202", ""),
    ("use a\nemit v = a.b.VAT", {"a": "use base.rates as b", "base.rates": "let VAT = 1"}, "E203", "no constant 'b'"),
]


@pytest.mark.parametrize(("text", "modules", "code", "message"), WRONG, ids=[w[3] or w[2] for w in WRONG])
def test_wrong_module(text: str, modules: dict[str, str], code: str, message: str) -> None:
    with pytest.raises(CxlError) as caught:
        compile(text, {}, modules=modules)
    found = caught.value.diagnostics[0]
    assert found.code == code
    assert message in found.message
    assert found.span is not None and found.source is not None
