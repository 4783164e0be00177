"""`clinker stream` and `clinker state` as they are typed, and the same from Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from clinker_spark.cli.clinker.main import clinker
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.measure.spool import collect
from clinker_spark.streaming.api import Join, Source, StateStore, run_streaming_pipeline
from clinker_spark.streaming.checkpoint import Checkpoint
from clinker_spark.streaming.run import StreamOptions, StreamRun
from clinker_spark.streaming.watch.progress import StreamReport

PIPELINE = """\
pipeline: { name: paid, metrics: { spool_dir: numbers } }
stream: { partitions: 1 }
nodes:
  - { type: source, name: a, config: { type: csv, glob: "a/*.csv", watermark: { column: at, delay: 1s },
      schema: { k: string, at: date_time } } }
  - { type: source, name: b, config: { type: csv, glob: "b/*.csv", watermark: { column: at, delay: 1s },
      schema: { k: string, at: date_time } } }
  - { type: stream_join, name: j, input: { left: a, right: b },
      config: { left_keys: k, right_keys: k, time_window: 5s } }
  - { type: output, name: out, input: j, config: { type: csv, path: out/ } }
"""


def folder_with(place: Path) -> Path:
    for name, rows in (("a", "p,2026-01-01T10:00:00\nq,2026-01-01T10:00:01\n"), ("b", "p,2026-01-01T10:00:02\n")):
        (place / name).mkdir()
        (place / name / "1.csv").write_text("k,at\n" + rows)
    (place / "p.yaml").write_text(PIPELINE)
    return place


def called(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(clinker, [str(argument) for argument in arguments])
    if isinstance(result.exception, ClinkerError):  # the command itself renders it
        return (
            result.exception.exit_code,
            result.stdout,
            "".join(f"{d.code}: {d.message}" for d in result.exception.diagnostics),
        )
    return result.exit_code, result.stdout, result.stderr


def refusal(folder: Path, spark: SparkSession, **options: Any) -> str:
    with pytest.raises(ClinkerError) as caught:
        StreamRun(prepare(folder / "p.yaml"), spark, StreamOptions(once=True, **options), lambda *_: None).run()
    [found] = caught.value.diagnostics
    assert found.help
    return f"{found.code}: {found.message}"


def test_a_stream_and_its_state_as_they_are_typed(tmp_path: Path, started: SparkSession) -> None:
    folder, state, page = folder_with(tmp_path), tmp_path / "state", tmp_path / "page.html"
    options = ("--once", "--machine", "ndjson-v1", "--report", page, "--checkpoint", state)
    code, out, err = called("stream", folder / "p.yaml", *options)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["event"] for event in events].count("state") == 2
    batches = [event for event in events if event["event"] == "batch"]
    assert sum(event["records"].get("a", 0) for event in batches) == 2
    assert (folder / "out" / "out-000000.csv").read_text().count("\n") == 2
    shown = page.read_text()
    for title in ("records per second of a", "records per second of b", "watermark, as it was before the batch"):
        assert f"<figcaption>{title}</figcaption>" in shown

    code, out, err = called("state", "show", state, "--json")
    assert code == 0, err
    [query] = json.loads(out)["queries"]
    assert {side["side"]: side["records"] for side in query["sides"]} == {"left": 2, "right": 1}
    assert list(query["nodes"]) == ["j"] and query["bytes"] == query["nodes"]["j"] > 0

    [numbers] = (folder / "numbers").glob("*.json")
    record = json.loads(numbers.read_text())
    assert record["records_total"] == 3 and record["exit_code"] == 0 and record["records_written"] is None
    assert record["per_source_record_counts"] == {"a": 2, "b": 1}
    assert record["stream"]["waiting"] == {"j": 3} and record["stream"]["batches"] == len(batches)
    found = collect(folder / "numbers", tmp_path / "all.jsonl", delete=False, dry_run=False)
    assert found.runs == [record["execution_id"]]

    # What goes on from there, and what cannot.
    with Checkpoint(state).locked():
        assert refusal(folder, started, checkpoint=str(state)).startswith("E510: another stream runs")
    failed = [json.loads(path.read_text()) for path in (folder / "numbers").glob("*.json") if path != numbers]
    assert [one["error"][:5] for one in failed] == ["E510:"] and failed[0]["exit_code"] == IoError.exit_code
    assert refusal(folder, started, checkpoint="other").startswith("E508: ")
    (folder / "p.yaml").write_text(PIPELINE.replace("partitions: 1", "partitions: 3"))
    code, _, err = called("state", "check", folder / "p.yaml", "--checkpoint", state)
    assert code != 0 and "E505" in err and "has 1 partition(s), and the pipeline asks for 3" in err
    about = json.loads((state / "clinker.json").read_text())
    about["shape"]["join_format"] = 2
    (state / "clinker.json").write_text(json.dumps(about))
    (folder / "p.yaml").write_text(PIPELINE)
    code, _, err = called("state", "check", folder / "p.yaml", "--checkpoint", state)
    assert code != 0 and "E505" in err and "keeps joins in format 2, and this version in 4" in err


def test_a_stream_from_python(tmp_path: Path, started: SparkSession) -> None:
    folder = folder_with(tmp_path)
    (folder / "b" / "2.csv").write_text("k,at\nq,yesterday\n")
    schema = {"k": "string", "at": "date_time"}
    told = run_streaming_pipeline(
        name="paid",
        sources=[Source(name, {"type": "csv"}, f"{name}/*.csv", schema) for name in ("a", "b")],
        join=Join("a", "b", ["k"], ["k"], time_window_ms=5000, event_time_column="at"),
        target={"type": "csv", "path": "out/"},
        state_store=StateStore(kind="postgres", url="postgresql://h/d", path="state"),
        watermark={"lateness_ms": 1000},
        error_handling={"strategy": "continue", "dlq": {"path": "dead.csv"}},
        stream={"partitions": 1},
        once=True,
        spark=started,
        base=folder,
    )
    assert isinstance(told, StreamReport)
    assert told.records == {"a": 2, "b": 2} and told.letters == 1
    assert [warning.code for warning in told.warnings] == ["W027"]
    assert (folder / "out" / "target-000000.csv").read_text().startswith("left_k,left_at,right_k,right_at\np,")
    assert (folder / "state" / "clinker.json").exists()

    # The last look at the state: the lock is still held, and files that are gone meanwhile are no failure.
    (folder / "p.yaml").write_text(PIPELINE)
    (folder / "b" / "2.csv").unlink()
    locked: list[str] = []

    def tell(event: str, details: dict[str, Any]) -> None:
        if event == "state":
            locked.append(refusal(folder, started, checkpoint="state2"))

    options = StreamOptions(once=True, checkpoint="state2", sides=True, base=folder)
    shutil.rmtree(folder / "out")
    stream = StreamRun(prepare(folder / "p.yaml"), started, options, tell)
    stream.run()
    assert len(locked) == 2 and all(text.startswith("E510") for text in locked)
    for path in (folder / "state2" / "j" / "spark" / "state" / "0" / "0").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    stream._look()
    code, _, err = called("state", "show", folder / "state2")
    assert code == IoError.exit_code and err.startswith("E402: Spark failed: ")
