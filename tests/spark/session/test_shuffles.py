"""Shuffles of large inputs are cut so that a piece fits into what a task may hold, while a run lasts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from clinker_spark.plan import budget
from clinker_spark.plan.budget import MIB, TASK_SETTING, divided, piece_bytes, pieces
from clinker_spark.plan.prepare import prepare
from clinker_spark.runtime.run.options import Options
from clinker_spark.runtime.run.pipeline import run
from clinker_spark.spark.session import shuffles

PIECES = "spark.sql.shuffle.partitions"
TOGETHER = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
PIPELINE = """
pipeline: { name: test }
nodes:
  - { type: source, name: s, config: { type: csv, path: s.csv, schema: { id: int, text: string } } }
  - { type: aggregate, name: a, input: s, config: { group_by: [text], cxl: "emit n = count(*)" } }
  - { type: output, name: o, input: a, config: { type: csv, path: o.csv } }
"""


def test_pieces_fit_and_small_inputs_are_cut_as_usual() -> None:
    little = divided(1 << 30, 2)
    assert little is not None
    found = pieces(4_000 * MIB, little.task_bytes, 8)
    assert 4_000 * MIB / found < little.task_bytes and piece_bytes(little.task_bytes) < little.task_bytes / 2
    assert pieces(4_000 * MIB, little.task_bytes, 500) == 500
    large = divided(32 << 30, 2)
    assert large is not None and pieces(4_000 * MIB, large.task_bytes, 8) == 8
    assert piece_bytes(large.task_bytes) == 64 * MIB  # what Spark does by itself


def test_the_session_cuts_shuffles_while_a_run_lasts(quick: SparkSession) -> None:
    spark = quick.newSession()
    spark.conf.set(PIECES, "2")
    before = spark.conf.get(TOGETHER)
    with shuffles.settings(spark, 100 * MIB):
        assert spark.conf.get(PIECES) == "2"  # a session of somebody else
    spark.conf.set(TASK_SETTING, str(8 * MIB))
    with shuffles.settings(spark, MIB):
        assert (spark.conf.get(PIECES), spark.conf.get(TOGETHER)) == ("2", before)
    with shuffles.settings(spark, 100 * MIB):
        assert (spark.conf.get(PIECES), spark.conf.get(TOGETHER)) == ("25", str(2 * MIB))
    assert (spark.conf.get(PIECES), spark.conf.get(TOGETHER)) == ("2", before)


def test_a_run_uses_them_and_writes_the_same(
    tmp_path: Path, quick: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.csv").write_text("id,text\n" + "".join(f"{i},{i * 7919 % 1000}\n" for i in range(3_000)))
    (tmp_path / "p.yaml").write_text(PIPELINE)
    spark = quick.newSession()
    spark.conf.set("spark.clinker.smallInputBytes", "0")
    spark.conf.set(PIECES, "2")
    spark.conf.set(TASK_SETTING, str(8 * MIB))
    seen: list[str | None] = []
    written = []

    def listen(event: str, details: dict[str, object]) -> None:
        if event == "output_started":
            seen.append(spark.conf.get(PIECES))

    for growth in (1, 3_000):  # as if the input were so much larger
        monkeypatch.setattr(budget, "_GROWTH", growth)
        run(prepare(tmp_path / "p.yaml"), spark, Options(), listen)
        written.append((tmp_path / "o.csv").read_bytes())
    assert seen[0] == "2" and int(seen[1] or 0) > 5 and spark.conf.get(PIECES) == "2"
    assert written[0] == written[1] and written[0].count(b"\n") == 1001
