"""Keys of which very many records wait in a join."""

from __future__ import annotations

import time
from collections.abc import Sequence

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.streams import StreamQuery, operators
from clinker_spark.spark.session.sessions import SparkSession
from clinker_spark.spark.streaming.waiting import held
from clinker_spark.streaming.checkpoint import Checkpoint

SHOWN = 3
EVERY = 300.0
"""So many seconds there are between two looks."""


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
                        message = f"{count} records with the key {', '.join(key)} wait {where}"
                        help_text = "is it a real key? stream: { hot_key: N } sets the limit"
                        found.append(node.diagnostic("W500", message, "config", help=help_text))
        return list({warning.message: warning for warning in found}.values())
