"""The Spark session: the embedded local one, or whatever the user already has.

This is the only module that knows the settings a JVM is started with; `jvm.py` knows how it starts and ends.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from clinker_spark.spark.arrow_batches import load_converters
from clinker_spark.spark.parts import without_checksum_files
from clinker_spark.spark.session import jvm

__all__ = [
    "SparkSession",
    "active_session",
    "is_connect",
    "is_local",
    "names_as_written",
    "session",
    "share_of_tasks",
    "working_session",
]

_CASE = "spark.sql.caseSensitive"
_SUBSTITUTION = "spark.sql.variable.substitute"

# Results must not depend on the machine's zone or on its habits.
_NAMES = {
    _CASE: "true",
    # A name is a name: the column `${HOME}` is not called like a folder of this machine.
    _SUBSTITUTION: "false",
}
_ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    **_NAMES,
    # Spark would read sources of one task each in a single task, one after the other.
    "spark.sql.unionOutputPartitioning": "false",
    # HotSpot never compiles a method of more than 8000 bytecodes, Spark generates them up to 65535: a wide projection
    # would run interpreted (measured: 31 s against 8 s). Past this limit Spark splits the work instead.
    "spark.sql.codegen.hugeMethodLimit": "8000",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark keeps the plans and tasks of the last thousand jobs, for pages that nobody looks at: hundreds of megabytes
    # of the heap in a session that serves many runs, or a stream. We ask for those of one run.
    "spark.sql.ui.retainedExecutions": "250",
    "spark.ui.retainedJobs": "250",
    "spark.ui.retainedStages": "500",
    "spark.ui.retainedTasks": "10000",
    # A result of more than a megabyte would go through blocks that the driver fetches over the network. On a machine
    # that is very busy that can fail, and here a task has one attempt: the run would end with "TaskResultLost".
    "spark.task.maxDirectResultSize": "32m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # PySpark tells the JVM before every call from which line it comes: half of all messages, for errors nobody sees.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


# What PySpark asks the JVM for all the time: classes, and static methods of them.
_ASKED_OFTEN = {
    "org.apache.spark.sql.functions": ("col", "expr", "lit", "array", "when"),
    "functions": ("col",),
    "PythonUtils": ("toSeq",),
    "PythonSQLUtils": (),
}
_DAEMON = "clinker_spark.spark.session.worker_daemon"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Catalyst walks through plans and expressions by recursion: a thousand steps need more than the usual megabyte. The
# memory is only taken by threads that go that deep.
_STACK = "-Xss16m"


def _local() -> dict[str, str]:
    # Spark's 200 partitions are meant for clusters: on one machine each is a task that costs more than its work.
    cores = os.cpu_count() or 1
    settings = {**_LOCAL, "spark.sql.shuffle.partitions": str(max(8, 4 * cores))}
    # Spark makes this folder when it looks for a table, if need be: not beside the files of whoever asks for one.
    settings["spark.sql.warehouse.dir"] = str(Path(tempfile.gettempdir()) / f"clinker-tables-{os.getuid()}")
    if os.environ.get("PYSPARK_PYTHON") == sys.executable:  # another Python may not even have our package
        settings["spark.python.daemon.module"] = _DAEMON
    return settings


def is_local(spark: SparkSession) -> bool:
    """Do the tasks run on this machine, in this process tree? Then they see its temporary files."""
    try:
        return re.fullmatch(r"local(\[.*\])?", spark.sparkContext.master or "") is not None
    except PySparkException:  # Spark Connect has no context
        return False


def is_connect(spark: SparkSession) -> bool:
    """Is this a session of Spark Connect?"""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def share_of_tasks(spark: SparkSession) -> float:
    """The share of tasks that are done in the jobs that run now; 0 where the session does not say, as Spark Connect,
    or is gone."""
    stages = []
    with jvm.while_it_lives():
        tracker = spark.sparkContext.statusTracker()
        stages = [
            info
            for job in tracker.getActiveJobsIds()
            if (found := tracker.getJobInfo(job)) is not None
            for stage in found.stageIds
            if (info := tracker.getStageInfo(stage)) is not None
        ]
    tasks = sum(info.numTasks for info in stages)
    return sum(info.numCompletedTasks for info in stages) / tasks if tasks else 0.0


def working_session(spark: SparkSession) -> SparkSession:
    """The given session, or a copy of it (settings, views, functions) in which `id` and `ID` are two names, and
    `${HOME}` is one.

    A session of the user takes them for one unless it was told otherwise. Its own setting is left alone, because frames
    are analysed when they are used: always on Spark Connect, and here too when a user goes on with one of ours.
    """
    if _takes_names_as_written(spark):
        return spark
    given: Any = spark
    if is_connect(spark):
        copy: SparkSession = given.cloneSession()
    else:
        copy = SparkSession(spark.sparkContext, given._jsparkSession.cloneSession())
    for key, value in _NAMES.items():
        copy.conf.set(key, value)
    return copy


def _takes_names_as_written(spark: SparkSession) -> bool:
    return all(spark.conf.get(key, None) == value for key, value in _NAMES.items())


@contextmanager
def names_as_written(spark: SparkSession) -> Iterator[None]:
    """Meanwhile `id` and `ID` are two names in this session, and `${HOME}` is one: for frames that the user made."""
    before = {key: spark.conf.get(key) for key in _NAMES}
    changed = [key for key, value in _NAMES.items() if before[key] != value]
    for key in changed:
        spark.conf.set(key, _NAMES[key])
    try:
        yield
    finally:
        for key in changed:
            spark.conf.set(key, before[key] or "")


def active_session() -> SparkSession | None:
    """The session that is there already. One whose JVM is gone is forgotten."""
    if jvm.is_gone():
        jvm.forget()
    return SparkSession.getActiveSession()


def session(
    master: str = "local[*]",
    *,
    app_name: str = "clinker",
    conf: Mapping[str, str] | None = None,
    verbose: bool = False,
    remote: str | None = None,
    java_options: str = "",
) -> SparkSession:
    """The active session if there is one, else a local one that says nothing unless `verbose`.

    `remote` is a Spark Connect server; it needs the extra `clinker-spark[connect]`. `java_options` are for the JVM of
    a local session, before those that `conf` has. Raises `ClinkerError` when Spark cannot start.
    """
    active = active_session()
    if active is not None:
        return active
    # Workers take the first python on the PATH unless told; it may be another one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if remote is not None:
        connect = SparkSession.builder.remote(remote).appName(app_name)
        for key, value in {**_ALWAYS, **(conf or {})}.items():
            connect = connect.config(key, value)
        return connect.getOrCreate()
    builder = SparkSession.builder.master(master).appName(app_name)
    settings = {**_ALWAYS, **(_local() if master.startswith("local") else {})}
    given = dict(conf or {})
    given[_JAVA_OPTIONS] = f"{_STACK} {given.get(_JAVA_OPTIONS, '')}".strip()
    if java_options and master.startswith("local"):
        given[_JAVA_OPTIONS] = f"{java_options} {given.get(_JAVA_OPTIONS, '')}".strip()
    if not verbose:
        quiet = files("clinker_spark.spark").joinpath("log4j2-quiet.properties")
        options = f"-Dlog4j2.configurationFile=file:{quiet}"
        given[_JAVA_OPTIONS] = f"{options} {given.get(_JAVA_OPTIONS, '')}".strip()
    for key, value in {**settings, **given}.items():
        builder = builder.config(key, value)
    if not verbose:
        jvm.quiet()
    load_converters()
    with jvm.starting(quiet=not verbose):
        started = builder.getOrCreate()
    _remember_names(started)
    without_checksum_files(started.sparkContext)
    return started


def _remember_names(spark: SparkSession) -> None:
    """Py4J asks the JVM what a name means each time it is used, and for that the JVM looks through all its jars: a
    third of the messages, and a tenth of the time, of a small run."""
    java = spark.sparkContext._jvm
    for name, members in _ASKED_OFTEN.items():
        found = getattr(java, name)
        for member in members:
            setattr(found, member, getattr(found, member))
        setattr(java, name, found)
