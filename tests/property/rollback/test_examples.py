"""The examples of the rules: the model gives what was worked out by hand, and so do runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.property.rollback.check import execute
from tests.property.rollback.examples import EXAMPLES, Example
from tests.property.rollback.explained import EXPLAINED
from tests.property.rollback.model import Model


@pytest.mark.parametrize("example", [*EXAMPLES, *EXPLAINED], ids=lambda example: example.rule)
def test_the_model_follows_the_rule(example: Example) -> None:
    result = Model(example.graph).run()
    assert (result.outputs, result.letters) == (example.outputs, Counter(example.letters)), "\n".join(result.reasons)


@pytest.mark.parametrize("example", [*EXAMPLES, *EXPLAINED], ids=lambda example: example.rule)
def test_a_run_follows_the_rule(example: Example, spark: Any, tmp_path: Path) -> None:
    found = execute(example.graph, tmp_path, spark)
    assert (found.outputs, found.letters) == (example.outputs, Counter(example.letters)), example.graph.yaml()
