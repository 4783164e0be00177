"""`type: stream_join`: records of two streams that share a key and lie close in time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from clinker_spark.config.model.base import ONE_OR_MORE, Also, Finding, Gone, Model
from clinker_spark.config.model.node import NodeModel
from clinker_spark.config.values import Duration, Text, Words, read_duration
from clinker_spark.core.diagnostics.suggest import did_you_mean

SIDES = ("left", "right")


def _read_signed(value: Any) -> dt.timedelta:
    """`5m`, `-5m` and `0`."""
    if isinstance(value, str):
        text = value.strip()
        if text in ("0", "-0"):
            return dt.timedelta(0)
        if text.startswith("-"):
            return -read_duration(text[1:])
    return read_duration(value)


_SIGNED_SCHEMA = {"type": "string", "pattern": r"^-?[0-9]+\s*(ms|s|m|h|d)?$", "examples": ["-5m", "1h"]}
SignedDuration = Annotated[dt.timedelta, BeforeValidator(_read_signed), WithJsonSchema(_SIGNED_SCHEMA)]


class TimeWindow(Model):
    """How far the time of a right record may lie from that of a left one; both bounds belong to it."""

    min: SignedDuration
    """At least so much later (or, below 0, at most so much earlier)."""
    max: SignedDuration
    """At most so much later."""

    @property
    def width(self) -> dt.timedelta:
        """The larger of both distances."""
        return max(abs(self.min), abs(self.max))

    def check(self) -> Iterator[Finding]:
        if self.min > self.max:
            yield Finding("E500", "'min' is above 'max': nothing fits", ("min",), "swap them")


def _read_window(value: Any) -> Any:
    """`5m` as `{ min: -5m, max: 5m }`."""
    if isinstance(value, str):
        found = read_duration(value)
        return {"min": f"-{found // _MS}ms", "max": f"{found // _MS}ms"}
    return value


_MS = dt.timedelta(milliseconds=1)


class StreamJoinConfig(Model):
    """What joins two records, and what becomes of them."""

    left_keys: Annotated[tuple[Words, ...], Field(min_length=1), ONE_OR_MORE]
    """The columns of the left input that must equal those of the right one. A null equals nothing."""
    right_keys: Annotated[tuple[Words, ...], Field(min_length=1), ONE_OR_MORE]
    """The columns of the right input, in the same order."""
    time_window: Annotated[TimeWindow, Also(_read_window, {"type": "string", "examples": ["5m"]})]
    """How far two records may lie apart in time: 5m, or { min: 0s, max: 1h } for right minus left."""
    kind: Literal["inner", "left", "right", "full"] = "inner"
    """Which records without a match come out as well, with nulls for the other side."""
    where: Text | None = None
    """A further CXL condition of each pair; columns are written left.column and right.column."""
    late_data: Literal["drop", "reopen"] = "drop"
    """Records behind the watermark are dropped; or joined as long as 'allowed_lateness' says."""
    allowed_lateness: Duration | None = None
    """With late_data: reopen: for how long."""
    late_rule: Literal["spark", "window"] = "spark"
    """When a record is late: as soon as the watermark has passed it; or only when the watermark has passed all that it
    could be joined with, too, for which records are held about twice as long."""
    left_columns: tuple[Words, ...] | None = None
    """The columns of the left input that come out; by default all."""
    right_columns: tuple[Words, ...] | None = None
    """The columns of the right input that come out; by default all."""
    left_prefix: Text = "left_"
    """What stands before the names of the left columns."""
    right_prefix: Text = "right_"
    """What stands before the names of the right columns."""
    event_time: Literal["left", "right"] | None = None
    """Whose time is that of the pair, for joins and windows after this one; by default that of the side of which every
    record comes out, or the left one."""

    @property
    def event_side(self) -> int | None:
        """The side whose time is that of the result: 0 or 1; None if neither has one in every record."""
        if self.kind == "full":
            return None
        if self.event_time is not None:
            return SIDES.index(self.event_time)
        return 1 if self.kind == "right" else 0

    def check(self) -> Iterator[Finding]:
        if len(self.left_keys) != len(self.right_keys):
            message = f"{len(self.left_keys)} left key(s) cannot equal {len(self.right_keys)} right key(s)"
            yield Finding("E500", message, ("right_keys",), "name as many columns on both sides", on_key=True)
        if self.late_data == "reopen" and self.allowed_lateness is None:
            help_text = "add allowed_lateness: 10m, or write late_data: drop"
            yield Finding("E500", "'reopen' needs 'allowed_lateness'", ("late_data",), help_text)
        if self.late_data == "drop" and self.allowed_lateness is not None:
            help_text = "write late_data: reopen, or remove the key"
            message = "'allowed_lateness' goes with late_data: reopen"
            yield Finding("E500", message, ("allowed_lateness",), help_text, on_key=True)
        if self.event_time is not None and self.kind not in ("inner", self.event_time):
            message = f"in a {self.kind} join not every record has a time of the {self.event_time} side"
            yield Finding("E500", message, ("event_time",), "remove the key")


class StreamJoinNode(NodeModel):
    """Joins the records of two streams that share a key and lie close in time."""

    input_keys: ClassVar[tuple[str, ...]] = ("input",)

    type: Literal["stream_join"]
    input: dict[str, Words]
    """The two inputs: { left: orders, right: payments }."""
    config: StreamJoinConfig

    gone: ClassVar[dict[str, Gone]] = {
        "inputs": Gone("a stream join names its inputs", "write 'input: { left: orders, right: payments }'")
    }

    def check(self) -> Iterator[Finding]:
        for name in self.input:
            if name not in SIDES:
                help_text = did_you_mean(name, SIDES) or "write 'input: { left: orders, right: payments }'"
                yield Finding("E500", f"there is no side '{name}'", ("input", name), help_text, on_key=True)
        for side in SIDES:
            if side not in self.input:
                help_text = "write 'input: { left: orders, right: payments }'"
                yield Finding("E500", f"the {side} input is missing", ("input",), help_text, on_key=True)

    @property
    def sides(self) -> tuple[str, str]:
        """The nodes that are joined."""
        return self.input["left"], self.input["right"]
