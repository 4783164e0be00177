"""How the memory of a run is divided among the processes that share it.

A limit covers the whole process tree: this process, the JVM with its heap and with what it needs besides, and a Python
worker for each task that runs at the same time. What they need besides the heap was measured; the heap gets what is
left, and as many tasks run at once as it has room for.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size

MIB = 1 << 20
LIMIT_SETTING = "spark.clinker.memoryLimit"
"""Bytes that the process tree of a session may use, as a setting of that session; who starts it sets it."""
DEFAULT_SHARE = 0.60
"""Without a limit: the share of the machine's memory that a run may use."""
TASK_SETTING = "spark.clinker.taskBytes"
"""What a task of a session may hold in sorts and hash tables, in bytes; who starts it sets it."""
SPLIT_SETTING = "spark.clinker.splitBytes"
"""How much of a file a task reads, as a setting of a session; only where memory is short."""
DRIVER = 120 * MIB
"""This process."""
JVM = 290 * MIB
"""What the JVM needs besides its heap: classes, compiled code, threads, buffers."""
LARGE = 4 << 30
"""From this limit on, the JVM collects garbage with several threads, and keeps tables about its heap for that."""
_TABLES = 0.05
"""The share of such a limit that these tables take."""
DAEMON = 45 * MIB
"""The process that Python workers are forked from."""
WORKER = 85 * MIB
"""A Python worker that reads a source."""
SLACK = 32
"""One part in so many of the limit is left: no process stops to grow at the very byte."""
HEAP = 256 * MIB
"""The least heap: Spark's own objects take half of it."""
TASK_HEAP = 48 * MIB
"""What each further task needs of the heap to sort and add up before it must spill."""
MOST_HEAP = 30 << 30
"""Above this, pointers of the JVM are twice as long."""
_SPARK_SHARE = 0.6
"""The part of the heap, less what Spark leaves to its own objects, that is there for sorts and hash tables."""
_GROWTH = 2
"""A record in a sort or a hash table takes about so many times its bytes in the file."""
_PACKED = 4
"""And so many times its bytes in a shuffle, which are compressed."""
_MOST_PIECES = 2000
"""Each piece of a shuffle costs every task that writes it a file, and every task that reads it a start."""
_OWN_GROUPS = "/proc/self/cgroup"
_GROUPS = "/sys/fs/cgroup"


@dataclass(frozen=True)
class Budget:
    """The parts of a limit, in bytes."""

    limit: int
    jvm: int
    """What the JVM needs besides its heap."""
    tasks: int
    """How many run at once."""
    heap: int

    @property
    def reserved(self) -> int:
        """What Spark leaves of the heap to its own objects. Its 300 MB suit heaps of many gigabytes."""
        return (100 if self.limit < LARGE else 300) * MIB

    @property
    def task_bytes(self) -> int:
        """What each task may hold in sorts and hash tables."""
        return int((self.heap - self.reserved) * _SPARK_SHARE / self.tasks)

    @property
    def workers(self) -> int:
        """All Python workers together, with the process that they are forked from."""
        return DAEMON + self.tasks * WORKER

    def __str__(self) -> str:
        """`heap 367M, JVM besides 290M, 2 Python workers 215M, driver 120M`."""
        several = "worker" if self.tasks == 1 else "workers"
        return (
            f"heap {shown_size(self.heap)}, JVM besides {shown_size(self.jvm)}, "
            f"{self.tasks} Python {several} {shown_size(self.workers)}, driver {shown_size(DRIVER)}"
        )


def floor(tasks: int = 1) -> int:
    """The least limit with which so many tasks can run, in whole megabytes."""
    needed = DRIVER + JVM + HEAP + DAEMON + tasks * WORKER + (tasks - 1) * TASK_HEAP
    return math.ceil(needed * SLACK / (SLACK - 1) / MIB) * MIB


def divided(limit: int, most_tasks: int) -> Budget | None:
    """The parts of a limit, with as many tasks as it has room for; None if there is no room for one.

    >>> [divided(size * MIB, 8).tasks for size in (1024, 2048, 8192)]
    [2, 8, 8]
    """
    if limit < floor():
        return None
    tasks = max(number for number in range(1, most_tasks + 1) if number == 1 or floor(number) <= limit)
    jvm = JVM + (int(limit * _TABLES) if limit >= LARGE else 0)
    heap = limit - limit // SLACK - DRIVER - jvm - DAEMON - tasks * WORKER
    return Budget(limit, jvm, tasks, min(heap // MIB * MIB, MOST_HEAP))


def machine_memory() -> int:
    """What this machine has, or what the control groups that we are in may use of it."""
    return min([psutil.virtual_memory().total, *_group_limits()])


def _group_limits() -> Iterator[int]:
    """The limits of our group and of all around it, in both versions of control groups. In a container our group often
    goes by a name that does not exist there; its files are at the root then."""
    lines = ["0::/", "0:memory:/"]
    with suppress(OSError):
        lines += Path(_OWN_GROUPS).read_text().splitlines()
    for _, controllers, group in (line.split(":", 2) for line in lines if line.count(":") > 1):
        if controllers and "memory" not in controllers.split(","):
            continue
        root, name = (_GROUPS, "memory.max") if not controllers else (f"{_GROUPS}/memory", "memory.limit_in_bytes")
        inner = PurePosixPath(group.lstrip("/"))
        for folder in (inner, *inner.parents):
            with suppress(OSError):
                text = Path(root, folder, name).read_text().strip()
                if text.isdigit() and int(text):
                    yield int(text)


def default_limit() -> int:
    """The limit of a run that has none. It is never below what Spark can start with."""
    return max(math.floor(machine_memory() * DEFAULT_SHARE), floor())


def run_budget(plan: Plan, most_tasks: int) -> Budget:
    """How the limit of a run, or that of the machine, is divided. A limit that is too small is taken for the least."""
    limit = default_limit() if plan.memory_limit is None else max(plan.memory_limit, floor())
    found = divided(limit, most_tasks)
    assert found is not None
    return found


def pieces(size: int, task_bytes: int, usual: int) -> int:
    """Into how many pieces a shuffle of so many bytes of input is cut: each should fit into what a task may hold. What
    does not is spilled again and again, and each spill that is read needs buffers outside of the heap.

    >>> [pieces(size * MIB, 86 * MIB, 8) for size in (100, 4000, 1_000_000)]
    [8, 94, 2000]
    """
    return max(usual, min(math.ceil(size * _GROWTH / max(task_bytes, MIB)), _MOST_PIECES))


def piece_bytes(task_bytes: int) -> int:
    """Pieces may be put together as long as they have fewer bytes than this, compressed."""
    return max(min(task_bytes // _PACKED, 64 * MIB), MIB)


def estimated_spill(plan: Plan) -> dict[str, int]:
    """By node whose state Spark can spill: how much it holds, and so may put on disk; 0 where nobody knows."""
    resources = plan.facts.resources
    spilling = [name for name, holder in resources.holders.items() if holder.accumulates and holder.spills]
    return {name: resources.predicted[name].freed for name in spilling}


def cores() -> int:
    """How many tasks could run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
