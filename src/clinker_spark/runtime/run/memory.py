"""The Spark that is started for a pipeline: how many tasks it runs at once, and how much memory each part of it gets.

`memory.limit` covers the whole process tree (`plan.budget` divides it). On a cluster it is that of each executor, whose
Python workers and overhead are part of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import ClinkerError
from clinker_spark.plan.budget import LARGE, LIMIT_SETTING, MIB, SPLIT_SETTING, TASK_SETTING, cores, floor, run_budget
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size
from clinker_spark.runtime.arbitrate.spill_folder import own_folder
from clinker_spark.runtime.arbitrate.spill_settings import check_spill, usual_folder
from clinker_spark.spark.session.class_archive import archive_options

_LOCAL = re.compile(r"local(?:\[(\*|\d+)\])?")
_LOCAL_DIR = "spark.local.dir"
_SPILL_ROOT = "spark.clinker.spillRoot"
"""The folder in which a session has one of its own to spill to. Sessions that could be one have the same settings."""
_COLLECTOR = "-XX:+UseSerialGC"
"""It has no tables and threads of its own."""
_GIVES_BACK = "-XX:MinHeapFreeRatio=15 -XX:MaxHeapFreeRatio=30 -XX:-ShrinkHeapInSteps"
"""After a collection of garbage, what is not needed of the heap goes back to the system."""
_FRUGAL = (
    "-XX:ReservedCodeCacheSize=96m -XX:MaxDirectMemorySize=64m -XX:TrimNativeHeapInterval=5000 "
    "-Dio.netty.allocator.numDirectArenas=1 -Dio.netty.allocator.numHeapArenas=1"
)
"""Room for code and buffers that suits one machine; what the compiler no longer needs of it, some 20 MB, goes back to
the system every five seconds."""
_ALLOCATION = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(MIB),
    "MALLOC_TRIM_THRESHOLD_": str(MIB),
}
"""What Python workers no longer use goes back to the system at once. It costs a few hundredths of a run; Arrow's own
allocator keeps 60 MB more for each worker."""
_SPLIT = 8 * MIB
"""How much of a file a task reads: a reader of text holds all of it."""
_EXECUTOR_SHARE = 0.6
"""The part of an executor's memory that is its heap."""
LEAST_EXECUTOR = 800 * MIB
"""Spark starts no executor whose heap has less than 450 MB."""


@dataclass(frozen=True)
class SessionMemory:
    """What a session is started with."""

    master: str
    conf: dict[str, str] = field(default_factory=dict)
    java_options: str = ""
    leaves_archive: bool = True
    """May the JVM write an archive of its classes when it ends? That takes a gigabyte."""


def settings_key(settings: SessionMemory) -> str:
    """A short name for sessions that are started in the same way."""
    return hashlib.sha256(json.dumps(asdict(settings), sort_keys=True).encode()).hexdigest()[:8]


def session_memory(plan: Plan, master: str | None, conf: Mapping[str, str]) -> SessionMemory:
    """The session for a pipeline; `master` is None if nobody chose one. A `spark.driver.memory` in `conf` wins. Raises
    `ClinkerError` for a limit below what Spark needs."""
    found = _sized(plan, master, conf)
    return replace(found, leaves_archive=plan.memory_limit is None or plan.memory_limit >= LARGE)


def _sized(plan: Plan, master: str | None, conf: Mapping[str, str]) -> SessionMemory:
    threads = plan.file.settings.concurrency.threads
    wanted = master or (f"local[{threads}]" if threads else "local[*]")
    local = _LOCAL.fullmatch(wanted)
    if local is None:
        return SessionMemory(wanted, _of_executors(plan, conf))
    spill = _of_spill(plan, conf)
    if "spark.driver.memory" in conf:
        return SessionMemory(wanted, spill)
    check_limit(plan)
    budget = run_budget(plan, cores() if local[1] == "*" else int(local[1] or 1))
    settings = {
        **spill,
        "spark.driver.memory": f"{budget.heap // MIB}m",
        LIMIT_SETTING: str(budget.limit),
        TASK_SETTING: str(budget.task_bytes),
    }
    if budget.limit >= LARGE:
        return SessionMemory(f"local[{budget.tasks}]", settings)
    settings["spark.testing.reservedMemory"] = str(budget.reserved)
    # Each spill that is read would have a thread of its own, and two more buffers.
    settings["spark.unsafe.sorter.spill.read.ahead.enabled"] = "false"
    settings["spark.sql.execution.arrow.maxRecordsPerBatch"] = "2000"
    settings[SPLIT_SETTING] = str(_SPLIT)
    settings |= {f"spark.executorEnv.{name}": value for name, value in _ALLOCATION.items()}
    collector = "" if "GC" in conf.get("spark.driver.extraJavaOptions", "") else f"{_COLLECTOR} {_GIVES_BACK}"
    return SessionMemory(f"local[{budget.tasks}]", settings, f"{collector} {_FRUGAL}".strip())


def _of_spill(plan: Plan, conf: Mapping[str, str]) -> dict[str, str]:
    """Where Spark puts what does not fit in memory, and how. A `spark.local.dir` in `conf` wins."""
    settings = check_spill(plan)
    if settings.folder is None or _LOCAL_DIR in conf:
        return settings.compression
    return {**settings.compression, _SPILL_ROOT: str(settings.folder)}


def with_spill_folder(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that starts now: it spills to a folder of its own in the one that was named. Without
    one, it spills to the folder for temporary files: Java would not ask TMPDIR where that is."""
    root = conf.get(_SPILL_ROOT)
    if _LOCAL_DIR in conf:
        return dict(conf)
    if root is None:
        chosen = "TMPDIR" in os.environ and "SPARK_LOCAL_DIRS" not in os.environ
        return {**conf, _LOCAL_DIR: str(usual_folder())} if chosen else dict(conf)
    folder = str(own_folder(Path(root)))
    if "SPARK_LOCAL_DIRS" in os.environ:  # Spark would take that instead
        os.environ["SPARK_LOCAL_DIRS"] = folder
    return {**conf, _LOCAL_DIR: folder}


def options_of_jvm(settings: SessionMemory) -> str:
    """The options for the JVM of a session, with an archive of its classes if the user has none of their own."""
    if "Archive" in settings.conf.get("spark.driver.extraJavaOptions", ""):
        return settings.java_options
    return f"{archive_options(make=settings.leaves_archive)} {settings.java_options}".strip()


def check_limit(plan: Plan) -> None:
    """Raises `ClinkerError` for a limit below what Spark needs on this machine. It starts nothing."""
    if plan.memory_limit is not None and plan.memory_limit < floor():
        raise ClinkerError([_too_small(plan, plan.memory_limit, floor())])


def few_arenas() -> None:
    """Programs that this process starts take memory from few places: else each thread of the JVM has 64 MB of its
    own to take it from, of which little comes back."""
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")


def _of_executors(plan: Plan, conf: Mapping[str, str]) -> dict[str, str]:
    limit = plan.memory_limit
    if limit is None or "spark.executor.memory" in conf:
        return {}
    if limit < LEAST_EXECUTOR:
        raise ClinkerError([_too_small(plan, limit, LEAST_EXECUTOR)])
    heap = int(limit * _EXECUTOR_SHARE) // MIB
    return {"spark.executor.memory": f"{heap}m", "spark.executor.memoryOverhead": f"{limit // MIB - heap}m"}


def _too_small(plan: Plan, limit: int, least: int) -> Diagnostic:
    message = f"a memory limit of {shown_size(limit)} is too small: Spark and its workers need {shown_size(least)}"
    if limit != plan.file.settings.memory.declared_limit:
        return Diagnostic("E312", message, help=f"--memory-limit {least // MIB}M, or more")
    return plan.file.diagnostic("E312", message, ("pipeline", "memory", "limit"), f"write at least {least // MIB}M")
