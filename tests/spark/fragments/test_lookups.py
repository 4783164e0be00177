"""Lookups of a worker by themselves, without Spark: batches that are cut, and what is counted on the way."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from clinker_spark.cxl.system import default_context
from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.fragments import runner
from clinker_spark.spark.fragments.runner import Runner
from clinker_spark.spark.fragments.steps import FragmentSteps, Places
from clinker_spark.spark.fragments.task import Table
from tests.spark.fragments.test_joins import END, JOIN, RANGE, SOURCES


def _counted(tmp_path: Path, match: str, miss: str) -> tuple[list[str], dict[str, int]]:
    """The lines of one batch of a hundred orders, and the counts."""
    join = JOIN.replace("WHERE", f"{RANGE} and o.whole * p.code != 5000").replace("MATCH", match).replace("MISS", miss)
    join = join.replace("INPUTS", "{ o: asked, p: fine }").replace("NAME", "j").replace("MORE", "")
    (tmp_path / "p.yaml").write_text((SOURCES + join + END).replace("ENGINE", "auto"))
    for name in ("orders", "products", "cities"):
        (tmp_path / f"{name}.csv").write_text("x\n")
    plan, context = prepare(tmp_path / "p.yaml"), default_context("x")
    products = pl.DataFrame(
        {
            "p.code": [50, 60, 70, None] * 5,
            "p.rate": [float(i) for i in range(20)],
            "p.low": [float(i % 7) for i in range(20)],
            "p.high": [float(i % 7 + i % 3) for i in range(20)],
            "p.since": [None] * 20,
            "p.title": [f"t{i}" for i in range(20)],
            "p.tax": list(range(20)),
            "p.cost": [Decimal(i) / 4 for i in range(20)],
        },
        schema_overrides={"p.since": pl.Date, "p.cost": pl.Decimal(38, 2)},
    ).with_columns(pl.col("p.low").alias("$join.rb0"), pl.col("p.high").alias("$join.rb1"))
    content = io.BytesIO()
    products.write_ipc(content)
    tables = {("j", "p"): Table(f"{tmp_path}", None, content.getvalue())}
    builder: Any = SimpleNamespace(plan=plan, context=lambda node: context)
    places = Places()
    fragment = plan.facts.flow.fragments["out j"]
    task = FragmentSteps(builder, fragment, places, {}, tables).task(plan.source("orders"))
    orders = {
        "id": list(range(100)),
        "code": [None if i % 5 == 0 else i % 4 for i in range(100)],
        "rate": [None if i % 11 == 0 else i % 9 + 0.5 for i in range(100)],
        "cost": [Decimal(i) for i in range(100)],
    }
    kinds = {"id": pa.int64(), "code": pa.int64(), "rate": pa.float64(), "cost": pa.decimal128(38, 2)}
    types = pa.schema(list(kinds.items()))
    rows = [row for b in Runner(task).run([pa.RecordBatch.from_pydict(orders, types)]) for row in b.to_pylist()]
    lines = "\n".join(row["value"] for row in rows if row["value"] is not None).split("\n")
    counts = rows[-1]["counts"]
    return lines, {f"{place}/{name}": counts[i] for place, m in places.metrics.items() for name, i in m.items()}


@pytest.mark.parametrize(("match", "miss"), [("all", "skip"), ("first", "null_fields"), ("all", "error")])
def test_a_batch_with_too_many_matches_is_cut(
    match: str, miss: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, counts = _counted(tmp_path, match, miss)
    monkeypatch.setattr(runner, "MOST_PAIRS", 3)
    assert _counted(tmp_path, match, miss) == (whole, counts)
    assert len(whole) > 20


def test_misses_are_counted_where_they_are_failures(tmp_path: Path) -> None:
    kept, skipped, failed = (_counted(tmp_path, "first", miss)[1] for miss in ("null_fields", "skip", "error"))
    missed = sum(kept[f"out j/{end}"] - skipped[f"out j/{end}"] for end in ("rows", "failed"))
    assert missed > 10
    assert failed["out j/rows"] == skipped["out j/rows"]
    assert failed["out j/failed"] == skipped["out j/failed"] + missed
