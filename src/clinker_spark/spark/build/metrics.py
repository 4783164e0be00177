"""What a pass counts while records go by, and what these numbers must fulfil."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.ledger import Ledger
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.spark.plan_cuts import counted_behind, united

_PATIENCE = 2.0
"""So many seconds after that of its output, all counts of a job are there."""
_NUMBERS = itertools.count()
STREAMED = "node:"
"""What the names of counts begin with in the progress of a streaming query."""


@dataclass(frozen=True)
class Count:
    """What is counted at one place of the plan: known after an action, and with the DataFrame to count it again."""

    observation: Observation
    frame: DataFrame
    metrics: Mapping[str, Column]


@dataclass(frozen=True, eq=False)
class Metrics:
    """The counts of one pass."""

    plan: Plan
    once: bool = False
    """Must each name be counted in one place only?"""
    wanted: frozenset[str] | None = None
    """What is counted; None is everything."""
    counts: dict[str, Count] = field(default_factory=dict)
    """By node, or place inside of it."""
    ledger: Ledger = field(default_factory=Ledger)
    """How many records each stream has, and what these numbers must fulfil."""
    facts: dict[str, int] = field(default_factory=dict)
    """Numbers of the ledger that no job counts: what readers say, and what was retracted."""
    _named: set[str] = field(default_factory=set)
    _known: dict[str, dict[str, int]] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)
    """By node: when counts of the last job came in that it had a part in."""

    def count(self, name: str, frame: DataFrame, **metrics: Column) -> DataFrame:
        """Count while the records pass by. A node that is read twice is counted by whoever comes first.

        `name` is that of the node or, for what is counted inside of it, goes on after a dot, which no name of a node
        has: two counts of a pass with one name would be one count less."""
        assert not self.once or name not in self._named, name
        self._named.add(name)
        if self.wanted is not None:
            metrics = {key: column for key, column in metrics.items() if key in self.wanted}
            if not metrics:
                return frame
        columns = [column.alias(key) for key, column in metrics.items()]
        if frame.isStreaming:  # what is counted stands in the progress of the query, batch by batch
            return frame.observe(f"{STREAMED}{name}", *columns)
        observation = Observation(f"node:{name}:{next(_NUMBERS)}")
        self.counts[name] = Count(observation, frame, metrics)
        self._known.pop(name, None)
        return frame.observe(observation, *columns)

    def counted(self, name: str, patience: float | None = None) -> dict[str, int]:
        """What was counted at a node. Nothing, when no job came there: Spark saw that no record can get there and left
        it out, or what follows belongs to an output that is not written yet.

        The counts of a job come in together, some time after its result: those of the output are waited for first
        (`patience`), and long enough, and the others then hardly at all.
        """
        return self._ask(name, patience) or {}

    def told(self, name: str, patience: float | None = None) -> bool:
        """Is it known what was counted at a node, if only that no record can get there?"""
        return self._ask(name, patience) is not None

    def _ask(self, name: str, patience: float | None) -> dict[str, int] | None:
        if name not in self._known and name in self.counts:
            if patience is None:
                heard = self._heard.get(name.split(".")[0])
                patience = 0.0 if heard is None else heard + _PATIENCE - time.monotonic()
            # Nothing follows an output that could be cut off behind it. Workers count for all outputs of a fragment.
            last = name in self.plan.by_name and not self.plan.readers(name)
            last = last and name not in self.plan.facts.flow.fragments
            found = _observed(self.counts[name].observation, patience, in_job=last)
            if not found:
                return found
            self._known[name] = found
        return self._known.get(name)

    def failed(self) -> dict[str, int]:
        """By place: how many records failed there, where some did."""
        found = {name: self.counted(name).get("failed", 0) for name in self.counts}
        return {name: count for name, count in found.items() if count}

    def heard(self, output: PlanNode) -> None:
        """The counts of the job of an output come in now: its own is there."""
        for node in (output, *self.plan.upstream(output.name)):
            self._heard[node.name] = time.monotonic()

    def recount(self, names: Iterable[str]) -> None:
        """Count once more, in a job of its own: a task that ran twice may have been counted twice, and one that needed
        no records may not have counted those that were there."""
        frames = [
            counted.frame.agg(F.create_map(*_pairs(counted.metrics)).alias("counted")).select(
                F.lit(name).alias("name"), "counted"
            )
            for name, counted in ((name, self.counts[name]) for name in names)
        ]
        if frames:
            self._known.update((row.name, row.counted) for row in united(frames).collect())

    def built_anew(self) -> None:
        """The plan is built once more: what is counted has the same names again."""
        self._named.clear()


def _pairs(metrics: Mapping[str, Column]) -> list[Column]:
    return [part for name, column in metrics.items() for part in (F.lit(name), column.cast("bigint"))]


def _observed(observation: Observation, patience: float, *, in_job: bool) -> dict[str, int] | None:
    """What was counted: nothing where Spark left it out. None: no job has said it so far."""
    java = getattr(observation, "_jo", None)
    if java is None:  # Spark Connect brings the counts with the result
        return dict(observation.get)
    # `get` would wait for ever for counts that no job delivers.
    until = time.monotonic() + patience
    while not java.future().isCompleted():
        behind = None if in_job else counted_behind(observation._name or "")
        if behind is not None:
            return behind
        if time.monotonic() > until:
            return None
        time.sleep(0.01)
    # A node that Spark left out of its plan gives a row without a schema, which `get` does not expect.
    row = java.getRow()
    return {} if row is None or row.schema() is None else dict(observation.get)
