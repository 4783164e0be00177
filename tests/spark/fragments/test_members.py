"""Lines of JSON whose members are copied have the bytes that Spark writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.spark.fragments.members import member_runs, unread_columns
from tests.spark.fragments.engines import both_engines, sizes

PIPELINE = """
pipeline: { name: p, engine: ENGINE }
nodes:
  - type: source
    name: s
    config:
      type: json
      path: in.json
      options: { format: ndjson }
      schema:
        - { name: id, type: int }
        - { name: name, type: string }
        - { name: price, type: "nullable(float)" }
        - { name: day, type: date }
        - { name: flag, type: "nullable(bool)" }
  - type: transform
    name: t
    input: s
    config: { cxl: "filter id != 3\\nemit part = 100 / (id - 7)\\nemit day = day.add_days(1)" }
  - { type: output, name: all, input: t, config: { type: json, path: all.json, options: { format: ndjson } } }
  - type: output
    name: some
    input: t
    config:
      type: json
      path: some.json
      preserve_nulls: true
      mapping: [name, id, part, { cost: price }, flag, { again: day }, { more: name }]
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def _write(folder: Path) -> None:
    lines = []
    for i in range(300):
        price = i / 4 if i < 200 else [None, 7, 1e-7][i % 3]
        record: dict[str, Any] = {"id": i, "name": f"näme {i}", "price": price, "day": "2024-02-29", "flag": i % 2 > 0}
        if i > 280:
            record |= {"name": 'a "b" \\', "flag": None}
        lines.append(json.dumps(record, separators=(",", ":"), ensure_ascii=False))
    (folder / "in.json").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("small", [True, False])
def test_the_bytes_are_those_of_spark(tmp_path: Path, spark: Any, monkeypatch: Any, small: bool) -> None:
    with sizes(spark, monkeypatch, small=small):
        files, letters, *_ = both_engines(spark, tmp_path, _write, PIPELINE)
    assert files["all.json"].count(b"\n") == 298
    assert len(letters) == 1


def test_members_that_nothing_changes_stand_together(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.replace("ENGINE", "vector"))
    _write(tmp_path)
    plan = prepare(tmp_path / "p.yaml")
    source = plan.source("s")
    runs = {output.name: member_runs(plan, output, source) for output in plan.outputs}
    shown = {
        name: {at: [(cell.name, cell.column) for cell in run.cells] for at, run in found.items()}
        for name, found in runs.items()
    }
    assert shown["all"][0] == [("id", "id"), ("name", "name"), ("price", "price")]
    assert shown["some"] == {0: [("name", "name"), ("id", "id")], 3: [("cost", "price"), ("flag", "flag")]}
    assert unread_columns(plan, source, runs) == {"price"}  # `name` is written once more, alone
