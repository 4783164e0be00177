"""Cutting very long plans, and putting many together: what is behind a cut, Spark plans once and does not look at
again.

Spark's analyser and optimiser walk through a whole plan many times, so a thousand steps cost a thousand times what one
costs, or more. After a cut the rows of the plan so far are an RDD to everything that follows: no job, no copy, only no
more optimising across it. Programs of ordinary length, and rows of a few transforms, are never cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import reduce
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark import SparkContext, StorageLevel
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame

from clinker_spark.cxl.lower.plan import quote

LONG = 48
"""Steps from which on a program is cut."""
EVERY = 10
"""Steps from one cut to the next: planning the physical operators costs the square of them."""

_cut: deque[tuple[Any, Any]] = deque(maxlen=256)
"""The JVM and the executions behind cuts: what was counted there is not known to the job's own execution."""
_known: dict[str, dict[str, Any]] = {}
"""What was counted behind cuts, as it was when it was first asked for: a second job would count again."""


def cut(df: DataFrame) -> DataFrame:
    """The same rows, as the beginning of a new plan. Streams and Spark Connect have none."""
    java = getattr(df, "_jdf", None)
    if java is None or df.isStreaming:
        return df
    execution = java.queryExecution()
    _cut.append((SparkContext._gateway, execution))
    session = df.sparkSession
    rows = session._jsparkSession.internalCreateDataFrame(execution.toRdd(), java.schema(), False)
    return DataFrame(rows, session)


class Shared:
    """Rows that several readers of one job have in common: planned once, computed once, kept until they are forgotten.

    Where a plan is a tree, Spark plans and computes a node once for each of its readers, which for small data is most
    of the work. After `forget` the next job computes them anew, with what its sources hold then.
    """

    def __init__(self, frame: DataFrame) -> None:
        self._kept: Any = frame.persist(StorageLevel.MEMORY_AND_DISK)
        relation = self._kept._jdf.queryExecution().withCachedData()
        self._batches = relation.cacheBuilder().cachedColumnBuffers()
        self._level = self._batches.getStorageLevel()
        session: Any = frame.sparkSession
        # The rows alone: what they are made of is not analysed again for each step that follows.
        rows = _datasets().ofRows(session._jsparkSession, relation)
        self.frame = DataFrame(rows, session)
        _cut.append((SparkContext._gateway, rows.queryExecution()))

    def forget(self) -> None:
        """Plans that exist refer to these batches: they are made again by the next job that needs them."""
        self._batches.unpersist(True)
        self._batches.persist(self._level)

    def unpersist(self) -> None:
        """For good."""
        self._kept.unpersist()


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of frames with the same columns, one frame after the other. Spark's own union is of two frames and looks
    at everything before it, so each further frame would cost more than the one before."""
    first = frames[0]
    java = getattr(first, "_jdf", None)
    if java is None or first.isStreaming or len(frames) < 3:
        return reduce(DataFrame.unionByName, frames)
    names = first.columns
    alike = [frame if frame.columns == names else frame.select(*map(quote, names)) for frame in frames]
    gateway: Any = SparkContext._gateway
    union = JavaClass("org.apache.spark.sql.catalyst.plans.logical.Union", gateway._gateway_client)
    plans = gateway.jvm.PythonUtils.toSeq([frame._jdf.queryExecution().analyzed() for frame in alike])
    session: Any = first.sparkSession
    rows = _datasets().ofRows(session._jsparkSession, union(plans, False, False))
    return DataFrame(rows, session)


def _datasets() -> Any:
    """Spark's companion object of datasets; by its whole name, as Py4J would look through all jars for each dot."""
    gateway: Any = SparkContext._gateway
    return JavaClass("org.apache.spark.sql.classic.Dataset", gateway._gateway_client)


_REMEMBERS = ("Exchange", "ExistingRDD", "Subquery")
"""Operators of Spark whose results a second job over the same plan uses once more, or that may hide such ones."""


def is_repeatable(df: DataFrame) -> bool:
    """Does a second job over the same DataFrame read its sources again?"""
    plan = df._jdf.queryExecution().executedPlan().toString()
    return not any(name in plan for name in _REMEMBERS)


def _python_row(row: Any) -> dict[str, Any]:
    """A row of the JVM as `Observation.get` gives it: lists and structs are not left in the JVM."""
    gateway: Any = SparkContext._gateway
    utils = JavaClass("org.apache.spark.sql.api.python.PythonSQLUtils", gateway._gateway_client)
    found: dict[str, Any] = CPickleSerializer().loads(utils.toPyRow(row)).asDict(recursive=False)
    return found


def counted_behind(name: str) -> dict[str, Any] | None:
    """What an observation counted behind a cut; None when there was none, or no job has run through it yet."""
    if name in _known:
        return _known[name]
    for gateway, execution in reversed(_cut):  # it is one of the last, if it is one
        if gateway is not SparkContext._gateway:
            continue
        found = execution.observedMetrics().get(name)
        if found.isDefined():
            _known[name] = _python_row(found.get())
            return _known[name]
    return None
