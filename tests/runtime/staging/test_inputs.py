"""Whole runs over staged inputs: the same bytes out, and everything else as it is without copies."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.runtime.run.report import RunReport
from clinker_spark.runtime.staging.entry import kind_of
from tests.crash.staged import stage
from tests.runtime.discover.test_input_changes import pipeline as five_formats
from tests.runtime.discover.test_input_changes import write_inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LETTERS = """
pipeline: { name: staged }
nodes:
  - type: source
    name: orders
    config: { type: csv, glob: in/*.csv, schema: { id: int, amount: float } }
  - type: transform
    name: t
    input: orders
    config: { cxl: "emit file = $source.file\\nemit path = $source.path\\nemit row = $source.row" }
  - { type: output, name: out, input: t, config: { type: csv, path: out/o.csv } }
error_handling: { strategy: continue, dlq: { path: out/dead.csv } }
"""


def settings(root: Path, folder: Path, **more: Any) -> None:
    given = {"enabled": True, "dir": str(folder), "patterns": ["*"], **more}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    (root / "clinker.toml").write_text("[storage.staging]\n" + "\n".join(lines) + "\n")


class Events:
    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, details: dict[str, Any]) -> None:
        self.all.append((event, details))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [details for event, details in self.all if event == name]


def go(root: Path, spark: SparkSession, events: Callable[[str, dict[str, Any]], None] | None = None) -> RunReport:
    return run(prepare(root / "pipeline.yaml"), spark, Options(), events)


def without_ids(text: str) -> list[list[str]]:
    return [line.split(",")[2:] for line in text.splitlines()]


def test_all_formats_are_read_from_copies(tmp_path: Path, elsewhere: Path, spark: SparkSession) -> None:
    """Compressed ones by the ending of the original; a folder of Parquet files part by part. Nothing but the copies is
    read: the originals may change as soon as these are chosen."""
    write_inputs(tmp_path)
    (tmp_path / "pipeline.yaml").write_text(five_formats())
    settings(tmp_path, elsewhere / "stage", on_existing="reuse", cleanup="never")
    compressed = (tmp_path / "a.csv.gz").stat().st_size
    events = Events()

    def meddle(event: str, details: dict[str, Any]) -> None:
        events(event, details)
        if event == "output_started":
            for path in (tmp_path / "a.csv.gz", tmp_path / "a.json", tmp_path / "a.parquet" / "1.parquet"):
                path.write_bytes(b"nonsense")
            (tmp_path / "a.xml").unlink()

    report = go(tmp_path, spark, meddle)
    assert (tmp_path / "out.csv").read_text() == "id,name\n1,aa\n2,bb\n3,cc\n4,dd\n5,ee\n6,ee\n"
    assert [(item.source, item.action) for item in report.staging] == [
        ("csv", "copied"), ("json", "copied"), ("xml", "copied"), ("fixed_width", "copied"),
        ("parquet", "copied"), ("parquet", "copied"),
    ]  # fmt: skip
    sizes = [item.bytes for item in report.staging]
    assert sizes[0] == compressed and sum(sizes) == sum(s.bytes for s in report.sources)
    assert {item["action"] for item in events.of("staged")} == {"copied"} and len(events.of("staged")) == 6
    assert all(set(item) == {"source", "file", "bytes", "bytes_total"} for item in events.of("staging"))
    assert os.stat(elsewhere / "stage").st_mode & 0o777 == 0o700
    assert "staging" in report.cost.stage_seconds and report.as_dict()["staging"][0]["action"] == "copied"


def test_dead_letters_and_system_columns_are_those_of_the_originals(
    tmp_path: Path, elsewhere: Path, spark: SparkSession
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,amount\n1,2.5\nx,3\n3,4,5\n")
    (tmp_path / "in" / "b.csv").write_text("id,amount\n4,1\n5,bad\n")
    (tmp_path / "pipeline.yaml").write_text(LETTERS)
    assert go(tmp_path, spark).dead_letters == 3
    plain, dead = ((tmp_path / "out" / name).read_text() for name in ("o.csv", "dead.csv"))
    settings(tmp_path, elsewhere, on_existing="reuse")
    stage(elsewhere, tmp_path / "in" / "b.csv", cleanup="never")
    report = go(tmp_path, spark)
    assert report.dead_letters == 3 and [item.action for item in report.staging] == ["copied", "reused"]
    assert (tmp_path / "out" / "o.csv").read_text() == plain and f"{tmp_path}/in/a.csv" in plain
    assert without_ids((tmp_path / "out" / "dead.csv").read_text()) == without_ids(dead)
    assert os.listdir(elsewhere) == []  # cleanup
    manifest = next((tmp_path / "out").glob(".clinker-manifest-*")).read_text()
    assert f"{tmp_path}/in/a.csv" in manifest and ".staged" not in manifest


def test_a_run_that_fails_keeps_its_copies_or_removes_them(
    tmp_path: Path, elsewhere: Path, spark: SparkSession
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,amount\n1,2.5\nx,3\n")
    (tmp_path / "pipeline.yaml").write_text(LETTERS.replace("strategy: continue", "strategy: fail_fast"))
    for cleanup, kinds in (("on_success", {"staged", "manifest", "lock"}), ("always", set())):
        settings(tmp_path, elsewhere, cleanup=cleanup)
        with pytest.raises(ClinkerError) as caught:
            go(tmp_path, spark)
        assert caught.value.exit_code == 3
        assert {(kind_of(name) or ("", ""))[1] for name in os.listdir(elsewhere)} == kinds


def test_what_staging_refuses_publishes_nothing(tmp_path: Path, elsewhere: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.csv", "b.csv"):
        (tmp_path / "in" / name).write_text("id,amount\n1,2.5\n")
    (tmp_path / "pipeline.yaml").write_text(LETTERS)
    for more, code, exit_code, marked in (
        ({"disk_cap_bytes": 20}, "E336", 1, "20"),
        ({"on_existing": "error"}, "E337", 1, '"error"'),  # what the first left
        ({"dir": str(tmp_path / "stage")}, "E333", 1, f'"{tmp_path}/stage"'),
        ({"dir": str(tmp_path / "in" / "a.csv")}, "E426", 4, f'"{tmp_path}/in/a.csv"'),
    ):
        settings(tmp_path, elsewhere, **more)
        with pytest.raises(ClinkerError) as caught:
            go(tmp_path, spark)
        [found] = caught.value.diagnostics
        assert found.source is not None and found.span is not None
        assert (found.code, caught.value.exit_code) == (code, exit_code)
        assert found.source.text[found.span.start : found.span.end] == marked
        assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_a_source_that_is_changed_before_it_is_copied(tmp_path: Path, elsewhere: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,amount\n1,2.5\n")
    (tmp_path / "pipeline.yaml").write_text(LETTERS)
    settings(tmp_path, elsewhere)

    def meddle(event: str, details: dict[str, Any]) -> None:
        if event == "files_found":
            (tmp_path / "in" / "a.csv").write_text("id,amount\n1,2.5\n2,3.5\n")

    with pytest.raises(ClinkerError) as caught:
        go(tmp_path, spark, meddle)
    assert [d.code for d in caught.value.diagnostics] == ["E434"] and caught.value.exit_code == 4


def test_a_copy_that_somebody_meddles_with_stops_the_run(tmp_path: Path, elsewhere: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,amount\n1,2.5\n")
    (tmp_path / "pipeline.yaml").write_text(LETTERS)
    settings(tmp_path, elsewhere)

    def meddle(event: str, details: dict[str, Any]) -> None:
        if event == "staged":
            Path(details["path"]).write_text("id,amount\n1,9.9\n")
            os.utime(details["path"], ns=(0, 0))

    with pytest.raises(ClinkerError) as caught:
        go(tmp_path, spark, meddle)
    assert [d.code for d in caught.value.diagnostics] == ["E434"]
    assert "staged copy" in caught.value.diagnostics[0].message
