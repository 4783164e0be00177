"""Generated graphs over dirty data of all formats: what a run says about its records is what a model counts, and what
lies in the files."""

from __future__ import annotations

import csv
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.build.metrics import Metrics
from tests.property.accounting_graphs import FORMATS, Graph, count_file, generated

PLAIN = 8
SEEDS = 60 if os.environ.get("CLINKER_CASES") == "all" else PLAIN


@pytest.fixture(autouse=True)
def first_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are right at once: nothing is counted again, which would hide that they were not."""

    def recount(_: Metrics, names: Iterable[str]) -> None:
        raise AssertionError(f"counted again: {list(names)}")

    monkeypatch.setattr(Metrics, "recount", recount)


def letters_of(folder: Path) -> int:
    path = folder / "dead.csv"
    if not path.exists():
        return 0
    with open(path, newline="") as file:
        return len(list(csv.DictReader(file)))


def compare(graph: Graph, spark: Any, engine: str = "auto") -> None:
    (graph.folder / "pipeline.yaml").write_text(graph.text.replace("{ name:", f"{{ engine: {engine}, name:", 1))
    plan = prepare(graph.folder / "pipeline.yaml")
    report = run(plan, spark, Options())
    found = {
        node.name: (node.took if not node.inputs or node.kind == "merge" else next(iter(node.inputs.values())), node)
        for node in report.nodes
    }
    for name, expected in graph.expected.items():
        took, node = found[name]
        assert (name, took, node.passed, node.dropped, node.failed) == (
            name,
            expected.took,
            expected.passed,
            expected.dropped,
            expected.failed,
        ), graph.text
        assert not expected.failed or name in plan.facts.fallible
    failed = sum(n.failed for n in graph.expected.values())
    assert letters_of(graph.folder) == report.dead_letters == failed + graph.bad_files
    for name, (path, kind) in graph.written.items():
        assert count_file(path, kind) == graph.expected[name].passed
    assert sum(source.records or 0 for source in report.sources) == graph.read
    for balance in report.balances:
        assert balance.missing == 0


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_numbers_of_a_run_are_those_of_the_model(seed: int, tmp_path: Path, spark: Any) -> None:
    graph = generated(seed, tmp_path)
    for engine in ("auto", "spark") if SEEDS != PLAIN else ("auto",):
        compare(graph, spark, engine)


def test_every_format_to_every_format(tmp_path: Path, spark: Any) -> None:
    """Each with every kind of bad record it can have, and a file that is skipped; nothing between source and output."""
    graph = Graph(random.Random(7), tmp_path)
    for i, kind in enumerate(FORMATS):
        stream = graph.source(kind, 40, dirty=0.3, bad_file=True)
        for other in {"parquet", FORMATS[i], FORMATS[i - 1]} if SEEDS == PLAIN else FORMATS:
            graph.output(stream, other)
    compare(graph, spark)
