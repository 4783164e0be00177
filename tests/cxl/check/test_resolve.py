"""Names that mean nothing, and what is suggested instead."""

from __future__ import annotations

import pytest

from clinker_spark.cxl import CxlError, compile

UNKNOWN = [
    ("emit v = amout", "amout", "unresolved identifier 'amout'", "did you mean 'amount'?"),
    ("emit v = b\nlet b = 1", "b", "unresolved identifier 'b'", None),
    ("emit v = name.uper()", "uper", "unknown method 'uper'", "did you mean 'upper'?"),
    ("emit v = upper(name)", "upper", "unknown function 'upper'", "is a method: write value.upper(...)"),
    ("emit v = summ(amount)", "summ", "unknown function 'summ'", "did you mean 'sum'?"),
    ("emit v = it", "it", "'it' is only known inside a closure", "items.map(it => ...)"),
    ("emit v = $pipeline.nam", "$pipeline.nam", "unknown pipeline member 'nam'", "did you mean 'name'?"),
    ("emit v = $source.rwo", "$source.rwo", "unknown source member 'rwo'", "did you mean 'row'?"),
    ("emit v = $vars.x", "$vars.x", "unknown vars key 'x'", "vars:"),
    ("emit v = $config.x", "$config.x", "'$config.x' is only known inside a composition", "$vars"),
    ("emit v = $recrd.x", "$recrd.x", "unknown namespace '$recrd'", "did you mean '$record'?"),
    ("emit v = $record.x", "$record.x", "unknown record member 'x'", None),
    ("distinct by nme\nemit v = 1", "nme", "unresolved identifier 'nme'", "did you mean 'name'?"),
    ("emit v = [name for name in [1]]", "name", "'name' is already the name of a value", "another"),
    ("emit each e in [1] { emit v = e }\nemit w = e", "e", "unresolved identifier 'e'", None),
]


@pytest.mark.parametrize(("text", "underlined", "message", "help_text"), UNKNOWN, ids=[u[0] for u in UNKNOWN])
def test_unknown_name(text: str, underlined: str, message: str, help_text: str | None) -> None:
    with pytest.raises(CxlError) as caught:
        compile(text, {"amount": "int", "name": "string"})
    assert caught.value.phase == "resolve"
    found = caught.value.diagnostics[0]
    assert found.code == "E203"
    assert message in found.message
    assert found.span is not None
    assert text[found.span.start : found.span.end] == underlined
    if help_text is not None:
        assert found.help is not None and help_text in found.help


def test_running_totals_have_a_code_of_their_own() -> None:
    with pytest.raises(CxlError) as caught:
        compile("emit v = $pipeline.total_count", {})
    assert [d.code for d in caught.value.diagnostics] == ["E204"]


def test_every_unknown_name_is_reported() -> None:
    with pytest.raises(CxlError) as caught:
        compile("emit a = one\nemit b = two.three()\nfilter four", {})
    assert len(caught.value.diagnostics) == 4


def test_an_open_schema_takes_every_bare_name() -> None:
    assert compile("emit a = anything + 1").output.keys() == {"a"}


def test_declared_variables() -> None:
    from clinker_spark.core.types import INT

    declares = {"record": {"seen": INT}}
    assert compile("emit $record.seen = 1", {}, declares=declares).warnings == ()
    with pytest.raises(CxlError) as caught:
        compile("emit $record.sen = 1", {}, declares=declares)
    assert caught.value.diagnostics[0].help == "did you mean 'seen'?"
    with pytest.raises(CxlError, match="declared as Int but gets String"):
        compile('emit $record.seen = "x"', {}, declares=declares)
