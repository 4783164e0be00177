"""What users are told, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.core.diagnostics.registry import codes, lookup
from tests.config.golden_cases import answer, cases, findings, kind, split
from tests.config.page_examples import pages, with_answers


@pytest.mark.parametrize("path", cases(), ids=lambda path: path.stem)
def test_broken_files_give_exactly_this_text(path: Path) -> None:
    given, expected = split(path)
    assert answer(path) == expected
    for found in findings(given, kind(path)):
        assert lookup(found.code) is not None
        assert found.help, f"{found.code} has no help"
        assert found.source is not None and found.span is not None
        assert 0 <= found.span.start <= found.span.end <= len(given)


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_examples_on_pages_are_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert with_answers(text) == text, "run python -m tests.config.page_examples"
    assert f"[{path.stem}]" in text


def test_every_code_of_a_configuration_has_an_example() -> None:
    shown = {found.code for path in cases() for found in findings(split(path)[0], kind(path))}
    shown |= {path.stem for path in pages()}
    mine = [code for code in codes() if code[:2] in ("E0", "E1", "E3", "W0") or "E201" <= code <= "E218"]
    elsewhere = {"E015", "E025", "E202", "E203", "E204"}  # the command line, Spark, and CXL
    elsewhere |= {f"E{n:03}" for n in (16, 17, 18, 19, 20, 103, 104, 107, 112, 156, 171, 365)}  # the plan and replays
    elsewhere |= {f"E{n}" for n in range(172, 176)} | {"E341"}  # variables, in the plan
    elsewhere |= {f"E{n}" for n in (303, 304, 305, 307, 308, 309, 313, 327, 328, 329)} | {"E15Y"}  # combines, keys
    elsewhere |= {"E216", "E312", "E373", "E374", "E375", "E315", "E316", "E319", "E325", "E368", "W017"}  # the run
    elsewhere |= {
        "E310",
        "E320",
        "E321",
        "E330",
        "E331",
        "E334",
        "E340",
    }  # memory, spilled data, engines: in the plan and the run
    elsewhere |= {"E343", "E344", "E346"}  # resources, whole files: in the plan and the run
    elsewhere |= {"E350", "E351", "E352", "E353", "E354", "E366"}  # documents, columns: in the plan and the run
    elsewhere |= {"E332", "E333", "E335", "E336", "E337"}  # staging, in the run
    assert set(mine) - shown - elsewhere == set()
