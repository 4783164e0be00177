"""Who holds memory in a run: every node that does, and every kept result, with what the plan says about them.

The bytes are asked for when they are needed. Readers hold those of the Python workers; what is kept, and what the sorts
and hash tables of a job hold together, Spark knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import LAST, SLOT, Holder
from clinker_spark.plan.passes.buffers import KEPT


@dataclass(frozen=True)
class Consumer:
    """Somebody who holds memory."""

    node: str
    holder: Holder
    """What it does with memory: can it be paused, and when is it asked to spill?"""
    steered: bool
    """Does it give way when it is asked? Spark spills its own sorts and hash tables by its own rules."""
    held: int = 0
    in_use: bool = False
    """Does the job that runs read it? What is put on disk would be read from there at once. What belongs to no node may
    be read by any job."""


@dataclass(frozen=True)
class Held:
    """Bytes as they were pulled."""

    workers: int = 0
    execution: int = 0
    """Of all sorts and hash tables together."""
    kept: Mapping[str, int] | None = None
    """By node."""


class Registry:
    """All consumers of a plan.

    Those of one kind that are asked for together (readers; sorts and hash tables) share what is known about them.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        resources = plan.facts.resources
        self.slots = tuple(dict.fromkeys(edge.producer for edge in resources.edges if edge.how == KEPT))
        self.readers = tuple(name for name, holder in resources.holders.items() if holder.can_back_pressure)
        self.operators = tuple(name for name, holder in resources.holders.items() if holder.accumulates)

    def consumers(self, held: Held, running: Iterable[str] | None = None) -> list[Consumer]:
        """Who holds how much; `running` are the nodes of the job that goes on, or all."""
        now = set(self.plan.facts.resources.holders if running is None else running)
        holders = self.plan.facts.resources.holders
        readers = [name for name in self.readers if name in now]
        operators = [name for name in self.operators if name in now]
        kept = held.kept or {}
        return [
            *(Consumer(name, holders[name], True, held.workers // len(readers)) for name in readers),
            *(Consumer(name, SLOT, True, size, not name or name in now) for name, size in kept.items()),
            *(Consumer(name, holders[name], False, held.execution // len(operators)) for name in operators),
        ]


def victims(consumers: Iterable[Consumer], *, largest_first: bool = False) -> list[Consumer]:
    """Who is asked to spill, in this order: by priority, of these whom nobody reads just now, then by what they hold;
    or, with `backpressure: both`, by what they hold alone.

    >>> from clinker_spark.plan.memory import HASH_AGGREGATE, SOURCE
    >>> every = [Consumer("s", SOURCE, True, 9), Consumer("t", HASH_AGGREGATE, False, 8), Consumer("t", SLOT, True, 5)]
    >>> [c.holder.words for c in victims(every)], [c.held for c in victims(every, largest_first=True)]
    (['slot between stages', 'hash aggregate'], [8, 5])
    """
    holding = [consumer for consumer in consumers if consumer.holder.spill_priority is not None and consumer.held]
    if largest_first:
        return sorted(holding, key=lambda consumer: -consumer.held)
    return sorted(holding, key=lambda consumer: (_priority(consumer), consumer.in_use, -consumer.held))


def _priority(consumer: Consumer) -> int:
    return LAST if consumer.holder.spill_priority is None else consumer.holder.spill_priority
