"""`type: dataset` in pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.config.model.schema import Column
from clinker_spark.core.errors import ClinkerError
from clinker_spark.dataset.selection import Query
from clinker_spark.runtime.dataset.imports import import_events
from clinker_spark.spark.dataset.partitions import Partitions
from clinker_spark.spark.scan.dataset.source import pruned
from clinker_spark.spark.scan.request import ReadRequest
from tests.dataset.model import recorded
from tests.dataset.test_semantics import INDEXES, RECORDING
from tests.plan.fact_fixtures import planned
from tests.support.workbench import Workbench

PIPELINE = """
pipeline: { name: robots }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
nodes:
  - type: source
    name: robots
    config:
      type: dataset
      path: dataset
      index: frame
      segments: [seg1]
      fill_latest_at: true
      MORE
      on_unmapped: drop
      schema:
        - { name: frame, type: int }
        - { name: a, type: int, source_name: "/a:v" }
        - { name: b, type: nullable(array(int)), source_name: "/b:v" }
        - { name: cal, type: nullable(int), source_name: "/static_e:cal" }
  - type: transform
    name: rates
    input: robots
    config:
      cxl: |
        emit frame = frame
        emit rate = 600 / (a - 100)
        emit last = b
  - type: output
    name: out
    input: rates
    config: { type: json, path: out.jsonl, options: { format: ndjson } }
"""


def pipeline(more: str = "") -> str:
    return PIPELINE.replace("MORE\n", f"{more}\n" if more else "origin_time: false\n")


def test_rows_of_a_dataset_are_records_and_failures_are_letters(bench: Workbench) -> None:
    recorded(bench.folder, RECORDING, INDEXES)
    report = bench.run(pipeline())
    assert report.exit_code in (0, 2)
    rows = [json.loads(line) for line in bench.text("out.jsonl").splitlines()]
    assert [row["frame"] for row in rows] == [30, 35, 40, 50]
    assert rows[0]["last"] == [1] and rows[3]["last"] == []
    letters = bench.letters()
    assert [(letter["_cxl_dlq_source_row"], letter["frame"], letter["a"]) for letter in letters] == [
        ("1", "10", "100"),
        ("2", "20", "100"),
    ]
    assert bench.left_over() == []


def test_given_values_and_a_range(bench: Workbench) -> None:
    recorded(bench.folder, RECORDING, INDEXES)
    bench.run(pipeline("values: [31, 33, 45]\n      range: [32, null]"))
    assert [json.loads(line)["frame"] for line in bench.text("out.jsonl").splitlines()] == [33, 45]


def test_a_steady_pace_and_columns_that_nobody_declared(bench: Workbench) -> None:
    """Without `on_unmapped: drop` all columns go to the output; a step is a key as well."""
    recorded(bench.folder, RECORDING, INDEXES)
    bench.run(pipeline("every: 10\n      origin_time: true").replace("on_unmapped: drop", "row_ids: true"))
    rows = [json.loads(line) for line in bench.text("out.jsonl").splitlines()]
    assert [row["frame"] for row in rows] == [30, 40, 50]
    assert (rows[1]["/a:v@origin_time"], rows[1]["/a:v@row_id"], rows[1]["/a:w"]) == (30, 2, 9)


def test_what_does_not_fit_is_said_with_its_place(bench: Workbench) -> None:
    with pytest.raises(ClinkerError, match="is no dataset: there is no"):
        bench.run(pipeline())
    recorded(bench.folder, RECORDING, INDEXES)
    with pytest.raises(ClinkerError, match="has no entity '/arm'"):
        bench.run(pipeline('entities: ["/arm"]'))


def test_explain_says_where_python_is(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(pipeline())
    shown = CliRunner().invoke(clinker, ["run", str(tmp_path / "p.yaml"), "--explain"], catch_exceptions=False).output
    assert "rows of a dataset are assembled by Python" in shown and "source:dataset" in shown


def test_columns_that_nobody_reads_are_not_fetched() -> None:
    """Unless their values could be wrong, or dead letters show them. An index is in every row."""
    kinds = {"frame": "int", "a": "int", "b": "nullable(int)", "c": "nullable(int)"}
    columns = tuple(Column(name=name, type=kind) for name, kind in kinds.items())
    options = SimpleNamespace(type="dataset", index="frame")
    request = ReadRequest("robots", (), columns, options, wanted=frozenset({"c"}))
    assert [column.name for column in pruned(request).columns] == ["a", "c"]
    assert [column.name for column in pruned(replace(request, record=True)).columns] == list(kinds)


BOUNDED = """
pipeline: { name: robots }
nodes:
  - type: source
    name: robots
    config:
      type: dataset
      path: dataset
      index: frame
      fill_latest_at: true
      on_unmapped: drop
      schema:
        - { name: segment, type: string }
        - { name: frame, type: int }
        - { name: a, type: nullable(int), source_name: "/a:v" }
        - { name: b, type: nullable(array(int)), source_name: "/b:v" }
  - { type: transform, name: some, input: robots, config: { cxl: "filter CONDITION" } }
  - { type: output, name: out, input: some, config: { type: json, path: out.jsonl, options: { format: ndjson } } }
"""


def test_filters_on_segment_and_index_are_pushed_into_the_fetch(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are those that the filter leaves of all; what is asked of the dataset is less. Filters on values are not
    pushed: they act on filled rows."""
    recorded(bench.folder, RECORDING, INDEXES)
    asked: list[Query] = []
    of = Partitions.of
    monkeypatch.setattr(Partitions, "of", lambda *args: (asked.append(args[1]), of(*args))[1])
    everything = {("seg1", frame, a) for frame, a in zip((10, 20, 30, 35, 40, 50), (100, 100, *[301] * 4), strict=True)}
    everything |= {("seg2", 5, 1000), ("seg2", 15, 1001)}
    cases: list[tuple[str, Callable[[str, int, int], bool], tuple[Any, Any, Any]]] = [
        ("frame > 20 and 40 >= frame and a > 0", lambda s, f, a: 20 < f <= 40, (("seg1", "seg2"), 21, 40)),
        ("segment == 'seg2' and frame < 15", lambda s, f, a: s == "seg2" and f < 15, (("seg2",), None, 14)),
        ("segment == 'nope'", lambda s, f, a: False, ((), None, None)),
        ("frame == 35", lambda s, f, a: f == 35, (("seg1", "seg2"), 35, 35)),
        ("frame > 40 and frame < 30", lambda s, f, a: False, ((), None, None)),
        ("a == 301", lambda s, f, a: a == 301, (None, None, None)),
        ("frame > 40 or a == 100", lambda s, f, a: f > 40 or a == 100, (None, None, None)),
    ]
    for condition, holds, (segments, low, high) in cases:
        asked.clear()
        bench.run(BOUNDED.replace("CONDITION", condition))
        rows = [json.loads(line) for line in bench.text("out.jsonl").splitlines()]
        found = {(row["segment"], row["frame"], row["a"]) for row in rows}
        assert found == {row for row in everything if holds(*row)}, condition
        assert asked[0].segments == segments, condition
        if low is not None or high is not None:
            assert asked[0].range is not None
            assert low in (None, asked[0].range[0]) and high in (None, asked[0].range[1]), condition


def test_filters_on_points_in_time_are_pushed_into_the_fetch(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the microsecond, and only where both sides are points in time."""
    events = "".join(
        f'{{"segment": "s", "entity": "/a", "at": "2026-01-31T12:00:0{n}Z", "v": {n}}}\n' for n in range(10)
    )
    (bench.folder / "events.jsonl").write_text(events)
    import_events(str(bench.folder / "dataset"), [str(bench.folder / "events.jsonl")], ["at"])
    asked: list[Query] = []
    of = Partitions.of
    monkeypatch.setattr(Partitions, "of", lambda *args: (asked.append(args[1]), of(*args))[1])
    at = lambda second: f"'2026-01-31T12:00:0{second}'.to_datetime()"  # noqa: E731
    start = 1769860800_000_000
    cases: list[tuple[str, list[int], tuple[int, int] | None]] = [
        (f"frame > {at(2)} and {at(5)} >= frame", [3, 4, 5], (start + 2_000_001, start + 5_000_000)),
        (f"frame == {at(7)}", [7], (start + 7_000_000, start + 7_000_000)),
        (f"frame < {at(1)} or a == 9", [0, 9], None),
    ]
    for condition, values, bounds in cases:
        asked.clear()
        text = BOUNDED.replace("CONDITION", condition).replace("index: frame", "index: at")
        text = text.replace("{ name: frame, type: int }", "{ name: frame, type: date_time, source_name: at }")
        bench.run(text.replace('        - { name: b, type: nullable(array(int)), source_name: "/b:v" }\n', ""))
        assert [json.loads(line)["a"] for line in bench.text("out.jsonl").splitlines()] == values, condition
        assert asked[0].range == bounds, condition


def test_explain_says_what_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(BOUNDED.replace("CONDITION", "frame > 20 and segment == 'seg1'"))
    shown = CliRunner().invoke(clinker, ["run", str(tmp_path / "p.yaml"), "--explain"], catch_exceptions=False).output
    assert "  only: frame > 20, segment == 'seg1'\n" in shown


def test_records_that_fail_or_are_numbered_are_all_read() -> None:
    """A filter that can fail, a source that can, and `$source.row` see all records."""
    for change in (
        lambda text: text.replace("CONDITION", "10 / a > 0 and frame > 20"),
        lambda text: text.replace("nullable(int)", "int").replace("CONDITION", "frame > 20"),
        lambda text: text.replace("CONDITION", "frame > 20\\nemit n = $source.row"),
    ):
        assert planned(change(BOUNDED)).facts.columns.bounds == {}
    [bound] = planned(BOUNDED.replace("CONDITION", "frame > 20")).facts.columns.bounds["robots"]
    assert (bound.column, bound.op, bound.value) == ("frame", ">", 20)
