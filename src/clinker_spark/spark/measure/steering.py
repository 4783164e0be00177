"""What can be asked of a running Spark: who holds how much memory and disk, to put what it keeps on disk, to collect
garbage, and to cancel jobs.

Spark's sorts and hash tables go to disk by its own rules, when their share of the heap is full: nobody else can ask
them to. Only a classic session in this process tree answers; elsewhere nothing is known, and nothing is done.
"""

from __future__ import annotations

import os
import re
from typing import Any

from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from clinker_spark.spark.kept_results import node_of
from clinker_spark.spark.session.jvm import while_it_lives

_BLOCK = re.compile(r"^\(([^,()]+),", re.MULTILINE)
_NOBODY = -1
"""Spark's number of the task that writes a block, where none does."""
_PART = re.compile(r"rdd_(\d+)_")


class Steering:
    """Of one session. A JVM that is gone holds nothing."""

    def __init__(self, spark: SparkSession) -> None:
        self._context: Any = spark.sparkContext
        gateway: Any = self._context._gateway
        self._client = gateway._gateway_client

    def _static(self, name: str) -> Any:
        # By its whole name: asked for `jvm.org.apache...`, Py4J would look through all jars once for each dot.
        return JavaClass(name, self._client)

    def _blocks(self) -> Any:
        """Spark's block manager. Not through `SparkEnv.blockManager()`: its class names others that no jar has, so that
        Java cannot list its methods. Its fields it can."""
        field = self._static("java.lang.Class").forName("org.apache.spark.SparkEnv").getDeclaredField("blockManager")
        field.setAccessible(True)
        return field.get(self._context._jsc.sc().env())

    def execution_bytes(self) -> int:
        """What sorts, hash tables and joins of all running tasks hold together."""
        with while_it_lives():
            return int(self._blocks().memoryManager().executionMemoryUsed())
        return 0

    def _stored(self) -> list[Any]:
        """What Spark keeps for later, one entry for each result."""
        return list(self._context._jsc.sc().getRDDStorageInfo())

    def kept(self) -> dict[str, int]:
        """By node: the bytes of its kept results that are in memory. What belongs to no node is under ''."""
        found: dict[str, int] = {}
        with while_it_lives():
            for info in self._stored():
                node = node_of(info.name())
                found[node] = found.get(node, 0) + int(info.memSize())
        return {node: size for node, size in found.items() if size}

    def put_on_disk(self, node: str, size: int) -> int:
        """Move at least so many bytes of the kept results of a node to disk, or all of them that nobody reads just
        now; gives how many were moved.

        Spark can only be asked for bytes, and moves what was not used for longest. So everything else is used once."""
        with while_it_lives():
            blocks = self._blocks()
            store, known = blocks.memoryStore(), blocks.blockInfoManager()
            results = {int(info.id()) for info in self._stored() if node_of(info.name()) == node}
            own: list[Any] = []
            others: list[Any] = []
            for name in _BLOCK.findall(known.entries().mkString("\n")):
                part, block = _PART.match(name), self._block(name)
                if block is None:
                    continue
                (own if part is not None and int(part[1]) in results else others).append(block)
            there = sum(_used(store, block) for block in own if _is_idle(known, block))
            for block in others:
                _used(store, block)
            wanted = min(size, there)
            heap = self._static("org.apache.spark.memory.MemoryMode").ON_HEAP
            nobody = self._static("scala.Option").empty()
            return int(store.evictBlocksToFreeSpace(nobody, wanted, heap)) if wanted > 0 else 0
        return 0

    def _block(self, name: str) -> Any:
        try:
            return self._static("org.apache.spark.storage.BlockId").apply(name)
        except Py4JJavaError:  # a kind that is known by its class alone
            return None

    def idle(self) -> bool:
        """Does nobody read or write anything of what is kept? Tasks let go of it a moment after their job has ended."""
        with while_it_lives():
            known = self._blocks().blockInfoManager()
            names = [name for name in _BLOCK.findall(known.entries().mkString("\n")) if _PART.match(name)]
            return all(_is_idle(known, self._block(name)) for name in names)
        return True

    def collect_garbage(self) -> None:
        """Now. With it, Spark forgets files of shuffles that nobody refers to any more."""
        with while_it_lives():
            self._static("java.lang.System").gc()

    def begin(self, group: str) -> None:
        """Jobs that this thread starts from now on belong to a group."""
        with while_it_lives():
            # Interrupted: a task that waits for its Python worker would not see that it was cancelled.
            self._context.setJobGroup(group, "clinker", True)

    def end(self) -> None:
        """Jobs that this thread starts from now on belong to none."""
        with while_it_lives():
            self._context._jsc.sc().clearJobGroup()

    def cancel(self, group: str) -> None:
        with while_it_lives():
            self._context.cancelJobGroup(group)

    def folders(self) -> list[str]:
        """Where Spark puts what it shuffles and spills."""
        with while_it_lives():
            return [str(folder) for folder in self._blocks().diskBlockManager().localDirsString()]
        return []


def _used(store: Any, block: Any) -> int:
    """The bytes of a block in memory. To ask for them is to use the block."""
    try:
        return int(store.getSize(block)) if store.contains(block) else 0
    except Py4JJavaError:  # it went between the two
        return 0


def _is_idle(known: Any, block: Any) -> bool:
    """Does nobody read or write a block just now?"""
    found = known.get(block)
    return bool(found.isDefined()) and found.get().readerCount() == 0 and found.get().writerTask() == _NOBODY


def bytes_below(folders: list[str]) -> int:
    """What the files in some folders take. They come and go while this looks."""
    total = 0
    waiting = list(folders)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                total += sum(_entry_bytes(entry, waiting) for entry in entries)
        except OSError:  # removed meanwhile
            continue
    return total


def _entry_bytes(entry: os.DirEntry[str], waiting: list[str]) -> int:
    """What a file takes; a folder has to wait."""
    try:
        if not entry.is_dir(follow_symlinks=False):
            return entry.stat(follow_symlinks=False).st_size
        waiting.append(entry.path)
    except OSError:  # this one was removed, and the others of its folder are there
        pass
    return 0
