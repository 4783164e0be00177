"""Numbers of runs in a folder, and collected in one file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError, InputError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.measure.memory import MemorySampler
from clinker_spark.runtime.measure.spool import collect, keep, run_record, spooled
from clinker_spark.runtime.measure.used import Used
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.report import Balance, LetterReport, OutputReport, RunIdentity, RunReport, SourceReport

PIPELINE = """
pipeline: { name: orders }
nodes:
  - { type: source, name: a, config: { type: csv, path: a.csv, schema: { id: int } } }
  - { type: output, name: out, input: a, config: { type: csv, path: out.csv } }
"""


def runs(folder: Path, count: int = 2) -> list[str]:
    names = []
    for _ in range(count):
        options = Options()
        report = RunReport(RunIdentity("orders", options.execution_id, "", ""))
        report.sources = [SourceReport("a", 1, 10, 5, 1, ["a.csv"])]
        report.outputs = [OutputReport("out", ["out.csv"], 4, dropped=3)]
        report.letters = [LetterReport("a", "source", "type_coercion_failure", 1)]
        report.balances = [Balance(["a"], 5, 4, 1, [])]
        report.cost.tasks = 2
        keep(folder, run_record(None, options, report, 2, None))
        names.append(options.execution_id)
    return names


def collected(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_and_one_that_failed(tmp_path: Path) -> None:
    [name] = runs(tmp_path, 1)
    record = json.loads((tmp_path / f"{name}.json").read_text())
    assert record["records_total"] == 5 and record["records_ok"] == 4 and record["records_dlq"] == 1
    assert record["records_null_dropped"] == 3 and record["thread_count"] == 2
    assert record["input_files"] == ["a.csv"] and record["output_files"] == ["out.csv"] and record["exit_code"] == 2
    failed = run_record(None, Options(), None, 3, "E315: too many")
    assert failed["error"] == "E315: too many" and failed["records_total"] is None and failed["peak_rss_bytes"] is None
    assert set(failed) == set(record)


def test_what_a_run_used_that_failed(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    options = Options(spool=tmp_path / "spool")
    report = RunReport(RunIdentity("orders", options.execution_id, "", ""))
    report.outputs = [OutputReport("out", ["out.csv"], 4)]  # not published
    with pytest.raises(IoError), spooled(prepare(tmp_path / "p.yaml"), options) as watch:
        watch(report)
        with MemorySampler() as memory:
            report.cost.used = Used(memory, {}, 0.0, {"pauses": 3})
        raise IoError([Diagnostic("E310", "too much")])
    [record] = [json.loads(path.read_text()) for path in (tmp_path / "spool").iterdir()]
    assert (record["exit_code"], record["error"], record["records_written"]) == (4, "E310: too much", 0)
    assert record["output_files"] == [] and record["records_total"] is None
    assert record["peak_rss_bytes"] > 0 and record["used"]["arbitration"] == {"pauses": 3}


def test_runs_are_collected_once_and_in_order(tmp_path: Path) -> None:
    spool, output = tmp_path / "spool", tmp_path / "all" / "runs.ndjson"
    names = runs(spool)
    (spool / "other.json").write_text('{"execution_id": "x", "schema_version": 2}')
    (spool / "broken.json").write_text("{")
    dry = collect(spool, output, delete=True, dry_run=True)
    assert dry.runs == sorted(names) and not output.exists() and len(list(spool.iterdir())) == 4
    assert collect(spool, output, delete=False, dry_run=False).runs == sorted(names)
    more = runs(spool, 1)
    again = collect(spool, output, delete=True, dry_run=False)
    assert again.runs == more and again.known == sorted(names) and again.skipped == ["broken.json", "other.json"]
    assert [record["execution_id"] for record in collected(output)] == [*sorted(names), *more]
    assert sorted(path.name for path in spool.iterdir()) == ["broken.json", "other.json"]


def test_a_line_that_a_crash_left_half_written_is_no_run(tmp_path: Path) -> None:
    [name] = runs(tmp_path / "spool", 1)
    output = tmp_path / "runs.ndjson"
    output.write_text('{"execution_id": "half')
    collect(tmp_path / "spool", output, delete=True, dry_run=False)
    assert json.loads(output.read_text().splitlines()[1])["execution_id"] == name


def test_a_folder_that_is_none_and_a_file_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder"):
        collect(tmp_path / "missing", tmp_path / "out", delete=False, dry_run=False)
    (tmp_path / "file").write_text("")
    [warning] = keep(tmp_path / "file", run_record(None, Options(), None, 1, None))
    assert warning.code == "W440" and "cannot write" in warning.message
    runs(tmp_path / "spool", 1)
    with pytest.raises(IoError, match="cannot write"):
        collect(tmp_path / "spool", tmp_path / "file" / "out", delete=True, dry_run=False)
    assert len(list((tmp_path / "spool").iterdir())) == 1


def test_what_is_collected_is_not_lost_with_the_files_of_the_runs(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    names = runs(spool)
    (tmp_path / "link").symlink_to("spool")
    for output, code in (
        (next(spool.glob("*.json")), "E430"),
        (tmp_path / "link" / "all.json", "E430"),
        (spool, "E401"),
        (Path("/dev/full"), "E401"),
    ):
        with pytest.raises(ClinkerError) as caught:
            collect(spool, output, delete=True, dry_run=False)
        assert [d.code for d in caught.value.diagnostics] == [code]
        assert len(list(spool.iterdir())) == len(names)
    found = collect(spool, Path("/dev/null"), delete=False, dry_run=False)
    assert found.runs == sorted(names)
