"""Parts that workers write themselves: complete ones only, in the order of the tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run import outputs
from clinker_spark.runtime.run.files.assemble import part_files
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.fragments.part_files import PartFiles, fresh_folders
from clinker_spark.spark.scan.csv import source as csv_source
from clinker_spark.spark.session.small_inputs import SETTING
from tests.spark.fragments.pipelines import ROUTED, pipeline, write_files


def test_a_part_is_there_when_it_is_complete(tmp_path: Path) -> None:
    first, second = fresh_folders(str(tmp_path / "parts"), 2)
    with PartFiles(str(tmp_path / "parts")) as files:
        files.write(1, pl.Series(["a\n", "é,1\n"]))
        files.write(1, pl.Series(["a\n", "x\n", "b\n"]).slice(1, 2).filter(pl.Series([True, True])))
        assert not part_files(Path(second))
    assert not part_files(Path(first))  # no lines, no part
    [part] = part_files(Path(second))
    assert part.read_text() == "a\né,1\nx\nb\n"
    with PartFiles(str(tmp_path / "parts")) as files:  # the task runs once more
        files.write(1, pl.Series(["again\n"]))
    assert part_files(Path(second)) == [part] and part.read_text() == "again\n"


def test_a_failure_leaves_no_part(tmp_path: Path) -> None:
    [folder] = fresh_folders(str(tmp_path / "parts"), 1)
    (Path(folder) / "part-00000-.text").write_text("of an earlier job")
    [folder] = fresh_folders(str(tmp_path / "parts"), 1)
    with pytest.raises(ValueError, match="no"), PartFiles(str(tmp_path / "parts")) as files:
        files.write(0, pl.Series(["a\n"]))
        raise ValueError("no")
    assert not list(Path(folder).iterdir())


def test_no_line_goes_through_spark(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One job for all outputs, whose frame has a row for each task and nothing of the records."""
    before = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, "0")
    monkeypatch.setattr(csv_source.read_csv, "__kwdefaults__", {"target": 4_000, "smallest": 1})
    seen = []
    write = outputs.write_parts_in_workers

    def noted(prepared: list[Any]) -> list[str]:
        folders = write(prepared)
        seen.append(([len(part_files(Path(folder))) for folder in folders], prepared[0].frame.schema.names))
        return folders

    monkeypatch.setattr(outputs, "write_parts_in_workers", noted)
    try:
        write_files(tmp_path, 5, 400)
        (tmp_path / "p.yaml").write_text(pipeline("csv", ROUTED, "csv", "vector"))
        report = run(prepare(tmp_path / "p.yaml"), spark, Options())
    finally:
        if before is None:
            spark.conf.unset(SETTING)
        else:
            spark.conf.set(SETTING, before)
    [(parts, names)] = seen
    assert len(parts) == 4 and max(parts) > 2 and names == ["output"]
    assert sum(output.records or 0 for output in report.outputs) > 200
