"""Outputs, dead letters and numbers of a run are the same, whether Spark or the workers compute the records."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.scan.csv import source as csv_source
from clinker_spark.spark.session.small_inputs import SETTING
from tests.spark.fragments.pipelines import ONE_OUTPUT, ROUTED, pipeline, write_files

CASES = [
    ("csv", ONE_OUTPUT, "csv", "exclusive", True),
    ("csv", ROUTED, "mixed", "exclusive", False),
    ("json", ROUTED, "ndjson", "inclusive", True),
]
MORE = [
    ("csv", ROUTED, "csv", "exclusive", False),
    ("csv", ROUTED, "mixed", "inclusive", True),
    ("csv", ONE_OUTPUT, "semicolons", "exclusive", False),
    ("json", ROUTED, "ndjson", "inclusive", False),
    ("csv", ONE_OUTPUT, "array", "exclusive", False),
    ("csv", ROUTED, "ndjson", "inclusive", True),
    ("csv", ROUTED, "csv", "exclusive", True),
    ("json", ONE_OUTPUT, "ndjson", "exclusive", True),
    ("json", ONE_OUTPUT, "array", "exclusive", False),
    ("json", ROUTED, "array", "exclusive", True),
    ("csv", ROUTED, "semicolons", "inclusive", False),
]


def _letters(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return [
            {k: v for k, v in row.items() if k not in ("_cxl_dlq_id", "_cxl_dlq_timestamp")}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize(
    ("source", "nodes", "kind", "mode", "small"),
    CASES + (MORE if os.environ.get("CLINKER_CASES") == "all" else []),
    ids=lambda value: "routed" if value == ROUTED else "one" if value == ONE_OUTPUT else str(value),
)
def test_engines_write_the_same(
    source: str,
    nodes: str,
    kind: str,
    mode: str,
    small: bool,
    tmp_path: Path,
    spark: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    before = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, str(4 << 20) if small else "0")
    monkeypatch.setattr(csv_source.read_csv, "__kwdefaults__", {"target": 4_000, "smallest": 1})
    try:
        for engine in ("spark", "vector"):
            folder = tmp_path / engine
            folder.mkdir()
            write_files(folder, 5, 400)
            (folder / "p.yaml").write_text(pipeline(source, nodes, kind, engine, mode))
            plan = prepare(folder / "p.yaml")
            assert bool(plan.facts.flow.fragments) == (engine == "vector")
            report = run(plan, spark, Options())
            files = {
                p.name: p.read_bytes()
                for p in sorted(folder.iterdir())
                if p.name[0] != "." and p.stem not in ("in", "p", "dead")
            }
            numbers = [(n.name, n.took, n.passed, n.dropped, n.failed) for n in report.nodes]
            sources = [(s.name, s.records, s.dead_letters) for s in report.sources]
            balances = [balance.as_dict() for balance in report.balances]
            seen.append((files, _letters(folder / "dead.csv"), numbers, sources, balances))
    finally:
        spark.conf.unset(SETTING) if before is None else spark.conf.set(SETTING, before)
    of_spark, of_vector = seen
    assert list(of_spark[0]) == list(of_vector[0])
    for name, content in of_spark[0].items():
        assert content == of_vector[0][name], name
        assert content.count(b"\n") > 5
    assert len(of_spark[1]) > 20
    assert of_spark[1] == of_vector[1]
    assert of_spark[2:] == of_vector[2:]
