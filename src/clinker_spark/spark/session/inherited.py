"""A session that a process inherits from the one that forked it: the JVM, its context and the Python workers stay those
of the parent, the connections and the settings are its own.

The parent keeps the JVM. A child uses it for one piece of work and ends, however it ends; then the parent drops what
the child has left in the JVM.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import psutil
from pyspark import SparkContext
from pyspark.sql import SparkSession

from clinker_spark.spark.session import jvm

_EXIT_CODE = 49
"""Its place among what stands behind the name in `/proc/<pid>/stat`, see proc(5)."""


class ForeignProcess:
    """A JVM that is not a child of this process: it can be looked at, not waited for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """None while it runs. It has ended when only its parent, which asks for its exit code later, still knows it."""
        try:
            ended = psutil.Process(self.pid).status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        except psutil.NoSuchProcess:
            return 0
        return self._code() if ended else None

    def _code(self) -> int:
        """Its exit code, which Linux shows until the parent has asked; 0 where nobody says it."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return os.waitstatus_to_exitcode(int(fields[_EXIT_CODE]))
        except (OSError, IndexError, ValueError):
            return 0

    def wait(self, timeout: float | None = None) -> int:
        ended = threading.Event()
        for _ in range(int((timeout or 0) / 0.05)):
            if self.poll() is not None:
                return 0
            ended.wait(0.05)
        raise TimeoutError


def adopt(spark: SparkSession) -> SparkSession:
    """In a forked process: a session of its own in the JVM of the parent, as the active one.

    The connections of the parent are forgotten, not closed: closing would tell the JVM that the parent has gone.
    """
    gateway: Any = SparkContext._gateway
    client = gateway._gateway_client
    client.thread_connection = threading.local()
    client.deque.clear()
    gateway.proc = ForeignProcess(gateway.proc.pid)
    context: Any = spark.sparkContext
    context._accumulatorServer = None  # its thread is the parent's: who ends it here would wait for ever
    own = spark.newSession()
    kinds: Any = SparkSession
    kinds._instantiatedSession = kinds._activeSession = kinds._defaultSession = own
    java: Any = spark.sparkContext._jvm
    java.SparkSession.setActiveSession(own._jsparkSession)
    return own


def newest_object(spark: SparkSession) -> int:
    """The number of the newest object that the JVM keeps for Python."""
    java: Any = spark.sparkContext._jvm
    return int(java.java.lang.Object()._target_id[1:])


def drop_work(spark: SparkSession, since: int) -> None:
    """In the parent, when a child has ended: its jobs are cancelled, its kept results and objects are dropped.

    Objects have consecutive numbers, so those of the child are known even if it was killed.
    """
    with jvm.while_it_lives():
        spark.sparkContext.cancelAllJobs()
        session: Any = spark
        session._jsparkSession.sharedState().cacheManager().clearCache()
        client: Any = SparkContext._gateway._gateway_client  # type: ignore[union-attr]
        for number in range(since + 1, newest_object(spark)):
            client.garbage_collect_object(f"o{number}", False)
