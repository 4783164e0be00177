"""`--set vars.x=value`: each value by its declared type."""

from __future__ import annotations

import datetime as dt

import pytest

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.model.documents.variable import VarDecl
from clinker_spark.config.variables import parse_overrides, variable_types, variable_values
from clinker_spark.core.diagnostics.render import render_text

DECLARED = {
    "text": VarDecl(type="string", default="x"),
    "number": VarDecl(type="int", default=1),
    "share": VarDecl(type="float"),
    "flag": VarDecl(type="bool"),
    "day": VarDecl(type="date"),
    "moment": VarDecl(type="date_time"),
}


def test_values_have_the_declared_type() -> None:
    given = [
        "vars.text=5",
        "vars.number=-7",
        "share=2",
        "$vars.flag=true",
        "vars.day=2026-01-31",
        "moment=2026-01-31T08:00:00Z",
    ]
    found = parse_overrides(DECLARED, given)
    assert found == {
        "text": "5",
        "number": -7,
        "share": 2.0,
        "flag": True,
        "day": dt.date(2026, 1, 31),
        "moment": dt.datetime(2026, 1, 31, 8),
    }
    assert variable_values(DECLARED, found)["number"] == -7
    assert variable_values(DECLARED)["number"] == 1 and variable_values(DECLARED)["flag"] is None
    assert str(variable_types(DECLARED)["share"]) == "Nullable(Float)"


def test_a_value_may_contain_an_equals_sign_or_be_empty() -> None:
    assert parse_overrides(DECLARED, ["text=a=b"]) == {"text": "a=b"}
    assert parse_overrides(DECLARED, ["text="]) == {"text": ""}


def test_all_problems_are_told() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_overrides(
            DECLARED, ["nothing", "vars.txt=5", "vars.number=many", "vars.flag=yes", "number=99999999999999999999"]
        )
    assert [d.code for d in caught.value.diagnostics] == ["E015"] * 5
    assert render_text(caught.value.diagnostics[1], color=False, hint=False).splitlines() == [
        "error[E015]: no variable is named 'txt'",
        "  --> --set:1:6",
        "   |",
        " 1 | vars.txt=5",
        "   |      ^^^",
        "   |",
        "   = help: did you mean 'text'?",
    ]
    assert "'number' is declared as int, which 'many' is not" in caught.value.diagnostics[2].message
