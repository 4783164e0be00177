"""Joins with inputs of which nobody knew the size before the run.

Spark takes its own estimate for true. Of what Python reads it knows only how many tasks read it, which is always
little, so that it would send any such input whole to every task. Meanwhile it sends both sides to tasks by key, and
holds one of them whole only if it sees, after that, that it is small. Joins that are told what to do do that.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from pyspark.sql import SparkSession

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import held_whole
from clinker_spark.spark.session.meanwhile import meanwhile

_BY_ESTIMATE = "spark.sql.autoBroadcastJoinThreshold"
_BY_SIGHT = "spark.sql.adaptive.autoBroadcastJoinThreshold"


def settings(spark: SparkSession, plan: Plan) -> AbstractContextManager[None]:
    """Meanwhile Spark decides by what it has seen. Plans in which nothing is joined are left to it."""
    if not any(node.exchanges and (len(node.inputs) > 1 or node.reads_views) for node in plan.nodes):
        return nullcontext()
    return by_sight(spark, plan.memory_limit)


def by_sight(spark: SparkSession, limit: int | None = None) -> AbstractContextManager[None]:
    """Meanwhile Spark decides by what it has seen."""
    return meanwhile(spark, {_BY_ESTIMATE: "-1", _BY_SIGHT: str(held_whole(limit))})
