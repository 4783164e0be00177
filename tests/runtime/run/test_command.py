"""`clinker run` as a process: what it prints, how it ends, and what an interrupted run leaves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import clinker_spark

PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, path: a.csv, schema: { id: int, name: string } } }
  - { type: transform, name: t, input: s, config: { cxl: "emit n = 10 / id" } }
  - { type: output, name: out, input: t, config: { type: csv, path: out.csv } }
error_handling: { strategy: continue, dlq: { path: dead.csv } }
"""


def start(folder: Path, *args: str) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "clinker_spark",
        "run",
        str(folder / "pipeline.yaml"),
        "--master",
        "local[2]",
        *args,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_events_and_the_moment_of_an_interrupt(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "out.csv").write_text("old\n")
    rows = "".join(f"{i},{'x' * 40}\n" for i in range(1, 1_500_000))
    (tmp_path / "a.csv").write_text("id,name\n" + rows)
    process = start(tmp_path, "--machine", "ndjson-v1", "--batch-id", "b1")
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(json.loads(line))
        if seen[-1].get("step") == "output_started":
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 130
    assert [event["seq"] for event in seen] == list(range(len(seen)))
    assert seen[0]["event"] == "started" and seen[-1]["event"] == "cancelled" and seen[-1]["exit"] == 130
    assert {event["batch_id"] for event in seen} == {"b1"}
    assert (tmp_path / "out.csv").read_text() == "old\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "out.csv", "pipeline.yaml"]


def test_a_run_in_a_pipe_is_quiet_and_ends_with_a_summary(tmp_path: Path) -> None:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "a.csv").write_text("id,name\n1,a\n0,b\n5,c\n")
    process = start(tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2 and out == ""
    assert "3" in err and "dead letters" in err and "WARN" not in err and "\x1b[" not in err
    assert (tmp_path / "out.csv").read_text() == "id,name,n\n1,a,10\n5,c,2\n"


def test_pipelines_from_python(tmp_path: Path, spark: object) -> None:
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "a.csv").write_text("id,name\n1,a\n0,b\n5,c\n")
    pipeline = clinker_spark.load(str(tmp_path / "pipeline.yaml"))
    rows = pipeline.dataframe("t").collect()
    assert [(row["id"], row["n"]) for row in rows] == [(1, 10), (5, 2)]
    report = pipeline.run()
    assert report.exit_code == 2 and report.sources[0].records == 3
