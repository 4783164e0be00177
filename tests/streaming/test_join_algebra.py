"""One pipeline three times: as a run over its files, as a stream that is drained and flushed, and in plain Python.

All kinds and windows are joins of one query, over the same events."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.streaming.run import StreamOptions, run_stream
from tests.streaming.model import MS, arrivals, events, joined, read_pairs, write_files

DELAY = dt.timedelta(seconds=4)
SECOND = dt.timedelta(seconds=1)
WINDOWS = {
    "both": ("5s", -5 * SECOND, 5 * SECOND),
    "later": ("{ min: 0s, max: 8s }", 0 * SECOND, 8 * SECOND),
    "before": ("{ min: -7s, max: -1s }", -7 * SECOND, -1 * SECOND),
    "none": ("{ min: 2s, max: 2s }", 2 * SECOND, 2 * SECOND),
}
KINDS = ("inner", "left", "right", "full")
SAMPLE = [("full", "later", True), ("full", "both", False), ("right", "before", False)]
"""Two of one kind, which read both sides alike. One kind after the other takes minutes."""
EDGES = [edge + step for _, *window in WINDOWS.values() for edge in window for step in (-MS, 0 * MS, MS)]

SOURCE = """\
  - type: source
    name: {name}
    config: {{ type: json, glob: {name}/*.jsonl, options: {{ format: ndjson }}, watermark: {{ column: at, delay: 4s }},
              schema: {{ id: int, k: nullable(string), at: date_time, n: int }} }}
"""
JOIN = """\
  - type: stream_join
    name: {name}
    input: {{ left: l, right: r }}
    config: {{ left_keys: [k], right_keys: [k], time_window: {window}, kind: {kind}{where} }}
  - {{ type: transform, name: t{case}, input: {name}, config: {{ cxl: "emit case = {case}" }} }}
"""
OUTPUT = """\
  - {{ type: merge, name: all, inputs: [{inputs}] }}
  - type: output
    name: out
    input: all
    config: {{ type: json, path: {place}/out.json, options: {{ format: ndjson }} }}
"""


Case = tuple[str, str, bool]


def pipeline(place: str, cases: list[Case]) -> str:
    text = "pipeline: { name: algebra }\nstream: { max_files: 1, partitions: 1 }\nnodes:\n"
    text += "".join(SOURCE.format(name=name) for name in ("l", "r"))
    for i, (kind, window, where) in enumerate(cases):
        also = ', where: "left.n > right.n"' if where else ""
        text += JOIN.format(name=f"j{i}", window=WINDOWS[window][0], kind=kind, where=also, case=i)
    return text + OUTPUT.format(inputs=", ".join(f"t{i}" for i in range(len(cases))), place=place)


def groups() -> list[list[Case]]:
    """What runs together: the joins of one query."""
    if os.environ.get("CLINKER_CASES") != "all":
        return [SAMPLE]
    return [[(kind, window, where) for kind in KINDS] for window in WINDOWS for where in (False, True)]


@pytest.mark.parametrize(("seed", "cases"), list(enumerate(groups())), ids=lambda given: str(given)[:40])
def test_run_stream_and_model_agree(tmp_path: Path, started: SparkSession, seed: int, cases: list[Case]) -> None:
    left, right = events(seed, 60, EDGES)
    write_files(tmp_path / "l", arrivals(seed, left, DELAY), 2)
    write_files(tmp_path / "r", arrivals(seed + 1, right, DELAY), 2)
    for place in ("finite", "stream"):
        (tmp_path / f"{place}.yaml").write_text(pipeline(place, cases))

    run(prepare(tmp_path / "finite.yaml"), started)
    report = run_stream(
        prepare(tmp_path / "stream.yaml"), started, StreamOptions(once=True, flush=True), lambda event, details: None
    )

    assert report.late == 0 and report.letters == 0
    assert report.records == {"l": len(left), "r": len(right)}
    finite = read_pairs([tmp_path / "finite" / "out.json"])
    streamed = read_pairs(sorted((tmp_path / "stream").glob("out-*.json")))
    for i, (kind, window, where) in enumerate(cases):
        _, least, most = WINDOWS[window]
        wanted = joined(left, right, kind, least, most, (lambda a, b: a.n > b.n) if where else lambda a, b: True)
        assert finite[i] == wanted, (kind, window, where)
        assert streamed[i] == wanted, (kind, window, where)
    assert sum(wanted.values()) > 50
