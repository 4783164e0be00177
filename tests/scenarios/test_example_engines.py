"""Every example with `engine: spark` and with `engine: vector`: the same files, dead letters and numbers.

Where nothing of an example has a vector form, `engine: vector` is refused (E340), and all engines have one plan.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.core.span import Source
from clinker_spark.plan.facts import Facts
from clinker_spark.plan.prepare import prepare
from tests.scenarios.test_examples import EXAMPLES, NAMES, Outcome, copied, expected, outcome_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERYTHING = os.environ.get("CLINKER_CASES") == "all"
_HEAD = re.compile(r"^pipeline:[ \t]*(\{|\n(?=( +)\S))", re.MULTILINE)
"""Where the settings of a pipeline begin, in one line or in lines of their own."""


def with_engine(text: str, engine: str) -> str:
    """The pipeline with another engine.

    >>> with_engine("pipeline: { name: p }", "spark")
    'pipeline: { engine: spark, name: p }'
    >>> with_engine("pipeline:\\n  name: p\\n", "spark")
    'pipeline:\\n  engine: spark\\n  name: p\\n'
    """
    changed, times = _HEAD.subn(
        lambda m: f"pipeline: {{ engine: {engine}," if m[1] == "{" else f"pipeline:\n{m[2]}engine: {engine}\n",
        text,
    )
    assert times == 1
    return changed


def facts_with(name: str, engine: str) -> Facts | str:
    """What is known about an example with another engine; the code if it is refused."""
    path = EXAMPLES / name / "pipeline.yaml"
    try:
        source = Source(str(path), with_engine(path.read_text(encoding="utf-8"), engine))
        return prepare(path, text=source).facts
    except ClinkerError as refused:
        return refused.diagnostics[0].code


def test_there_is_something_to_compare() -> None:
    assert sum(isinstance(facts_with(name, "vector"), Facts) for name in NAMES) >= 5


@pytest.mark.parametrize("small", [True, False] if EVERYTHING else [False], ids=lambda small: "one" if small else "cut")
@pytest.mark.parametrize("name", NAMES)
def test_example_is_the_same_with_each_engine(
    name: str, small: bool, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_auto, with_spark, with_vector = (facts_with(name, engine) for engine in ("auto", "spark", "vector"))
    assert isinstance(with_spark, Facts) and isinstance(with_auto, Facts)
    assert not with_spark.flow.fragments and not with_spark.flow.totals
    engines = ["spark", "vector"]
    if not isinstance(with_vector, Facts):
        assert with_vector == "E340"
        assert not with_auto.flow.fragments and not with_auto.flow.totals
        if not EVERYTHING:
            return  # `test_example` runs the same plan
        engines.remove("vector")
    from tests.spark.fragments.engines import sizes

    spark = request.getfixturevalue("spark" if EVERYTHING else "quick")
    with sizes(spark, monkeypatch, small=small, target=60):
        found = [run_with(name, engine, spark, tmp_path / engine) for engine in engines]
    assert found[0][0] == expected(name)
    for seen in found:
        assert seen == found[0]


def run_with(name: str, engine: str, spark: SparkSession, folder: Path) -> tuple[Outcome, Any]:
    """What a run of an example gives, and its numbers if it published."""
    pipeline = copied(name, folder)
    pipeline.write_text(with_engine(pipeline.read_text(encoding="utf-8"), engine), encoding="utf-8")
    outcome, report = outcome_of(pipeline, spark)
    if report is None:
        return outcome, None
    numbers = [(n.name, n.took, n.passed, n.dropped, n.failed) for n in report.nodes]
    sources = [(s.name, s.records, s.dead_letters) for s in report.sources]
    return outcome, (numbers, sources, [balance.as_dict() for balance in report.balances])
