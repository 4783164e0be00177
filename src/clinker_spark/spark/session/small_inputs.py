"""Inputs of a few megabytes: a job is one task, and what Spark does for large data costs more than it saves.

All records of a source are in one partition then, so nothing has to be sent between tasks: aggregates, joins, windows
and sorts follow each other in one stage, each output is one job. Of very small inputs not even the expressions are
compiled to Java: to interpret them for some thousand records takes less time than to compile them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from clinker_spark.core.fast_paths import taken
from clinker_spark.plan.small_inputs import SMALL
from clinker_spark.spark.session.meanwhile import meanwhile

SETTING = "spark.clinker.smallInputBytes"
"""Inputs up to this size are small; 0: none are."""
TINY = 128 << 10

_ONE_STAGE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.unionOutputPartitioning": "true",  # what comes together in a merge stays in one task
    "spark.sql.maxConcurrentOutputFileWriters": "1000",  # else records would be sorted by their output first
    # What Spark finds out about values saves work on large data, and is much of the work of planning for small ones.
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.optimizeOneRowRelationSubquery": "false",
}
_LEFT_OUT = "spark.sql.optimizer.excludedRules"
_MERGING = "org.apache.spark.sql.execution.planmerging.MergeSubplans"
"""Sums over everything become one subquery by this rule of Spark's: a job before the job, which a second one over the
same plan would not run again."""
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def is_small(spark: SparkSession, size: int) -> bool:
    """Are inputs of so many bytes, in all, small?"""
    return taken("small_inputs") and size <= int(spark.conf.get(SETTING, str(SMALL)) or 0)


def settings(spark: SparkSession, size: int) -> AbstractContextManager[None]:
    """Meanwhile the session plans as suits small inputs of so many bytes."""
    rules = [rule for rule in (spark.conf.get(_LEFT_OUT, None) or "").split(",") if rule]
    left_out = ",".join(dict.fromkeys([*rules, _MERGING]))
    interpreted = _INTERPRETED if size <= TINY and taken("interpreted_expressions") else {}
    return meanwhile(spark, {**_ONE_STAGE, **interpreted, _LEFT_OUT: left_out})
