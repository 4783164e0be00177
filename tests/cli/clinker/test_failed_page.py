"""A run that fails has a page as well, which says why."""

from __future__ import annotations

from typing import Any

import pytest

from clinker_spark.cli.clinker.actions.run_session import run_with_page
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { id: int } } }
  - { type: output, name: out, input: orders, config: { type: csv, path: out.csv } }
"""


def test_a_failed_run_has_a_page(bench: Any) -> None:
    bench.file("orders.csv", "id\n1\nx\n")
    plan = prepare(bench.file("pipeline.yaml", PIPELINE))
    place = bench.folder / "run.html"
    with pytest.raises(ClinkerError) as failed:
        run_with_page(plan, bench.spark, Options(measure=True), lambda event, details: None, str(place))
    text = place.read_text()
    assert ">Why it ended<" in text and ">failed: nothing was published<" in text and ">Memory<" in text
    assert failed.value.diagnostics[0].code in text and not (bench.folder / "out.csv").exists()


def test_a_run_that_is_done_has_its_page_later(bench: Any) -> None:
    bench.file("orders.csv", "id\n1\n")
    plan = prepare(bench.file("pipeline.yaml", PIPELINE))
    place = bench.folder / "run.html"
    report = run_with_page(plan, bench.spark, Options(), lambda event, details: None, str(place))
    assert report.exit_code == 0 and not place.exists()
    assert report.cost.tasks == 2
