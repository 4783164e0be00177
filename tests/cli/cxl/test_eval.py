"""`cxl eval`: records in, JSON out, and every way a record or a program can be wrong."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clinker_spark.cli.cxl.jsontext import dump
from clinker_spark.cli.cxl.records import fit_record, infer_schema, read_record
from clinker_spark.cli.cxl.typed_text import Guessed, Unfit, fit_value
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import parse_type

# ------------------------------------------------------------------- programs


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("1 + 2", "3"),
        ("7.0 / 2", "3.5"),
        ("4.0", "4.0"),
        ("null", "null"),
        ('"añb"', '"añb"'),
        ("#2024-03-15#", '"2024-03-15"'),
        ("[1, 2.5]", "[\n  1,\n  2.5\n]"),
        ("if 1 > 2 then 3", "null"),
        ("let x = 2\nx * 21", "42"),
    ],
)
def test_a_bare_expression_prints_its_value(cxl: Callable[..., Any], source: str, printed: str) -> None:
    assert cxl("eval", "-e", source) == (0, printed + "\n", "")


def test_emits_are_an_object_and_several_texts_are_lines(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "let n = x * 2", "-e", "emit a = n", "-e", "emit b = a + 1.0", "--field", "x=4")
    assert done == (0, '{\n  "a": 8,\n  "b": 9.0\n}\n', "")


def test_a_file(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "p.cxl"
    file.write_text("emit from = $source.file\nemit row = $source.row\nemit run = $pipeline.name\n")
    assert json.loads(cxl("eval", file).out) == {"from": str(file), "row": 1, "run": "cxl-eval"}
    assert json.loads(cxl("eval", "-", stdin="emit a = 1").out) == {"a": 1}


def test_emit_each_is_an_array(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "emit each i in items {\n emit n = i * 10\n}", "--record", '{"items": [1, 2]}')
    assert json.loads(done.out) == [{"n": 10}, {"n": 20}]
    done = cxl("eval", "-e", "emit each i in items {\n emit n = i\n}", "--record", '{"items": []}')
    assert json.loads(done.out) == []


def test_a_filtered_record(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "filter x > 3", "-e", "emit y = x", "--field", "x=1")
    assert done == (0, "{}\n", "note: the record is filtered out\n")


def test_scoped_variables_are_notes(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "emit $pipeline.best = 3", "-e", "emit $record.tag = 'a'", "-e", "emit a = 1")
    assert json.loads(done.out) == {"a": 1}
    assert done.err == 'note: $pipeline.best = 3\nnote: $record.tag = "a"\n'


def test_traces_go_to_standard_error(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "trace warn 'careful'", "-e", "emit a = 1")
    assert json.loads(done.out) == {"a": 1} and done.err == "trace[warn]: careful\n"
    done = cxl("eval", "-e", "[1, x].map(it => it.debug('each') + n.debug())", "--record", '{"x": 5, "n": null}')
    assert json.loads(done.out) == [None, None]
    assert done.err == "debug[each]: 1\ndebug: null\ndebug[each]: 5\ndebug: null\n"


def test_variables_and_modules(cxl: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "m.cxl").write_text("fn double(x) = x * 2\n")
    done = cxl("eval", "-e", "use m", "-e", "emit a = m.double($vars.n)", "--vars", "n=4", "--rules", tmp_path)
    assert json.loads(done.out) == {"a": 8}
    done = cxl("eval", "-e", "emit a = $vars.m", "--vars", "n=4")
    assert done.code == 1 and "did you mean 'n'?" in done.err


def test_warnings_are_shown_unless_there_is_a_value(cxl: Callable[..., Any]) -> None:
    assert "W200" in cxl("eval", "-e", "let a = 1").err
    assert cxl("eval", "-e", "let a = 1\na").err == ""


def test_errors_in_the_program(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "emit a = x", "--field", "y=1")
    assert done.code == 1 and done.out == "" and "error[E203]: unresolved identifier 'x'" in done.err
    assert cxl("eval", "-e", "emit a = ").code == 1
    assert cxl("eval", "-e", "emit a = 1 + 'x'").code == 1


def test_a_record_that_fails(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "emit a = 1", "-e", "emit b = a / x", "--field", "x=0")
    assert done.code == 1 and done.out == ""
    assert "error[X002]: row 1: field 'b': division by zero" in done.err
    assert "2 | emit b = a / x" in done.err and "^^^^^" in done.err
    done = cxl("eval", "-e", "1 / x", "--field", "x=0")
    assert done.code == 1 and "error[X002]: row 1: division by zero" in done.err


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("-e", "1", "file.cxl"),
        ("-", "--record", "-"),
        ("-e", "1", "--nope"),
    ],
)
def test_wrong_usage(cxl: Callable[..., Any], args: tuple[str, ...]) -> None:
    assert cxl("eval", *args).code == 2


def test_a_missing_program(cxl: Callable[..., Any], tmp_path: Path) -> None:
    done = cxl("eval", tmp_path / "none.cxl")
    assert done.code == 2 and "E224" in done.err
    assert cxl("eval", "-e", "\udcff").code == 2  # bytes of the command line that are no text


# -------------------------------------------------------------------- streams


def test_a_stream_prints_lines_and_goes_on_after_errors(cxl: Callable[..., Any]) -> None:
    lines = '{"x": 1}\n{"x": 0}\n\n{"x": 1}\n{"x": 4}\n'
    program = ("-e", "distinct by x", "-e", "emit y = 8 / x", "-e", "emit row = $source.row")
    done = cxl("eval", *program, "--record", "-", stdin=lines)
    assert done.code == 1
    assert done.out == '{"y": 8, "row": 1}\n{"y": 2, "row": 4}\n'
    assert "row 2: field 'y': division by zero" in done.err
    assert "note: 1 of 4 records is a duplicate\nnote: 1 of 4 records failed\n" in done.err


def test_a_stream_may_be_of_any_layout(cxl: Callable[..., Any], tmp_path: Path) -> None:
    program = ("eval", "-e", "emit y = x", "--record")
    assert cxl(*program, "-", stdin='{\n "x": 1\n}\n{"x": 2}').out == '{"y": 1}\n{"y": 2}\n'
    assert cxl(*program, "-", stdin='[{"x": 1}, {"x": 2}]').out == '{"y": 1}\n{"y": 2}\n'
    assert cxl(*program, "-", stdin='{"x": 1}').out == '{"y": 1}\n'
    assert cxl(*program, "-", stdin="") == (0, "", "")
    file = tmp_path / "r.json"
    file.write_text('{"x": 1}')
    assert cxl(*program, f"@{file}").out == '{\n  "y": 1\n}\n'
    file.write_text('{"x": 1}\n{"x": 2}\n')
    assert cxl(*program, f"@{file}").out == '{"y": 1}\n{"y": 2}\n'
    assert cxl("eval", "-e", "x + 1", "--record", f"@{file}").out == "2\n3\n"


def test_the_types_of_a_stream_are_those_of_all_records(cxl: Callable[..., Any]) -> None:
    rows = read_record('{"a": 1, "b": 1, "c": 1, "d": null} {"a": 2.5, "c": "x", "d": null}').rows
    types = {name: str(t) for name, t in infer_schema(rows).items()}
    assert types == {"a": "Float", "b": "Nullable(Int)", "c": "Any", "d": "Any"}
    done = cxl("eval", "-e", "emit a = a", "--record", "-", stdin='{"a": 1}\n{"a": 2.5}')
    assert done.out == '{"a": 1.0}\n{"a": 2.5}\n'


def test_filtered_records_of_a_stream_are_counted(cxl: Callable[..., Any]) -> None:
    done = cxl("eval", "-e", "filter x > 1", "-e", "emit y = x", "--record", "-", stdin='{"x":1}{"x":1}{"x":2}')
    assert done == (0, '{"y": 2}\n', "note: 2 of 3 records are filtered out\n")


# -------------------------------------------------------------------- records


def test_inferred_types() -> None:
    row = read_record('{"i": 1, "f": 1.0, "e": 1e2, "b": true, "s": "1", "n": null, "a": [1], "m": {}}').rows[0]
    assert {name: str(t) for name, t in infer_schema([row]).items()} == {
        "i": "Int", "f": "Float", "e": "Float", "b": "Bool", "s": "String", "n": "Any", "a": "Array", "m": "Map",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("null", None),
        ("", ""),
        ("nan", "nan"),
        ("inf", "inf"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("٣", "٣"),
        ("99999999999999999999", 1e20),
        ("9" * 5000, math.inf),
        ("a=b", "a=b"),
    ],
)
def test_guessed_fields(text: str, value: Any) -> None:
    found = Guessed(text).value
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("type_word", "text", "value"),
    [
        ("string", "5", "5"),
        ("string", "null", "null"),
        ("int", "5", 5),
        ("int", "5.0", 5),
        ("int", "null", None),
        ("float", "5", 5.0),
        ("float", "inf", math.inf),
        ("decimal(2)", "1.005", Decimal("1.00")),
        ("decimal(2)", "1e-999999", Decimal("0.00")),
        ("bool", "YES", True),
        ("date", "2024-02-29", dt.date(2024, 2, 29)),
        ("date", "02/29/2024", dt.date(2024, 2, 29)),
        ("date_time", "2024-02-29T10:00:00.5", dt.datetime(2024, 2, 29, 10, 0, 0, 500000)),
        ("date_time", "2024-02-29T10:00:00+02:00", dt.datetime(2024, 2, 29, 8)),
        ("array(int)", "[1, 2]", [1, 2]),
        ("map", '{"b": 1, "a": [2.5]}', {"b": 1, "a": [2.5]}),
        ("any", "5", 5),
        ("any", "null", None),
        ("nullable(int)", "7", 7),
    ],
)
def test_typed_fields(type_word: str, text: str, value: Any) -> None:
    t = parse_type(type_word)
    assert t is not None
    found = fit_value(Guessed(text), t)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("type_word", "text"),
    [
        ("int", "x"),
        ("int", "5.5"),
        ("int", "99999999999999999999"),
        ("int", "9" * 5000),
        ("int", " 5"),
        ("float", "1_0"),
        ("float", "1e999"),
        ("decimal(2)", "x"),
        ("decimal(2)", "1_0"),
        ("decimal(2)", "nan"),
        ("decimal(2)", "1e999999999"),
        ("decimal(2)", "1e99999999999999999999999"),
        ("decimal(2)", "9" * 40),
        ("bool", "maybe"),
        ("date", "2024-02-30"),
        ("date_time", "0001-01-01T00:00:00+23:00"),
        ("array(int)", "5"),
        ("array(int)", "[1, 'x']"),
        ("array(int)", '[1, "x"]'),
        ("map", "[]"),
    ],
)
def test_fields_that_do_not_fit_their_type(cxl: Callable[..., Any], type_word: str, text: str) -> None:
    t = parse_type(type_word)
    assert t is not None
    with pytest.raises((Unfit, InputError)):
        fit_value(Guessed(text), t)
    done = cxl("eval", "-e", "emit y = x", "--schema", f"x: {type_word}", "--field", f"x={text}")
    assert done.code == 2 and "E225" in done.err


def test_json_is_read_by_the_schema(cxl: Callable[..., Any]) -> None:
    schema = "n: decimal(2), d: date, f: float, s: string, extra: int"
    record = '{"n": 1234567890123456789.015, "d": "2024-03-15", "f": 2, "s": "x", "other": 1}'
    done = cxl("eval", "-e", "emit n = n emit d = d emit f = f emit e = extra", "--schema", schema, "--record", record)
    assert json.loads(done.out) == {"n": "1234567890123456789.02", "d": "2024-03-15", "f": 2.0, "e": None}
    assert '"f": 2.0' in done.out


def test_values_that_are_not_of_the_declared_type() -> None:
    types = {word: parse_type(word) for word in ("int", "string", "bool", "array(int)", "map(string)")}
    with pytest.raises(InputError) as caught:
        row = read_record('{"int": true, "string": 5, "bool": [], "array(int)": {}, "map(string)": {"a": 1}}').rows[0]
        fit_record(row, types, 3)  # type: ignore[arg-type]
    assert [d.message for d in caught.value.diagnostics] == [
        "record 3: field 'int': true is not an Int",
        "record 3: field 'string': 5 is not a String",
        "record 3: field 'bool': an array is not a Bool",
        "record 3: field 'array(int)': an object is not an Array(Int)",
        "record 3: field 'map(string)': 1 is not a String",
    ]


@pytest.mark.parametrize(
    "args",
    [
        ("--record", "{"),
        ("--record", "[1, 2]"),
        ("--record", "[]"),
        ("--record", "5"),
        ("--record", "null"),
        ("--record", ""),
        ("--record", "{} x"),
        ("--record", '{"a": NaN}'),
        ("--record", '{"a": -Infinity}'),
        ("--record", '{"a": 123456789012345678901234567890}'),
        ("--record", '{"a": ' + "9" * 10_000 + "}"),
        ("--record", '{"a": 1e999}'),
        ("--record", '{"a": "\\ud800"}'),
        ("--record", '{"\\udfff": 1}'),
        ("--record", '{"a": ' + "[" * 10_000 + "]" * 10_000 + "}"),
        ("--record", '{"a": ' + '{"a":' * 10_000),
        ("--record", '{"a": ' + "[" * 500 + "]" * 500 + "}"),
        ("--record", "{'a': 1}"),
        ("--field", "a"),
        ("--field", "=1"),
        ("--field", "a=1", "--record", "{}"),
        ("--record", "{}", "--vars", "x"),
    ],
)
def test_unusable_records(cxl: Callable[..., Any], args: tuple[str, ...]) -> None:
    done = cxl("eval", "-e", "emit y = 1", *args)
    assert done.code == 2 and done.out == "" and "error[E225]" in done.err


def test_unusable_record_files(cxl: Callable[..., Any], tmp_path: Path) -> None:
    assert "E224" in cxl("eval", "-e", "1", "--record", f"@{tmp_path}/none.json").err
    assert cxl("eval", "-e", "1", "--record", f"@{tmp_path}").code == 2
    assert cxl("eval", "-e", "1", "--record", "-", stdin=b"\xff{}").code == 2
    done = cxl("eval", "-e", "1", "--record", "-", stdin='{"a": 1}\n{"a": }\n')
    assert done.code == 2 and "<stdin>:2:7" in done.err


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=30) | st.sampled_from(['{"a": 1}', "[{}]", "{}{}", '{"a": [1, {"b": null}]}']))
def test_no_record_text_gives_a_traceback(text: str) -> None:
    try:
        rows = read_record("@/nonexistent" if text.startswith("@") or text == "-" else text).rows
        schema = infer_schema(rows)
        dump([fit_record(row, schema) for row in rows])
    except InputError as error:
        assert error.diagnostics[0].code in ("E224", "E225")


# ----------------------------------------------------------------------- JSON


def test_values_as_json() -> None:
    value = {
        "at": dt.datetime(2024, 1, 2, 3, 4, 5),
        "frac": dt.datetime(2024, 1, 2, 3, 4, 5, 250_000),
        "on": dt.date(2024, 1, 2),
        "money": Decimal("1E+2"),
        "whole": 2.0,
        "nan": math.nan,
        "inf": [-math.inf, math.inf],
        "text": "ö\n",
    }
    assert dump(value) == (
        '{"at": "2024-01-02T03:04:05", "frac": "2024-01-02T03:04:05.250", "on": "2024-01-02", "money": "100", '
        '"whole": 2.0, "nan": "NaN", "inf": ["-inf", "inf"], "text": "ö\\n"}'
    )


def test_json_for_a_terminal_without_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ascii:
        encoding = "ascii"

    monkeypatch.setattr("sys.stdout", Ascii())
    assert dump("ö") == '"\\u00f6"'
