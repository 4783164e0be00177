"""`cxl check`: what is right and wrong with programs, schemas and files, and what it costs to ask."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.cli.cxl.main import COMMANDS
from clinker_spark.cli.cxl.schemas import load_schema
from clinker_spark.core.errors import InputError


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "order.cxl"
    file.write_text("let net = price * qty\nemit total = net * 2\n", encoding="utf-8")
    return file


def problem(given: str) -> list[tuple[str, str, str | None]]:
    with pytest.raises(InputError) as caught:
        load_schema(given)
    assert caught.value.exit_code == 2
    return [(d.code, d.message, d.help) for d in caught.value.diagnostics]


# ------------------------------------------------------------------ the group


@pytest.mark.parametrize("name", COMMANDS)
def test_summaries_are_those_of_the_commands(name: str) -> None:
    command = importlib.import_module(COMMANDS[name].module).command
    assert command.get_short_help_str(200) == COMMANDS[name].summary


@pytest.mark.parametrize("args", [("--help",), ("check", "--help"), ("eval", "-h"), ("fmt", "-h"), ("repl", "-h")])
def test_help(cxl: Callable[..., Any], args: tuple[str, ...]) -> None:
    assert cxl(*args).code == 0


def test_unknown_command(cxl: Callable[..., Any]) -> None:
    done = cxl("chekc")
    assert done.code == 2 and "did you mean 'check'?" in done.err


def test_check_as_a_process_loads_nothing_heavy(program: Path) -> None:
    code = (
        "import sys, runpy\nsys.argv = ['cxl', 'check', sys.argv[1]]\n"
        "try:\n    runpy.run_module('clinker_spark.cli.cxl.main', run_name='__main__')\n"
        "except SystemExit as end:\n    print('EXIT', end.code)\n"
        "heavy = ('pyspark', 'py4j', 'pandas', 'pyarrow', 'pydantic', 'rich', 'prompt_toolkit', 'yaml')\n"
        "print('HEAVY', [m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(program)], capture_output=True, text=True, check=True)
    assert done.stdout == "EXIT 0\nHEAVY []\n"
    assert done.stderr == f"ok: {program} is valid\n"


# ------------------------------------------------------------------- programs


def test_a_valid_program(cxl: Callable[..., Any], program: Path) -> None:
    assert cxl("check", program) == (0, "", f"ok: {program} is valid\n")


def test_a_schema_closes_the_world(cxl: Callable[..., Any], program: Path) -> None:
    done = cxl("check", program, "--schema", "prise: float, qty: int")
    assert done.code == 1 and done.out == ""
    assert "error[E203]: unresolved identifier 'price'" in done.err
    assert "did you mean 'prise'?" in done.err
    assert f"{program}:1:11" in done.err and "ok:" not in done.err


def test_all_errors_of_a_phase_at_once(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "two.cxl"
    file.write_text('emit a = 1 + "x"\nemit b = true < false\n')
    done = cxl("check", file)
    assert done.code == 1 and done.err.count("error[E200]") == 2 and "2 errors" in done.err


def test_warnings_are_no_failure(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "quiet.cxl"
    file.write_text("filter x > 0\n")
    done = cxl("check", file)
    assert done.code == 0 and "warning[W200]" in done.err and done.err.endswith(f"ok: {file} is valid\n")


def test_standard_input(cxl: Callable[..., Any]) -> None:
    assert cxl("check", "-", stdin="emit a = 1") == (0, "", "ok: <stdin> is valid\n")
    done = cxl("check", "-", stdin="emit a = ")
    assert done.code == 1 and "<stdin>:1" in done.err


def test_several_files_end_with_the_worst_code(cxl: Callable[..., Any], program: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cxl"
    wrong.write_text("emit a = 1 +\n")
    done = cxl("check", program, wrong)
    assert done.code == 1 and f"ok: {program} is valid" in done.err and "E202" in done.err
    assert cxl("check", wrong, tmp_path / "none.cxl", program).code == 2


def test_types(cxl: Callable[..., Any], program: Path) -> None:
    for option in ("--types", "--verbose", "-v"):
        done = cxl("check", program, "--schema", "price: float, qty: nullable(int)", option)
        assert (done.code, done.out) == (0, "total  Nullable(Float)\n")


def test_json_has_the_findings(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "bad.cxl"
    file.write_text("emit a = nope\n")
    done = cxl("check", file, "--schema", "{}", "--json")
    assert done.code == 1 and done.err == ""
    [found] = json.loads(done.out)
    assert (found["code"], found["phase"], found["line"], found["column"]) == ("E203", "resolve", 1, 10)
    file.write_text("emit a = 1\n")
    assert cxl("check", file, "--json") == (0, "[]\n", "")
    assert json.loads(cxl("check", file, "--schema", "a: x", "--json").out)[0]["code"] == "E226"
    assert json.loads(cxl("check", tmp_path / "none", "--json").out)[0]["code"] == "E224"
    assert cxl("check", file, "--json", "--types").code == 2


# -------------------------------------------------------------------- modules


def test_modules_come_from_the_rules_folder(
    cxl: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "rules" / "shared"
    folder.mkdir(parents=True)
    (folder / "money.cxl").write_text("let RATE = 0.5\nfn gross(x) = x * RATE\n")
    file = tmp_path / "use.cxl"
    file.write_text("use shared.money as m\nemit g = m.gross(net)\n")
    assert cxl("check", file, "--rules", tmp_path / "rules").code == 0
    monkeypatch.chdir(tmp_path)
    assert cxl("check", file).code == 0  # rules/ is the default
    assert cxl("check", file, "--rules", tmp_path / "none").code == 2
    done = cxl("check", file, "--rules", folder)
    assert done.code == 1 and "E227" in done.err


def test_a_module_is_checked_as_one(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "money.cxl"
    file.write_text("let RATE = 0.5\nfn gross(x) = x * RATE\n")
    assert cxl("check", file) == (0, "", f"ok: {file} is valid\n")
    file.write_text("let RATE = 0.5\nfn gross(x) = x * RAT\n")
    done = cxl("check", file)
    assert done.code == 1 and "unresolved identifier 'RAT'" in done.err and f"{file}:2:19" in done.err
    file.write_text("use other\nfn gross(x) = x\n")
    assert "E227" in cxl("check", file).err


# -------------------------------------------------------------- unusable files


def test_files_that_cannot_be_read(cxl: Callable[..., Any], tmp_path: Path, program: Path) -> None:
    done = cxl("check", tmp_path / "ordr.cxl")
    assert done.code == 2 and "error[E224]: cannot read" in done.err and f"did you mean '{program}'?" in done.err
    assert cxl("check", tmp_path / "no" / "folder.cxl").code == 2
    assert "is a directory" in cxl("check", tmp_path).err
    assert cxl("check", "a\0b").code == 2
    binary = tmp_path / "binary.cxl"
    binary.write_bytes(b"emit a = '\xff'")
    done = cxl("check", binary)
    assert done.code == 2 and "not UTF-8 text (byte 0xff at offset 10)" in done.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(cxl: Callable[..., Any], program: Path) -> None:
    program.chmod(0)
    assert cxl("check", program).code == 2


def test_strange_but_readable_files(cxl: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "f.cxl"
    file.write_bytes(b"")
    assert cxl("check", file).code == 0
    file.write_bytes(b"\0\0emit")
    assert cxl("check", file).code == 1
    file.write_bytes(b"\xef\xbb\xbfemit a = 1\r\nemit b = 2\r\n")
    assert cxl("check", file).code == 0
    file.write_text("emit a = 1\n" * 7000)
    done = cxl("check", file)
    assert done.code == 1 and "limit" in done.err


def test_no_file_at_all(cxl: Callable[..., Any]) -> None:
    assert cxl("check").code == 2


# --------------------------------------------------------------------- schemas


@pytest.mark.parametrize(
    "text",
    [
        "price: float\nqty: int\n",
        '{"price": "float", "qty": "int"}',
        '{\n\t"price": "float",\n\t"qty": "int"\n}',
        "fields:\n  - {name: price, type: float}\n  - name: qty\n    type: int\n",
        "- {name: price, type: float}\n- {name: qty, type: int, description: how many}\n",
        "\ufeff# a comment\nprice: float\nqty: {type: int}\n",
    ],
)
def test_schema_files(tmp_path: Path, text: str) -> None:
    file = tmp_path / "schema.yaml"
    file.write_text(text, encoding="utf-8")
    assert {name: str(t) for name, t in load_schema(str(file)).items()} == {"price": "Float", "qty": "Int"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("price: float, qty: int", {"price": "Float", "qty": "Int"}),
        ("{price: decimal(10, 2), 'd': nullable(date)}", {"price": "Decimal", "d": "Nullable(Date)"}),
        ('{"a": "array(string)"}', {"a": "Array(String)"}),
        ("a: any,\n b: date_time,", {"a": "Any", "b": "DateTime"}),
        ("", {}),
        ("{}", {}),
    ],
)
def test_inline_schemas(text: str, expected: dict[str, str]) -> None:
    assert {name: str(t) for name, t in load_schema(text).items()} == expected


def test_long_form_of_a_column(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("a: {type: decimal, scale: 2, nullable: true}\nfields: string\n")
    schema = load_schema(str(file))
    assert (schema["a"].scale, schema["a"].nullable, str(schema["fields"])) == (2, True, "String")


@pytest.mark.parametrize(
    ("given", "code", "advice"),
    [
        ("a: inteer", "E226", "did you mean 'int'?"),
        ("a: intger", "E226", "did you mean 'int'?"),
        ("a: timestamp", "E226", "did you mean 'date_time'?"),
        ("a: array(str)", "E226", "did you mean 'string'?"),
        ("a: nulable(int)", "E226", "did you mean 'nullable'?"),
        ("a: xyzzyx", "E226", "the types are bool, int"),
        ("a: decimal(x)", "E226", "the types are"),
        ("a: decimal(²)", "E226", "the types are"),
        ("a: decimal(99)", "E226", "the largest scale is 28"),
        ("a: " + "array(" * 5000, "E226", "the types are"),
        ("a:", "E226", "the types are"),
        ("a: int, b", "E226", "column: type"),
        ("a: int, a: int", "E226", "column: type"),
        (": int", "E226", "column: type"),
    ],
)
def test_wrong_schemas(given: str, code: str, advice: str) -> None:
    [(found, _, help_text)] = problem(given)
    assert found == code and help_text is not None and advice in help_text


@pytest.mark.parametrize(
    "text",
    [
        "just text",
        "a: [1, 2]",
        "a: {scale: 2}",
        "a: b: c",
        "{a: int",
        "- 1\n- 2",
        "? [a]\n: int",
        "a: int\na: float",
        "a: \x07",
        "[" * 3000,
    ],
)
def test_wrong_schema_files(cxl: Callable[..., Any], tmp_path: Path, program: Path, text: str) -> None:
    file = tmp_path / "schema.yaml"
    file.write_text(text)
    done = cxl("check", program, "--schema", file)
    assert done.code == 2 and "error[E226]" in done.err


def test_all_wrong_types_at_once_with_their_places(cxl: Callable[..., Any], tmp_path: Path, program: Path) -> None:
    file = tmp_path / "schema.yaml"
    file.write_text("a: numbers\nb: int\nc: decimal(99)\n")
    done = cxl("check", program, "--schema", file)
    assert done.code == 2 and f"{file}:1:4" in done.err and f"{file}:3:4" in done.err
    assert done.err.count("error[E226]") == 2 and "ok:" not in done.err


def test_a_missing_schema_file(cxl: Callable[..., Any], tmp_path: Path, program: Path) -> None:
    done = cxl("check", program, "--schema", tmp_path / "none.yaml")
    assert done.code == 2 and "error[E226]: cannot read" in done.err
    assert cxl("check", program, "--schema", tmp_path).code == 2
