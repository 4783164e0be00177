"""A code has a row, a page and a use; nothing has a code that is not in the registry."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import clinker_spark
from clinker_spark.core import registry
from clinker_spark.core.diagnostics import Severity
from clinker_spark.core.registry import ENTRIES, Entry, lookup, page, suggest
from clinker_spark.cxl.errors import ErrorKind

ROOT = Path(clinker_spark.__file__).parent
CODE = re.compile(r"[EWX]\d{3}|E15Y")
CODES = [entry.code for entry in ENTRIES]


def codes_in_source() -> set[str]:
    """Codes that stand alone in a string literal anywhere but in the registry."""
    found = set()
    for path in ROOT.rglob("*.py"):
        if path == Path(registry.__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value):
                found.add(node.value)
    return found


def test_codes_are_unique_and_well_formed() -> None:
    assert len(set(CODES)) == len(CODES)
    assert [code for code in CODES if not CODE.fullmatch(code)] == []


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    pages = {path.stem for path in (ROOT / "core" / "pages").iterdir()}
    assert pages == set(CODES)


def test_every_code_in_the_source_is_registered() -> None:
    assert codes_in_source() - set(CODES) == set()


def test_every_registered_code_is_used() -> None:
    # Record errors are used by their kind; the next test ties those to the language.
    assert {entry.code for entry in ENTRIES if entry.kind is None} - codes_in_source() == set()


def test_every_kind_of_record_error_has_a_code() -> None:
    assert {entry.kind for entry in ENTRIES if entry.kind} == {kind.value for kind in ErrorKind}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.code)
def test_rows_and_pages_are_complete(entry: Entry) -> None:
    assert entry.code.startswith("X") == (entry.kind is not None)
    assert entry.severity is (Severity.WARNING if entry.code[0] == "W" else Severity.ERROR)
    assert entry.meaning.endswith(".") and entry.action.endswith(".")
    text = page(entry)
    assert text.startswith(f"# {entry.code}: {entry.title}\n")
    for section in ("## What it means", "## Example", "## What to do"):
        assert f"\n{section}\n" in text
    if entry.kind:
        assert f"`{entry.kind}`" in text


def test_lookup() -> None:
    assert lookup(" x002 ") is lookup("DIVISION_BY_ZERO") is lookup("X002")
    assert lookup("E999") is None
    assert lookup("") is None


def test_suggest() -> None:
    assert suggest("E20O") == "E200"
    assert suggest("division_zero") == "division_by_zero"
    assert suggest("completely different") is None
