"""Rounds of new files, and kill -9 of the runs that read them: in the end every record is in every output exactly once.
Five rounds; fifty with CLINKER_CASES=all."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb

from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from tests.crash.killed_runs import run_pipeline
from tests.support.sessions import quick

ROUNDS = 50 if os.environ.get("CLINKER_CASES") == "all" else 5
PIPELINE = """
pipeline: { name: feed }
nodes:
  - type: source
    name: s
    config: { type: csv, glob: "in/*.csv", files: { only_new: true }, schema: { id: int, day: string } }
  - { type: output, name: lines, input: s, config: { type: csv, path: out/lines.csv, if_exists: append } }
  - { type: output, name: array, input: s, config: { type: json, path: more/array.json, if_exists: append } }
  - type: output
    name: days
    input: s
    config: { type: parquet, path: lake/days/, partition_by: day, if_exists: append }
error_handling: { strategy: continue, dlq: { path: dead/dead.csv } }
"""


class Feed:
    """A folder that grows, and what must be in the outputs in the end."""

    def __init__(self, folder: Path, spark: Any) -> None:
        self.folder, self.spark = folder, spark
        self.data = folder / "data"
        (self.data / "in").mkdir(parents=True)
        (self.data / "pipeline.yaml").write_text(PIPELINE)
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["tests.crash.killed_runs", "clinker_spark.runtime.run.pipeline"])
        self.random = random.Random(20261118)
        self.ids: list[int] = []
        self.bad: list[str] = []
        self.number = 0

    def deliver(self) -> None:
        """One to three files, some of them with a bad record, some with none at all."""
        for _ in range(self.random.randint(1, 3)):
            self.number += 1
            ids = [self.number * 100 + i for i in range(self.random.choice([0, 1, 7]))]
            lines = [f"{i},{'abc'[i % 3]}" for i in ids]
            if self.random.random() < 0.3:
                lines.append(f"bad-{self.number},a")
                self.bad.append(f"bad-{self.number}")
            self.ids += ids
            draft = self.data / "draft"
            draft.write_text("id,day\n" + "".join(f"{line}\n" for line in lines))
            draft.rename(self.data / "in" / f"{self.number:04}.csv")

    def start(self, at: int | None) -> Any:
        given = self.spark.sparkContext._gateway.gateway_parameters
        args = (str(self.folder), given.port, given.auth_token, at)
        process = self.processes.Process(target=run_pipeline, args=args)
        process.start()
        return process

    def rehearse(self) -> tuple[int, float]:
        """A run that nobody kills: how many calls of the system it makes, and how long it takes."""
        process = self.start(None)
        began = time.monotonic()
        process.join(900)  # a machine may be busy
        assert process.exitcode == 0
        log = self.folder / "log"
        calls = log.read_text().count("\n")
        log.unlink()
        return calls, time.monotonic() - began

    def kill(self, calls: int, seconds: float) -> None:
        """A run that is killed at a call of the system, the later ones more often, or after a while."""
        late = int(calls * (1 - self.random.random() ** 2))
        at = late if self.random.random() < 0.7 else None
        process = self.start(at)
        log, until = self.folder / "log", time.monotonic() + 60
        pause = self.random.random() * seconds * 1.2
        while process.is_alive() and time.monotonic() < until:
            if at is not None and log.exists() and "STOPPED" in log.read_text():
                break
            if at is None and (pause := pause - 0.01) < 0:
                break
            time.sleep(0.01)
        process.kill()
        process.join()
        self.spark.sparkContext.cancelAllJobs()  # a JVM of its own would be gone
        log.unlink(missing_ok=True)

    def check(self) -> None:
        wanted = Counter(self.ids)
        with open(self.data / "out" / "lines.csv", newline="") as file:
            assert Counter(int(row["id"]) for row in csv.DictReader(file)) == wanted
        assert Counter(row["id"] for row in json.loads((self.data / "more" / "array.json").read_text())) == wanted
        query = f"SELECT id, day FROM read_parquet('{self.data}/lake/days/**/*.parquet', hive_partitioning = true)"
        found = duckdb.sql(query).fetchall()
        assert Counter(i for i, _ in found) == wanted and all("abc"[i % 3] == day for i, day in found)
        letters = self.data / "dead" / "dead.csv"
        lost = []
        if letters.exists():
            with open(letters, newline="") as file:
                lost = [row["id"] for row in csv.DictReader(file)]
        assert Counter(lost) == Counter(self.bad)


def test_every_record_is_written_once_however_runs_are_killed(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "feed", quick(spark))
    feed.deliver()
    calls, seconds = feed.rehearse()
    for _ in range(ROUNDS):
        feed.deliver()
        feed.kill(calls, seconds)
        if feed.random.random() < 0.3:  # a run that gets through: adds, or only finishes what the last one began
            run(prepare(feed.data / "pipeline.yaml"), feed.spark, Options())
            feed.check()
    run(prepare(feed.data / "pipeline.yaml"), feed.spark, Options())
    feed.check()
    assert run(prepare(feed.data / "pipeline.yaml"), feed.spark, Options()).outputs == []
