"""Sessions of small inputs: what a run sets, it puts back."""

from __future__ import annotations

from pyspark.sql import SparkSession

from clinker_spark.spark.session.small_inputs import SMALL, TINY, settings

NAMES = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions", "spark.sql.codegen.factoryMode")


def test_runs_that_overlap_leave_the_session_as_it_was(spark: SparkSession) -> None:
    """The first one ends first: what the second one found is not what it was."""
    before = [spark.conf.get(name, None) for name in NAMES]
    first, second = settings(spark, SMALL), settings(spark, TINY)
    first.__enter__()
    assert spark.conf.get(NAMES[1]) == "1" and spark.conf.get(NAMES[2], None) == before[2]
    second.__enter__()
    first.__exit__(None, None, None)
    assert spark.conf.get(NAMES[1]) == "1" and spark.conf.get(NAMES[2]) == "NO_CODEGEN"
    second.__exit__(None, None, None)
    assert [spark.conf.get(name, None) for name in NAMES] == before
