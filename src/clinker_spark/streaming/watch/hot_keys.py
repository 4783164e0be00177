"""What waits in joins and totals, side by side, and the keys of which very many records wait."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery, operators
from clinker_spark.spark.session.sessions import SparkSession
from clinker_spark.spark.streaming.waiting import Held, held
from clinker_spark.streaming.checkpoint import Checkpoint

SHOWN = 3
EVERY = 300.0
"""So many seconds there are between two looks."""


@dataclass(frozen=True)
class Waiting:
    """What waits on one side of a join, or is held by an aggregate."""

    query: str
    node: str
    side: str | None
    """None: these are totals of windows that are not closed yet."""
    records: int
    top: tuple[tuple[tuple[str | None, ...], int], ...]
    """The keys of which most records wait, and how many of each."""


def waiting(
    spark: SparkSession, checkpoint: Checkpoint, shape: Mapping[str, Any], name: str, top: int
) -> Iterator[Waiting]:
    """What a query holds after its last batch; `shape` is what the checkpoint says of it."""
    nodes = shape["state"]
    width = min((len(node["keys"]) for node in nodes.values() if "keys" in node), default=0)
    for side in held(spark, checkpoint.spark_of(name)) if nodes else ():
        keys = side.top(top, width) if side.side and top else []
        yield Waiting(name, _holder(shape, side), side.side, side.size(), tuple(keys))


def _holder(shape: Mapping[str, Any], side: Held) -> str:
    """The node that holds it. Checkpoints of older versions say it only where it is the only one of its kind."""
    names = shape.get("operators") or []
    if side.operator < len(names):
        return str(names[side.operator])
    alike = [name for name, node in shape["state"].items() if ("keys" in node) == (side.side is not None)]
    return alike[0] if len(alike) == 1 else f"operator {side.operator}"


def key_text(key: Sequence[str | None]) -> str:
    """A key for people."""
    return ", ".join("null" if part is None else part for part in key)


class HotKeys:
    """Looks for keys with more than so many waiting records."""

    def __init__(self, plan: Plan, checkpoint: Checkpoint, most: int) -> None:
        self.plan = plan
        self.checkpoint = checkpoint
        self.most = most
        self.looked = time.monotonic()
        self.rows: dict[str, int] = {}
        """By query: how many records waited after its last batch."""
        self.told: set[tuple[object, ...]] = set()
        """The keys that were warned about: once each, however often they are found."""

    def due(self) -> bool:
        """Is it time to look again, while the stream goes on?"""
        return time.monotonic() - self.looked >= EVERY

    def note(self, query: StreamQuery, rows: int) -> None:
        self.rows[query.name] = rows

    def look(self, spark: SparkSession, queries: Sequence[StreamQuery]) -> list[Diagnostic]:
        """Warnings about them. Nothing is read where fewer records wait than one key may have."""
        self.looked = time.monotonic()
        found = []
        for query in queries:
            if self.rows.get(query.name, 0) <= self.most or all(node.totals for node in query.stateful):
                continue
            names = operators(self.plan, query.root)
            for side in (side for side in held(spark, self.checkpoint.spark(query)) if side.side):
                node = self.plan[names[side.operator]]
                for key, count in side.top(SHOWN, len(node.details()["keys"])):
                    place = query.name, side.operator, side.side, key
                    if count > self.most and place not in self.told:
                        self.told.add(place)
                        where = f"on the {side.side} side of '{node.name}'"
                        message = f"{count} records with the key {key_text(key)} wait {where}"
                        help_text = "is it a real key? stream: { hot_key: N } sets the limit"
                        found.append(node.diagnostic("W500", message, "config", help=help_text))
        return list({warning.message: warning for warning in found}.values())
