"""What a run used, while it is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from clinker_spark.runtime.measure.memory import MemorySampler, MemoryUse
from clinker_spark.runtime.measure.nodes import NodeMeasure, node_measures
from clinker_spark.runtime.measure.processes import Sample
from clinker_spark.spark.measure.executions import executions, executions_so_far
from clinker_spark.spark.session.sessions import SparkSession


@dataclass
class Used:
    """What a run used."""

    memory: MemoryUse
    nodes: dict[str, NodeMeasure]
    """By node, as Spark counted it; nothing over Spark Connect."""
    seconds_measuring: float
    """How long it took to ask Spark for that, after the run."""
    arbitration: dict[str, Any] | None = None
    """What was done about memory that ran short, where there was a limit."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "memory": self.memory.as_dict(),
            "nodes": {name: measure.as_dict() for name, measure in self.nodes.items()},
            "seconds_measuring": round(self.seconds_measuring, 3),
            "arbitration": self.arbitration,
        }


@contextmanager
def measured(
    spark: SparkSession, last: str, take: Callable[[Used], None], tell: Callable[[Sample], None] | None = None
) -> Iterator[None]:
    """Measure what runs in the block; `take` gets it afterwards, `tell` each sample of memory meanwhile. `last` is the
    node of plans that name none. Of a block that fails the memory is known, and nothing of its nodes."""
    first = executions_so_far(spark)
    with MemorySampler(tell=tell) as memory:
        try:
            yield
        except BaseException:
            take(Used(memory, {}, 0.0))
            raise
    began = time.monotonic()
    nodes = node_measures(executions(spark, first), last)
    take(Used(memory, nodes, time.monotonic() - began))
