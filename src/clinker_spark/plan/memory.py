"""What holds memory while a pipeline runs, one row for each kind of holder, and how sizes are written.

A spill priority says who is asked first to go to disk when memory runs short: the lowest. Who can be paused instead has
no priority: it holds nothing of its own. Spark spills its own sorts and hash maps by its own rules; `spills` says
whether it can.
"""

from __future__ import annotations

from dataclasses import dataclass

LAST = 1000
"""The priority of what is never asked while anything else could give way."""


@dataclass(frozen=True)
class Holder:
    """A kind of operator, by what it does with memory."""

    words: str
    spill_priority: int | None
    """None: it has nothing that could be spilled."""
    can_back_pressure: bool = False
    """Can it be made to wait?"""
    accumulates: bool = True
    """Does it hold what it has read until all of it was read?"""
    spills: bool = True
    """Does Spark write to disk what does not fit in memory?"""
    instead: str = ""
    """Of what cannot be spilled: what to write for an operator that can."""

    @property
    def shown_priority(self) -> str:
        if self.spill_priority is None:
            return "N/A"
        return "last" if self.spill_priority == LAST else str(self.spill_priority)

    def __str__(self) -> str:
        """`spill_priority=30, can_back_pressure=false`."""
        return f"spill_priority={self.shown_priority}, can_back_pressure={str(self.can_back_pressure).lower()}"


NOTHING = Holder("holds nothing", None, accumulates=False)
SOURCE = Holder("source", None, can_back_pressure=True, accumulates=False)
STREAMING_AGGREGATE = Holder("streaming aggregate", None, accumulates=False)
SLOT = Holder("slot between stages", 0)
GRACE_HASH = Holder("grace hash combine", 10)
RESHAPE = Holder("reshape", 15)
SORT = Holder("sort", 20)
RANGE = Holder("range combine", 20)
SORT_MERGE = Holder("sort-merge combine", 25)
HASH_AGGREGATE = Holder("hash aggregate", 30)
_ON_DISK = "let the join use tables on disk (strategy: grace_hash)"
INLINE_HASH = Holder("in-memory hash combine", 30, spills=False, instead=_ON_DISK)
MAPPED = Holder("combine in workers", 30, spills=False, instead=_ON_DISK)
WORKER_TOTALS = Holder("aggregate in workers", 30, spills=False, instead="let Spark make the groups (engine: auto)")
WINDOW = Holder("window", LAST)


BROADCAST_BYTES = 64 << 20
"""Inputs of joins up to this size are held whole by every task."""
BROADCAST_SHARE = 64
"""But not more than one part in so many of the memory limit: a table in the heap is several times as large as its file,
and while it is made it is there twice."""


def held_whole(limit: int | None) -> int:
    """The size up to which an input of a join is held whole by every task."""
    return BROADCAST_BYTES if limit is None else min(BROADCAST_BYTES, limit // BROADCAST_SHARE)


def shown_size(size: int) -> str:
    """Bytes in the units of `memory.limit`, rounded to one digit after the point.

    >>> [shown_size(n) for n in (0, 900, 1024, 1500, 64 << 20, 2 << 30)]
    ['0B', '900B', '1K', '1.5K', '64M', '2G']
    """
    value, unit = float(size), "B"
    for larger in "KMGT":
        if value < 1024 or (unit != "B" and round(value, 1) < 1024):
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}".removesuffix(".0") + unit
