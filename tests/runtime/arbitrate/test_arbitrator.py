"""The arbitrator over a real Spark: kept results go to disk, readers wait, a job above the limit is cancelled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.arbitrate.arbitrator import Arbitrator, Limits
from clinker_spark.runtime.arbitrate.policy import Policy
from clinker_spark.runtime.arbitrate.session import watched
from clinker_spark.runtime.measure.processes import Sample
from clinker_spark.spark.kept_results import keep
from clinker_spark.spark.measure.steering import Steering, bytes_below
from clinker_spark.spark.scan import gate

PIPELINE = """
pipeline: { name: test, memory: { limit: 1G, backpressure: %s } }
nodes:
  - { type: source, name: orders, config: { type: csv, path: orders.csv, schema: { city: string, n: int } } }
  - { type: aggregate, name: cities, input: orders, config: { group_by: [city], cxl: "emit total = sum(n)" } }
  - { type: route, name: size, input: cities, config: { conditions: { large: "total > 4" }, default: small } }
  - { type: output, name: large, input: size.large, config: { type: csv, path: large.csv } }
  - { type: output, name: small, input: size.small, config: { type: csv, path: small.csv } }
  - { type: aggregate, name: days, input: orders, config: { group_by: [n], cxl: "emit total = count(*)" } }
  - { type: output, name: first, input: days, config: { type: csv, path: first.csv } }
  - { type: output, name: again, input: days, config: { type: json, path: again.json } }
"""
LIMIT = 1 << 30


def plan_of(folder: Path, backpressure: str = "pause") -> Plan:
    (folder / "orders.csv").write_text("city,n\nBern,1\nBasel,9\n")
    (folder / "p.yaml").write_text(PIPELINE % backpressure)
    return prepare(folder / "p.yaml")


def arbitrator(plan: Plan, spark: SparkSession, *, cap: int | None = None, limit: int = LIMIT) -> Arbitrator:
    memory = plan.file.settings.memory
    policy = Policy(limit, memory.backpressure, memory.resume_threshold)
    return Arbitrator(plan, Limits(policy, cap), Steering(spark), "the run")


def sample(share: float, at: float = 0.0, limit: int = LIMIT) -> Sample:
    return Sample(at, 0, int(share * limit), 0)


@dataclass
class Kept:
    """Results of both nodes that are kept, and something else that was used before them."""

    frames: dict[str, DataFrame]
    expected: dict[str, Any]

    def answers(self) -> dict[str, Any]:
        return {node: frame.selectExpr("sum(id)", "max(text)").first() for node, frame in self.frames.items()}


@pytest.fixture
def kept(spark: SparkSession) -> Iterator[Kept]:
    """In the order in which Spark would move them: what nobody asks for, then the smaller result, then the larger."""
    Steering(spark).collect_garbage()  # what other tests left is cleaned up meanwhile, and not while results are moved
    frames = {}
    for node, rows in (("", 4_000), ("cities", 8_000), ("days", 16_000)):
        texts = spark.range(0, rows, 1, 8).selectExpr("id", "md5(cast(id AS string)) AS text")
        level = StorageLevel.MEMORY_AND_DISK
        frames[node] = keep(texts, node, level) if node else texts.persist(level)
    found = Kept(frames, {})
    try:
        found.expected = found.answers()
        until = time.monotonic() + 20
        while not Steering(spark).idle():  # nobody can move what is read just now
            assert time.monotonic() < until, "something is read although no job runs"
            time.sleep(0.05)
        yield found
    finally:
        for frame in frames.values():
            frame.unpersist()


def after_moving(steering: Steering, before: dict[str, int], moved: int) -> dict[str, int]:
    """What is kept in memory when Spark has told of all that was moved: its listeners hear of it a moment later."""
    until = time.monotonic() + 20
    while sum(before.values()) - sum((found := steering.kept()).values()) < moved and time.monotonic() < until:
        time.sleep(0.02)
    return found


@pytest.mark.parametrize(
    ("backpressure", "running", "first"),
    [
        ("spill", [], "days"),  # of slots, that are all as cheap, the larger
        ("spill", ["orders", "days", "again"], "cities"),  # the larger one is read just now
        ("both", ["orders", "days", "again"], "days"),  # the largest in any case
    ],
)
def test_the_cheapest_kept_result_goes_to_disk_first(
    tmp_path: Path, spark: SparkSession, kept: Kept, backpressure: str, running: list[str], first: str
) -> None:
    plan, steering = plan_of(tmp_path, backpressure), Steering(spark)
    assert plan.facts.order.materialized == ("cities", "days")
    before = steering.kept()
    assert before["days"] > 1.5 * before["cities"] > 100_000
    limit = int(before["cities"] / 2 / 0.15)  # at 85 %, half of the smaller result must go
    watch = arbitrator(plan, spark, limit=limit)
    with watch.job(running):
        watch.look(sample(0.5, limit=limit), now=0.0)
        assert steering.kept() == before and watch.done.spilled_slots == 0
        watch.look(sample(0.85, limit=limit), now=1.0)
        after = after_moving(steering, before, watch.done.spilled_slot_bytes)
        assert {node for node in before if after.get(node, 0) != before[node]} == {first}
        moved = before[first] - after[first]
        assert before["cities"] / 2 <= moved < before["cities"]
        assert (watch.done.spilled_slots, watch.done.spilled_slot_bytes, watch.done.pauses) == (1, moved, 0)
    assert kept.answers() == kept.expected  # from the disk


def test_when_one_is_not_enough_the_next_one_goes(tmp_path: Path, spark: SparkSession, kept: Kept) -> None:
    plan, steering = plan_of(tmp_path, "spill"), Steering(spark)
    before = steering.kept()
    limit = int((before["days"] + before["cities"] / 2) / 0.15)
    watch = arbitrator(plan, spark, limit=limit)
    watch.look(sample(0.85, limit=limit), now=0.0)
    after = after_moving(steering, before, watch.done.spilled_slot_bytes)
    assert "days" not in after and 0 < after["cities"] < before["cities"] and after[""] == before[""]
    assert watch.done.spilled_slots == 2
    watch.look(sample(0.95, limit=10 * limit), now=1.0)
    # What is of no node goes last. A block without rows that another test left is smaller than what is asked for.
    left = after_moving(steering, before, sum(before.values()) - 100)
    assert left.keys() <= {""} and left.get("", 0) < 100 < after[""]
    assert kept.answers() == kept.expected


def test_readers_wait_and_go_on(tmp_path: Path, spark: SparkSession) -> None:
    watch, mark = arbitrator(plan_of(tmp_path), spark), Path(gate.mark_path(tmp_path))
    watch.look(sample(0.9), now=0.0)
    assert not mark.exists()  # there are no readers yet
    with watch.over(str(tmp_path)):
        watch.look(sample(0.6), now=1.0)
        watch.look(sample(0.85), now=2.0)
        assert mark.exists()
        watch.look(sample(0.65), now=2.5)
        assert not mark.exists()
        watch.look(sample(0.95), now=3.0)
        assert mark.exists()
    assert not mark.exists() and watch.done.pauses == 2 and watch.done.paused_seconds > 0


@pytest.mark.parametrize(("cap", "code"), [(None, "E310"), (1, "E320")])
def test_a_job_above_the_limit_is_cancelled(tmp_path: Path, spark: SparkSession, cap: int | None, code: str) -> None:
    plan = plan_of(tmp_path)
    watch = arbitrator(plan, spark, cap=cap)
    used = 1.2 if cap is None else 0.1

    def look() -> None:
        for now in range(2):
            watch.look(sample(used), now=float(now))

    if cap is not None:  # something lies in Spark's folder
        spark.range(100).repartition(2).foreach(lambda row: None)
        assert bytes_below(Steering(spark).folders()) > cap
    later = threading.Timer(1.0, look)
    endless = spark.range(0, 1 << 40, 1, 2).selectExpr("max(hash(id))")
    with (
        pytest.raises(ClinkerError) as caught,
        watched(plan, watch, str(tmp_path)),
        watch.job(["orders", "cities", "size", "large"]),
    ):
        later.start()
        endless.collect()
    [found] = caught.value.diagnostics
    assert (found.code, caught.value.exit_code) == (code, 4) and "'cities'" in found.message
    assert found.span is not None and found.help
    spark.range(10).count()  # the session goes on, and its jobs belong to no run
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def small_disk(folder: Path) -> Path:
    place = folder / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("to make a small disk needs more rights than these tests have")
    return place


@pytest.mark.skipif(os.environ.get("CLINKER_CASES") != "all", reason="one more JVM; CLINKER_CASES=all")
def test_a_full_spill_volume(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("city,n\n" + "".join(f"{i * 7919}-{'x' * 30},{i}\n" for i in range(400_000)))
    (tmp_path / "p.yaml").write_text(PIPELINE % "pause")
    disk = small_disk(tmp_path)
    try:
        line = [sys.executable, "-m", "clinker_spark", "run", str(tmp_path / "p.yaml"), "--machine", "ndjson-v1"]
        line += ["--conf", f"spark.local.dir={disk}", "--batch-id", "b"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    last: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert "E321" in json.dumps(last) and str(disk) in json.dumps(last) and "'cities'" in json.dumps(last)
    assert not (tmp_path / "large.csv").exists()
