"""What a pass sets aside on the way: failures, and the records that belong to them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.spark.build.stream import Stream


@dataclass(frozen=True)
class Diverted:
    """The failures that are diverted at one place of the plan."""

    frame: DataFrame
    node: PlanNode
    stream: Stream
    name: str
    """What they are counted under, in passes that count."""


@dataclass(frozen=True)
class Held:
    """The records that an output withholds, and all that reach it."""

    frame: DataFrame
    node: PlanNode
    reached: DataFrame


@dataclass(frozen=True, eq=False)
class Rejects:
    """The rejects of one pass. All but `diverting` is collected only by passes that find rejects."""

    diverting: set[str] = field(default_factory=set)
    """The nodes at which failures, if there are any, are diverted."""
    failures: list[Diverted] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    """What is withheld at outputs."""
    left_out: list[tuple[DataFrame, PlanNode]] = field(default_factory=list)
    """What totals were made without, and these totals."""
    contributions: dict[str, DataFrame] = field(default_factory=dict)
    """By aggregate: the records that its groups were made of."""
    numbers: dict[str, DataFrame] = field(default_factory=dict)
    """By relaxed aggregate, where outputs show keys: its groups (`id`) and their numbers (`number`)."""
