"""Fast paths change how long a run takes and nothing else; each is listed, can be left out, and is measured."""

from __future__ import annotations

import ast
import datetime as dt
import json
import os
import re
from pathlib import Path
from typing import Any

import clinker_spark
from clinker_spark.core.fast_paths import FAST_PATHS, taken, without
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from tests.scenarios.test_examples import without_marks

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "bench_fast_paths.py"

PIPELINE = """\
pipeline: {{ name: {name}, engine: {engine} }}
nodes:
  - {{ type: source, name: orders, config: {{ type: csv, path: ../orders.csv,{key}
       schema: {{ id: int, customer: string, qty: int }} }} }}
  - {{ type: transform, name: priced, input: orders, config: {{ cxl: "emit share = 100 / qty" }} }}
  - {{ type: output, name: lines, input: priced, config: {{ type: csv, path: lines.csv }} }}
  - {{ type: source, name: more, config: {{ type: csv, path: ../orders.csv,{key}
       schema: {{ id: int, customer: string, qty: int }} }} }}
  - {{ type: aggregate, name: totals, input: more, config: {{ group_by: [customer],
       cxl: "emit customer = customer\\nemit qty = sum(qty)" }} }}
  - {{ type: output, name: sums, input: totals, config: {{ type: csv, path: sums.csv }} }}
  - {{ type: transform, name: large, input: totals, config: {{ cxl: "filter qty > 20" }} }}
  - {{ type: output, name: chosen, input: large, config: {{ type: csv, path: chosen.csv }} }}
error_handling: {{ strategy: continue, dlq: {{ path: dead.csv }} }}
"""

KINDS = {
    "auto": ("auto", ""),
    "spark": ("spark", ""),
    "groups": ("auto", " correlation_key: id,"),
    "json": ("auto", ""),
}
"""Pipelines by name: the engine, and the key of groups that are withheld together. One reads JSON lines."""


def made(folder: Path, spark: Any) -> dict[str, bytes]:
    """What a run writes: outputs and dead letters."""
    options = Options(execution_id="0", now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    run(prepare(folder / "pipeline.yaml"), spark, options)
    found = {path.name: path.read_bytes() for path in folder.glob("*.csv")}
    found["dead.csv"] = without_marks(found["dead.csv"])
    for path in folder.glob("*.csv"):
        path.unlink()
    return found


def test_they_change_no_byte(tmp_path: Path, spark: Any) -> None:
    lines = [f"{i},c{i % 7},{i % 10 if i % 23 else 'x'}" for i in range(300)]
    (tmp_path / "orders.csv").write_text("id,customer,qty\n" + "\n".join(lines) + "\n")
    for name, (engine, key) in KINDS.items():
        (tmp_path / name).mkdir()
        text = PIPELINE.format(name=name, engine=engine, key=key)
        if name == "json":
            text = text.replace("type: csv, path: ../orders.csv", "type: json, path: ../orders.jsonl")
        (tmp_path / name / "pipeline.yaml").write_text(text)
    records = [dict(zip(("id", "customer", "qty"), line.split(","), strict=True)) for line in lines]
    values = [{**r, "id": int(r["id"]), "qty": r["qty"] if r["qty"] == "x" else int(r["qty"])} for r in records]
    (tmp_path / "orders.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in values))
    usual = {name: made(tmp_path / name, spark) for name in KINDS}
    assert {name: text.count(b"\n") for name, text in usual["auto"].items()} == {
        "lines.csv": 259,
        "sums.csv": 8,
        "chosen.csv": 8,
        "dead.csv": 57,
    }
    for kind, bytes_ in usual.items():
        with without(*FAST_PATHS):
            assert made(tmp_path / kind, spark) == bytes_
        for name in FAST_PATHS if os.environ.get("CLINKER_CASES") == "all" else ():
            with without(name):
                assert made(tmp_path / kind, spark) == bytes_, name
    assert all(map(taken, FAST_PATHS))


def test_each_is_asked_for_and_measured() -> None:
    asked = {
        name
        for path in Path(clinker_spark.__file__).parent.rglob("*.py")
        if path.name != "fast_paths.py"
        for name in re.findall(r'\btaken\("(\w+)"\)', path.read_text(encoding="utf-8"))
    }
    assert asked == FAST_PATHS.keys()
    body = ast.parse(BENCHMARK.read_text(encoding="utf-8")).body
    [jobs] = [node.value for node in body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "JOBS"]
    assert isinstance(jobs, ast.Dict)
    assert {ast.literal_eval(key) for key in jobs.keys if key is not None} == FAST_PATHS.keys()
