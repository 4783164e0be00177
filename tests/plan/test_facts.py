"""What passes find out about small plans: text files with the pipeline and its facts side by side. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinker_spark.plan.facts import Facts
from tests.plan.fact_fixtures import FOLDER, cases, facts_of, owned, owner, pass_names, rewritten


@pytest.mark.parametrize("path", cases(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_facts(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == rewritten(path), "python -m tests.plan.fact_fixtures writes them anew"


def test_every_pass_has_fixtures() -> None:
    assert {owner(path) for path in cases()} == set(pass_names()) == {path.name for path in FOLDER.iterdir()}


def test_every_fact_has_one_owner() -> None:
    owners = [name for found in pass_names() for name in owned(found)]
    assert sorted(owners) == sorted(name for name, _ in facts_of(Facts()))
