"""`type: transform`: a CXL program over each record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field

from clinker_spark.config.model.base import Finding, Gone, Model, without_effect
from clinker_spark.config.model.documents.variable import VarType, check_default, check_names, read_value
from clinker_spark.config.model.node import InputNode, text_of
from clinker_spark.config.model.order import SortOrder
from clinker_spark.config.tree.yaml import Mapping
from clinker_spark.config.values import Anything, Count, Duration, Int, Text, Words
from clinker_spark.cxl.system import PIPELINE_MEMBERS, RUNNING_TOTALS, SOURCE_MEMBERS

MAX_LOG_MESSAGE = 1024
MOST_ROWS = 2**31 - 1
_RESERVED = {"pipeline": {*PIPELINE_MEMBERS, *RUNNING_TOTALS}, "source": set(SOURCE_MEMBERS), "record": set[str]()}


class Frame(Model):
    """The part of a partition that functions see from a record: one of rows and range."""

    rows: tuple[Int | None, Int | None] | None = None
    """The first and the last record, counted from the current one: [-6, 0]. null is the end of the partition."""
    range: Duration | None = None
    """The records up to the current one whose time is at most so far from its own: 7d."""

    def check(self) -> Iterator[Finding]:
        if (self.rows is None) == (self.range is None):
            help_text = "write { rows: [-6, 0] } or { range: 7d }"
            yield Finding("E007", "a frame is exactly one of rows and range", (), help_text)
        first, last = self.rows or (None, None)
        if first is not None and last is not None and first > last:
            yield Finding(
                "E007", f"the frame begins after its end: {first} is more than {last}", ("rows",), "swap them"
            )
        for i, at in enumerate((first, last)):
            if at is not None and abs(at) > MOST_ROWS:
                help_text = f"write at most {MOST_ROWS}, or null for the end of the partition"
                yield Finding("E007", f"{at} is too far away", ("rows", i), help_text)


class AnalyticWindow(Model):
    """The records that $window functions see."""

    group_by: tuple[Words, ...]
    """The columns whose values make a partition; [] is one for all."""
    sort_by: SortOrder = ()
    """The order inside a partition."""
    source: Words | None = None
    """Another source, or any other node, whose records the functions see instead of those of this one."""
    on: Text | None = None
    """The expression that finds the partition there; by default the columns of group_by."""
    frame: Frame | None = None
    """The part of the partition that sum, avg, min, max, count, collect, ... see; by default all of it."""

    def check(self) -> Iterator[Finding]:
        if self.frame is not None and self.source is not None:
            message = "a frame is counted from the current record, and those of 'source' are others"
            yield Finding("E007", message, ("frame",), "remove 'frame' or 'source'", on_key=True)
        if self.frame is not None and self.frame.range is not None and len(self.sort_by) != 1:
            message = f"'range' needs one column of times in 'sort_by', which has {len(self.sort_by)}"
            yield Finding("E007", message, ("frame", "range"), "add sort_by: [column], or use rows", on_key=True)
        if self.on is not None and self.source is None:
            yield Finding("E007", "'on' needs a 'source'", ("on",), "add source: node, or remove this", on_key=True)
        if self.on is not None and len(self.group_by) != 1:
            message = f"'on' finds the value of one column, and 'group_by' has {len(self.group_by)}"
            yield Finding("E007", message, ("on",), "write one column in group_by, or remove 'on'", on_key=True)
        for i, item in enumerate(self.sort_by):
            if item.null_order == "drop":
                help_text = "write first or last; a filter can leave records out"
                yield Finding("E007", "a window cannot drop records", ("sort_by", i, "null_order"), help_text)


class Validation(Model):
    """A test that every record must pass."""

    name: Words | None = None
    """The name in dead letters; by default made of the field and the check."""
    field: Words | None = None
    """The column that a named check looks at."""
    check_: Words = Field(alias="check")
    """A named check, such as not_empty, or a CXL condition."""
    args: dict[str, Anything] | None = None
    """What a named check needs besides the column."""
    severity: Literal["error", "warn"] = "error"
    """error sends the record to the dead letters, warn only reports it."""
    message: Text | None = None
    """What the dead letter says."""


class Declaration(Model):
    """A variable that this transform writes with emit $scope.name."""

    name: Words
    """The name after $scope."""
    scope: Literal["pipeline", "source", "record"]
    """How long it lives: for the run, for one source, with the record."""
    type: VarType
    """string, int, float, bool, date or date_time."""
    default: Any = None
    """Its value before it is written."""

    @property
    def value(self) -> Any:
        """The default as a value of the declared type; None when there is none."""
        return None if self.default is None else read_value(self.type, self.default)

    def check(self) -> Iterator[Finding]:
        for finding in check_names([self.name], "variable"):
            yield Finding(finding.code, finding.message, ("name",), finding.help)
        if self.name in _RESERVED[self.scope]:
            message = f"${self.scope}.{self.name} is built in"
            yield Finding("E014", message, ("name",), "give the variable another name")
        yield from check_default(self.type, self.default)


class LogRule(Model):
    """A line in the log of the run."""

    name: Words | None = None
    """The name of the event."""
    level: Literal["trace", "debug", "info", "warn", "error"]
    """How important the line is."""
    when: Literal["before_transform", "after_transform", "per_record", "on_error"]
    """Once before, once after, for records, or for records that fail."""
    message: Text
    """What the line says."""
    every: Count | None = None
    """per_record: one line for every so many records."""
    fields: tuple[Words, ...] = ()
    """The columns whose values are shown."""
    condition: Text | None = None
    """per_record: a CXL condition on the record that comes in."""

    gone: ClassVar[dict[str, Gone]] = {
        "log_rule": Gone("'log_rule' is not supported", "write the rule out here", "E124")
    }

    def check(self) -> Iterator[Finding]:
        if self.when == "per_record" and self.every is None:
            yield Finding("E011", "'per_record' needs 'every'", ("when",), "add every: 1000, or every: 1 for all")
        if self.when != "per_record":
            for key in ("every", "condition"):
                if getattr(self, key) is not None:
                    message = f"'{key}' belongs to 'when: per_record', not to '{self.when}'"
                    yield Finding("E011", message, (key,), "remove it, or write 'when: per_record'", on_key=True)
            yield from without_effect(self, ("fields",), f"'{self.when}' does not speak of single records")
        if len(self.message.encode()) > MAX_LOG_MESSAGE:
            yield Finding("E007", "'message' is too long", ("message",), f"{MAX_LOG_MESSAGE} bytes are allowed")


class TransformConfig(Model):
    """The program, and what goes with it."""

    cxl: Text
    """The program: emit, let, filter, distinct, emit each."""
    analytic_window: AnalyticWindow | None = None
    validations: tuple[Validation, ...] = ()
    """Tests that every record must pass."""
    declares: tuple[Declaration, ...] = ()
    """Variables that this transform writes with emit $scope.name."""
    phase: Literal["runtime", "init"] = "runtime"
    """init: run before everything else; such a transform feeds no other node."""
    max_expansion: Count = 10_000
    """The most records that emit each makes of one."""
    batch_size: Count | None = None
    """The number of records that are handled together."""
    log: tuple[LogRule, ...] = ()
    """Lines in the log of the run."""


class TransformNode(InputNode):
    """Runs a CXL program over each record."""

    type: Literal["transform"]
    config: TransformConfig

    @classmethod
    def further_inputs_in(cls, node: Mapping) -> Iterator[tuple[str, tuple[str, ...]]]:
        config = node.get("config")
        window = config.get("analytic_window") if isinstance(config, Mapping) else None
        looked_up = text_of(window, "source")
        if looked_up and (looked_up != text_of(node, "input") or text_of(window, "on")):
            yield looked_up, ("config", "analytic_window", "source")

    @classmethod
    def ends_in(cls, node: Mapping) -> bool:
        return text_of(node.get("config"), "phase") == "init"
