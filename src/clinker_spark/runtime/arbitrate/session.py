"""The arbitrator that suits a session: only one that was started with a limit is watched.

A session of the user has its own memory, and on a cluster the executors have theirs: there is nothing to see from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from clinker_spark.config.workspace import find_workspace
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.budget import LIMIT_SETTING
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.arbitrate.arbitrator import Arbitrator, Limits
from clinker_spark.runtime.arbitrate.failures import beyond_machine, over_limit, spill_volume_full
from clinker_spark.runtime.arbitrate.policy import Policy
from clinker_spark.runtime.errors import IoError
from clinker_spark.runtime.run.engine_failures import engine_failure, is_spill_failure
from clinker_spark.spark.measure.steering import Steering
from clinker_spark.spark.session.jvm import is_out_of_memory
from clinker_spark.spark.session.sessions import SparkSession, is_local


def arbitrator_of(plan: Plan, spark: SparkSession, group: str) -> Arbitrator | None:
    """None where nothing is watched."""
    if not is_local(spark):
        return None
    limit = spark.conf.get(LIMIT_SETTING, None)
    if limit is None:
        return None
    memory = plan.file.settings.memory
    cap = find_workspace(plan.file.path).config.storage.spill.disk_cap_bytes
    policy = Policy(int(limit), memory.backpressure, memory.resume_threshold)
    return Arbitrator(plan, Limits(policy, cap), Steering(spark), group)


@contextmanager
def watched(plan: Plan, arbitrator: Arbitrator | None, folder: str) -> Iterator[None]:
    """Around a run: what ends it because of memory or of the disk that stands in for it is said in these words.
    `folder` is where readers say how far they are."""
    if arbitrator is None:
        yield
        return
    try:
        with arbitrator.over(folder):
            yield
    except Exception as error:
        found = _reason(plan, arbitrator, error)
        if found is None:
            raise
        raise IoError([found]) from error


def _reason(plan: Plan, arbitrator: Arbitrator, error: Exception) -> Diagnostic | None:
    """Why the run ended, if it has to do with memory; what has a code already keeps it."""
    if arbitrator.stopped is not None:
        return arbitrator.stopped
    if isinstance(error, ClinkerError):
        return None
    if is_spill_failure(error):
        return spill_volume_full(plan, arbitrator.failed, arbitrator.spill_folder)
    engine = engine_failure(error)
    if engine is not None and is_out_of_memory(engine):
        return over_limit(plan, arbitrator.failed, arbitrator.policy.limit, None)
    return None if engine is None else beyond_machine(engine, arbitrator.policy.limit)
