"""A code has a row, a page and a use; nothing uses or mentions a code that does not exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import clinker_spark
from clinker_spark.core.diagnostics import Severity
from clinker_spark.core.diagnostics.registry import codes, entries, lookup, parse_entry, suggest
from clinker_spark.cxl.errors import ErrorKind

ROOT = Path(clinker_spark.__file__).parent
FILES = ROOT / "core" / "diagnostics" / "codes"
CODE = re.compile(r"[EWX]\d{3}|E15Y")


def codes_in_source() -> set[str]:
    """Codes that stand alone in a string literal."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.add(node.value)
    return found


def test_codes_are_unique_and_well_formed() -> None:
    assert len(set(codes())) == len(codes())
    assert [code for code in codes() if not CODE.fullmatch(code)] == []


def test_every_file_is_a_code() -> None:
    assert {path.name for path in FILES.iterdir()} == {f"{code}.md" for code in codes()}


def test_codes_are_in_order() -> None:
    order = [code for code in codes() if code in ("E015", "E157", "E15Y", "E175", "E200", "W004", "X001")]
    assert order == ["E015", "E157", "E175", "E15Y", "E200", "W004", "X001"]
    assert [entry.code for entry in entries()] == list(codes())


def test_every_code_in_the_source_is_registered() -> None:
    assert codes_in_source() - set(codes()) == set()


def test_every_registered_code_is_used() -> None:
    # Record errors are used by their kind; the next test ties those to the language.
    assert {code for code in codes() if not code.startswith("X")} - codes_in_source() == set()


def test_every_kind_of_record_error_has_a_code() -> None:
    assert {entry.kind for entry in entries() if entry.kind} == {kind.value for kind in ErrorKind}


@pytest.mark.parametrize("code", codes())
def test_rows_and_pages_are_complete(code: str) -> None:
    entry = lookup(code)
    assert entry is not None and entry.code == code
    assert code.startswith("X") == (entry.kind is not None)
    assert entry.severity is (Severity.WARNING if code[0] == "W" else Severity.ERROR)
    assert entry.title.strip()
    assert all(sentence[:-1].strip() and sentence.endswith(".") for sentence in (entry.meaning, entry.action))
    assert entry.page.startswith(f"# {code}: {entry.title}\n")
    for section in ("## What it means", "## Example", "## What to do"):
        _, heading, rest = entry.page.partition(f"\n{section}\n")
        assert heading and rest.partition("\n## ")[0].strip(), section
    if entry.kind:
        assert f"`{entry.kind}`" in entry.page


@pytest.mark.parametrize("code", codes())
def test_rows_are_yaml(code: str) -> None:
    """Whoever shows the file (an editor, a forge) reads the same row."""
    entry = lookup(code)
    row = next(yaml.safe_load_all((FILES / f"{code}.md").read_text(encoding="utf-8").partition("\n# ")[0]))
    assert entry is not None
    assert row == {"meaning": entry.meaning, "action": entry.action} | ({"kind": entry.kind} if entry.kind else {})


@pytest.mark.parametrize("code", codes())
def test_pages_mention_only_codes_that_exist(code: str) -> None:
    entry = lookup(code)
    assert entry is not None
    assert set(re.findall(rf"\b(?:{CODE.pattern})\b", entry.page)) - set(codes()) == set()


@pytest.mark.parametrize(
    "text",
    [
        "# E299: odd\n",
        '---\nmeaning: "It is odd."\naction: "Even it."\n# E299: odd\n',
        '---\naction: "Even it."\n---\n# E299: odd\n',
        '---\nmeaning: "It is odd."\n---\n# E299: odd\n',
        '---\nmeaning: It is odd.\naction: "Even it."\n---\n# E299: odd\n',
        '---\nmeaning: "It is odd."\naction: "Even it."\nnote: "Hm."\n---\n# E299: odd\n',
    ],
    ids=["no row", "row without an end", "no meaning", "no action", "no quotes", "unknown key"],
)
def test_a_file_in_another_form_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        parse_entry("E299", text)


def test_lookup() -> None:
    assert lookup(" x002 ") is lookup("DIVISION_BY_ZERO") is lookup("X002")
    assert lookup(" e15y ") is lookup("E15Y") is not None
    assert lookup("E999") is None
    assert lookup("") is None
    assert lookup("../codes/E200") is None


def test_suggest() -> None:
    assert suggest("E20O") == "E200"
    assert suggest("division_zero") == "division_by_zero"
    assert suggest("completely different") is None


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("from clinker_spark.cli.clinker.main import main; main()", []),
        ("from clinker_spark.core.diagnostics.registry import lookup; lookup('e200')", ["E200.md"]),
        ("from clinker_spark.core.diagnostics.registry import entries; entries()", [f"{code}.md" for code in codes()]),
    ],
    ids=["clinker --help", "lookup", "entries"],
)
def test_only_what_is_asked_for_is_read(code: str, read: list[str]) -> None:
    watch = "import sys; sys.addaudithook(lambda event, args: event == 'open' and print('open', args[0])); "
    done = subprocess.run([sys.executable, "-c", watch + code, "--help"], capture_output=True, text=True, check=True)
    opened = [line.removeprefix("open ") for line in done.stdout.splitlines() if line.startswith("open ")]
    assert [Path(path).name for path in opened if Path(path).parent == FILES] == read
