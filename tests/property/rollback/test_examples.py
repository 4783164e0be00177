"""The examples of the rules: the model gives what was worked out by hand, and so do runs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.spark.session.small_inputs import SETTING
from tests.property.rollback.check import execute
from tests.property.rollback.examples import EXAMPLES, Example
from tests.property.rollback.explained import EXPLAINED, REPLAYED
from tests.property.rollback.graph import text_of
from tests.property.rollback.metamorphic import replayed
from tests.property.rollback.model import Model

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
SHOWN = (
    "A record of a source without a key",
    "A total of nothing",
    "Group scope goes by",
    "Group scope leaves out totals",
    "The groups of a failed total",
    "What fails behind that combine",
)
"""The examples that the plain suite plans as for large inputs, too."""


@pytest.mark.parametrize("example", [*EXAMPLES, *EXPLAINED], ids=lambda example: example.rule)
def test_the_model_follows_the_rule(example: Example) -> None:
    result = Model(example.graph).run()
    assert (result.outputs, result.letters) == (example.outputs, Counter(example.letters)), "\n".join(result.reasons)


@pytest.mark.parametrize("example", [*EXAMPLES, *EXPLAINED], ids=lambda example: example.rule)
def test_a_run_follows_the_rule(example: Example, spark: Any, tmp_path: Path) -> None:
    found = execute(example.graph, tmp_path, spark)
    assert (found.outputs, found.letters) == (example.outputs, Counter(example.letters)), example.graph.yaml()


LARGE = [example for example in EXAMPLES if not EVERYTHING and example.rule.startswith(SHOWN)] or EXAMPLES


@pytest.mark.parametrize("example", LARGE, ids=lambda example: example.rule)
def test_a_run_over_large_inputs_follows_the_rule(spark: Any, tmp_path: Path, example: Example) -> None:
    before = spark.conf.get(SETTING)
    spark.conf.set(SETTING, "0")
    try:
        test_a_run_follows_the_rule(example, spark, tmp_path)
    finally:
        spark.conf.set(SETTING, before)


def test_a_replay_follows_the_rule(spark: Any, tmp_path: Path) -> None:
    execute(REPLAYED.graph, tmp_path, spark)
    assert replayed(tmp_path, spark) == Counter(REPLAYED.letters)
    source = REPLAYED.graph.sources[0]
    fed = sorted({number for name, number, *_ in REPLAYED.letters if name == source.name})
    assert [path.read_text() for path in (tmp_path / "fed").iterdir()] == [text_of(source.rows[n - 1] for n in fed)]
    again = {name: (tmp_path / f"{name}-replay.csv").read_text().splitlines() for name in REPLAYED.outputs}
    assert again == {name: lines[:1] for name, lines in REPLAYED.outputs.items()}
