"""The arbitrator over a real Spark: kept results go to disk, readers wait, a job above the limit is cancelled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.arbitrate.arbitrator import Arbitrator, Limits
from clinker_spark.runtime.arbitrate.policy import Policy
from clinker_spark.runtime.arbitrate.session import watched
from clinker_spark.runtime.measure.processes import Sample
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
"""
LIMIT = 1 << 30


def plan_of(folder: Path, backpressure: str = "pause") -> Plan:
    (folder / "orders.csv").write_text("city,n\nBern,1\nBasel,9\n")
    (folder / "p.yaml").write_text(PIPELINE % backpressure)
    return prepare(folder / "p.yaml")


def arbitrator(plan: Plan, spark: SparkSession, *, cap: int | None = None) -> Arbitrator:
    memory = plan.file.settings.memory
    policy = Policy(LIMIT, memory.backpressure, memory.resume_threshold)
    return Arbitrator(plan, Limits(policy, cap), Steering(spark), "the run")


def sample(share: float, at: float = 0.0) -> Sample:
    return Sample(at, 0, int(share * LIMIT), 0)


def stored(steering: Steering) -> int:
    """The bytes of everything that Spark keeps in memory for later."""
    return int(steering._blocks().memoryManager().storageMemoryUsed())


def test_kept_results_go_to_disk_when_memory_runs_short(tmp_path: Path, spark: SparkSession) -> None:
    plan, steering = plan_of(tmp_path, "spill"), Steering(spark)
    assert plan.facts.order.materialized == ("cities",)
    texts = spark.range(0, 20_000, 1, 4).selectExpr("id", "md5(cast(id AS string)) AS text")
    kept = texts.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        expected = kept.selectExpr("sum(id)", "max(text)").first()
        held = sum(steering.kept().values())
        assert held > 100_000
        watch = arbitrator(plan, spark)
        watch.look(sample(0.5), now=0.0)
        assert sum(steering.kept().values()) == held and watch.done.spilled_slots == 0
        before = stored(steering)
        watch.look(sample(0.85), now=1.0)
        # What was not used for longest goes first: results of other runs of this session, if there are any.
        assert stored(steering) < before
        assert watch.done.spilled_slots == 1 and watch.done.spilled_slot_bytes > 0 and watch.done.pauses == 0
        assert kept.selectExpr("sum(id)", "max(text)").first() == expected  # from the disk
    finally:
        kept.unpersist()


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
