"""Stream joins: pairs of records that share a key and lie close in time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinker_spark.config.model.stream_join import SIDES, StreamJoinConfig
from clinker_spark.cxl import ir
from clinker_spark.cxl.conditions import Condition
from clinker_spark.plan.facts import Required
from clinker_spark.plan.memory import SORT_MERGE, Holder
from clinker_spark.plan.nodes.base import PlanNode, Schema, StreamRef
from clinker_spark.plan.nodes.fields import fields_of

MILLISECOND = dt.timedelta(milliseconds=1)


@dataclass(frozen=True)
class JoinedColumn:
    """A column of the result, and where it comes from."""

    name: str
    side: int
    source: str


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamJoinPlan(PlanNode):
    """Joins two streams. Pairs are `left` and `right`, positions 0 and 1."""

    kind = "stream_join"
    mark = "└──<"
    verb = "joined"
    made = True

    config: StreamJoinConfig
    schemas: tuple[Schema, Schema]
    events: tuple[str, str]
    """The columns with the times of the records."""
    columns: tuple[JoinedColumn, ...]
    condition: Condition | None

    stateful = True
    can_fail = False

    @property
    def key_pairs(self) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.config.left_keys, self.config.right_keys, strict=True))

    @property
    def timed_by(self) -> tuple[StreamRef, ...]:
        side = self.config.event_side
        return () if side is None else (self.inputs[side],)

    @property
    def lag(self) -> dt.timedelta:
        """How much further than the delays of its sources the watermark stays behind, for the sake of late records."""
        late = self.config.allowed_lateness or dt.timedelta(0)
        return late + (self.config.time_window.width if self.config.late_rule == "window" else dt.timedelta(0))

    @property
    def reach(self) -> dt.timedelta:
        return self.config.time_window.width

    @property
    def input_names(self) -> tuple[str, ...]:
        return SIDES

    def expressions(self) -> Iterator[ir.TExpr]:
        if self.condition is not None:
            yield self.condition.value

    @property
    def holder(self) -> Holder:
        return SORT_MERGE

    def several_documents(self, before: Sequence[bool]) -> bool:
        return False  # a pair is made of records of two files, and belongs to neither

    def event_column(self, before: Sequence[str | None]) -> str | None:
        side = self.config.event_side
        found = [c.name for c in self.columns if c.side == side and c.source == self.events[c.side]]
        return found[0] if found else None

    def required(self, i: int, need: Required, *, in_order: bool) -> Required:
        columns = {c.source for c in self.columns if c.side == i and c.name in need.columns}
        columns |= {pair[i] for pair in self.key_pairs} | {self.events[i]}
        prefix = SIDES[i] + "."
        read = {name for e in self.expressions() for name in fields_of(e)}
        columns |= {name.removeprefix(prefix) for name in read if name.startswith(prefix)}
        return Required(frozenset(columns), arrival=need.arrival, event=need.event and i == self.config.event_side)

    # ------------------------------------------------------------ explain

    @property
    def tag(self) -> str:
        return f"stream_join:{self.config.kind}"

    def sections(self, readers: Mapping[str | None, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
        yield "Stream joins", list(self._lines())

    def _lines(self) -> Iterator[str]:
        window, config = self.config.time_window, self.config
        yield f"Stream join '{self.name}' ({config.kind}):"
        for i, side in enumerate(SIDES):
            yield f"  {side.capitalize()}: {self.inputs[i]}, time in '{self.events[i]}'"
        for left, right in self.key_pairs:
            yield f"  left.{left} = right.{right}, never for nulls"
        times = [f"{side}.{name}" for side, name in zip(SIDES, self.events, strict=True)]
        yield f"  {shown(window.min)} <= {times[1]} - {times[0]} <= {shown(window.max)}"
        if config.where is not None:
            yield f"  each pair: {' '.join(config.where.split())}"
        late = f", after {shown(config.allowed_lateness)}" if config.allowed_lateness is not None else ""
        yield f"  Late records: {config.late_data}{late}, by the rule of {config.late_rule}"

    def details(self) -> dict[str, Any]:
        window = self.config.time_window
        return {
            "join": self.config.kind,
            "keys": [list(pair) for pair in self.key_pairs],
            "events": list(self.events),
            "window": [window.min // MILLISECOND, window.max // MILLISECOND],
            "late_rule": self.config.late_rule,
        }


def shown(span: dt.timedelta) -> str:
    """`-5m`, `1h`, `250ms`: the largest unit that is whole."""
    size = abs(span) // MILLISECOND
    sign = "-" if span < dt.timedelta(0) else ""
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if size and size % length == 0:
            return f"{sign}{size // length}{unit}"
    return f"{sign}{size}ms" if size else "0s"
