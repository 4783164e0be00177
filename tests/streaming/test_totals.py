"""Totals of windows of time in streams: behind a source, and behind joins."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.streaming.run import StreamOptions, run_stream
from tests.streaming.model import arrivals, events, write_files
from tests.streaming.test_join_algebra import EDGES

further = pytest.mark.skipif(os.environ.get("CLINKER_CASES") != "all", reason="half a minute; CLINKER_CASES=all")
DELAY = dt.timedelta(seconds=4)
SOURCE = """\
  - type: source
    name: {name}
    config: {{ type: json, glob: {name}/*.jsonl, options: {{ format: ndjson }}, watermark: {{ column: at, delay: 4s }},
              schema: {{ id: int, k: nullable(string), at: date_time, n: int }} }}
"""
JOIN = """\
  - type: stream_join
    name: j
    input: {{ left: l, right: r }}
    config: {{ left_keys: [k], right_keys: [k], time_window: 5s, kind: {kind} }}
"""
TOTAL = """\
  - type: aggregate
    name: {name}
    input: {input}
    config:
      group_by: [{by}]
      documents: together
      time_window: {window}
      cxl: |
        emit rows = count(*)
        emit total = sum({value})
        emit mean = avg({value})
        emit share = 12 / (max({value}) - 9)
  - type: output
    name: out_{name}
    input: {name}
    config: {{ type: json, path: {place}/{name}.json, options: {{ format: ndjson }} }}
"""
WINDOWS = {
    "tumbling": "{ tumbling: { size: 7s } }",
    "hopping": "{ hopping: { size: 10s, slide: 4s } }",
    "session": "{ session: { gap: 300ms } }",
}


def pipeline(place: str, kind: str) -> str:
    """Two queries: totals behind a source, and totals behind a join."""
    text = "pipeline: { name: totals }\nstream: { max_files: 1, partitions: 1 }\n"
    text += f"error_handling: {{ strategy: continue, dlq: {{ path: {place}/dead.csv }} }}\nnodes:\n"
    text += "".join(SOURCE.format(name=name) for name in ("l", "r")) + JOIN.format(kind=kind)
    session = TOTAL.format(name="s", input="l", by="k", window=WINDOWS["session"], value="n", place=place)
    window = WINDOWS["tumbling" if kind == "left" else "hopping"]
    side = "right" if kind == "right" else "left"
    joined = TOTAL.format(name="w", input="j", by=f"{side}_k", window=window, value=f"{side}_n", place=place)
    return text + session + joined


def lines(paths: list[Path]) -> Counter[str]:
    """Objects without the order of their keys."""
    found = [line for path in paths for line in path.read_text().splitlines()]
    return Counter(json.dumps(json.loads(line), sort_keys=True) for line in found)


@pytest.mark.parametrize(("seed", "kind"), [(2, "right"), pytest.param(1, "left", marks=further)])
def test_run_and_stream_have_the_same_totals(tmp_path: Path, started: SparkSession, seed: int, kind: str) -> None:
    left, right = events(seed, 40, EDGES)
    write_files(tmp_path / "l", arrivals(seed, left, DELAY), 2)
    write_files(tmp_path / "r", arrivals(seed + 1, right, DELAY), 2)
    for place in ("finite", "stream"):
        (tmp_path / f"{place}.yaml").write_text(pipeline(place, kind))
    run(prepare(tmp_path / "finite.yaml"), started)
    options = StreamOptions(once=True, flush=True)
    report = run_stream(prepare(tmp_path / "stream.yaml"), started, options, lambda event, details: None)
    assert report.late == 0
    for name in ("s", "w"):
        finite = lines([tmp_path / "finite" / f"{name}.json"])
        assert lines(sorted((tmp_path / "stream").glob(f"{name}-*.json"))) == finite
        assert sum(finite.values()) > 10
    dead = len((tmp_path / "finite" / "dead.csv").read_text().splitlines()) - 1
    assert report.letters == dead > 0
