"""What a run did: numbers for the summary, for machines and for tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.runtime.measure.used import Used


@dataclass
class SourceReport:
    """What was read."""

    name: str
    files: int
    bytes: int
    records: int | None = None
    """Known when readers count, or when records failed."""
    dead_letters: int = 0
    paths: list[str] = field(default_factory=list)
    earlier: int = 0
    """Files that were not read, because an earlier run read them."""


@dataclass
class StagedReport:
    """An input that was read from a copy: `copied` in this run, or `reused`."""

    source: str
    file: str
    action: str
    bytes: int
    seconds: float
    """With what this run waited for others."""
    path: str
    """The copy."""


@dataclass
class OutputReport:
    """What was written."""

    name: str
    paths: list[str] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    dropped: int = 0
    """Records left out because a column to sort by is null."""


@dataclass
class LetterReport:
    """Dead letters with one source, stage and category."""

    source: str
    stage: str
    category: str
    count: int


@dataclass
class NodeReport:
    """What a node did, in records. None is what nobody counted."""

    name: str
    kind: str
    took: int | None
    passed: int | None
    dropped: dict[str, int]
    """By reason: `filter`, `distinct`, `on_miss: skip`..."""
    failed: int
    inputs: dict[str, int | None] = field(default_factory=dict)
    """What it took, when it has several inputs."""
    ports: dict[str, int | None] = field(default_factory=dict)
    """What it passed, when it has several ports."""
    documents: str | None = None
    """Of totals over several files: `separate` or `together`."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Balance:
    """Where all records of some sources went: `read` = `written` + `dead_letters` + all of `dropped`."""

    sources: list[str]
    read: int
    written: int
    dead_letters: int
    dropped: list[tuple[str, str, int]]
    """Node, reason and number of records."""

    @property
    def missing(self) -> int:
        """What is not accounted for."""
        return self.read - self.written - self.dead_letters - sum(count for _, _, count in self.dropped)

    def __str__(self) -> str:
        parts = [f"{self.written:,} written"]
        if self.dead_letters:
            parts.append(f"{self.dead_letters:,} dead letters")
        words = {"filter": "filtered out", "distinct": "seen before"}
        parts += [f"{count:,} {words.get(reason, reason)} by '{node}'" for node, reason, count in self.dropped]
        return f"{self.read:,} read {'=' if not self.missing else '<>'} {' + '.join(parts)}"

    def as_dict(self) -> dict[str, Any]:
        dropped = [{"node": node, "reason": reason, "records": count} for node, reason, count in self.dropped]
        return {**asdict(self), "dropped": dropped}


@dataclass(frozen=True)
class RunIdentity:
    """Which run it was."""

    pipeline: str
    execution_id: str
    batch_id: str
    started: str


@dataclass
class Cost:
    """What the run took: time, in all and for each stage, and, where the options ask for them, memory and spill."""

    seconds: float = 0.0
    stage_seconds: dict[str, float] = field(default_factory=dict)
    tasks: int | None = None
    """How many tasks ran at once, at most: one for small inputs; None before that is known."""
    used: Used | None = None


_UNCOUNTED = (
    "partitions_dispatched",
    "partitions_recomputed",
    "subdag_replay_rows",
    "synthetic_ck_columns_emitted_total",
)


@dataclass
class Rollback:
    """With correlation keys: what was withheld because of failures."""

    rollback_cursors: dict[str, int] = field(default_factory=dict)
    """By source: its last record that got through. A source without one is not there."""
    retraction: dict[str, int] = field(default_factory=dict)
    """What was retracted for the sake of groups, by what was counted of it."""

    @property
    def counters(self) -> dict[str, int | None]:
        """The `correlation.retract.*` counters, all of them; None for those of which Spark has no count."""
        return {
            "groups_recomputed": self.retraction.get("groups_recomputed", 0),
            "iterations": self.retraction.get("iterations", 0),
            "output_rows_retracted_total": self.retraction.get("output_rows_retracted_total", 0),
            "synthetic_ck_fanout_lookups_total": self.retraction.get("synthetic_ck_fanout_lookups_total", 0),
            "synthetic_ck_fanout_rows_expanded_total": self.retraction.get(
                "synthetic_ck_fanout_rows_expanded_total", 0
            ),
            "degrade_fallback_count": 0,  # what was spilled is read again: no group is given up for it
            # Windows and what follows are part of a pass over what is left, and nobody counts them apart.
            **dict.fromkeys(_UNCOUNTED, 0 if not self.retraction else None),
        }


@dataclass
class RunReport:
    """The whole run. `exit_code` is 0, or 2 when records failed and the pipeline goes on.

    Its numbers are grouped by subject; those that programs ask for most can be had without the group."""

    identity: RunIdentity
    cost: Cost = field(default_factory=Cost)
    sources: list[SourceReport] = field(default_factory=list)
    staging: list[StagedReport] = field(default_factory=list)
    """What was staged, file by file."""
    outputs: list[OutputReport] = field(default_factory=list)
    letters: list[LetterReport] = field(default_factory=list)
    letter_paths: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    """Files of an earlier run that this one no longer writes."""
    rollback: Rollback = field(default_factory=Rollback)
    nodes: list[NodeReport] = field(default_factory=list)
    """What each node took, passed and left out."""
    balances: list[Balance] = field(default_factory=list)
    """Where records went, for parts of the graph in which each goes to one place."""
    warnings: list[Diagnostic] = field(default_factory=list)

    @property
    def pipeline(self) -> str:
        return self.identity.pipeline

    @property
    def execution_id(self) -> str:
        return self.identity.execution_id

    @property
    def seconds(self) -> float:
        return self.cost.seconds

    @property
    def stage_seconds(self) -> dict[str, float]:
        return self.cost.stage_seconds

    @property
    def used(self) -> Used | None:
        return self.cost.used

    @property
    def retraction(self) -> dict[str, int]:
        return self.rollback.retraction

    @property
    def rollback_cursors(self) -> dict[str, int]:
        return self.rollback.rollback_cursors

    @property
    def dead_letters(self) -> int:
        return sum(letter.count for letter in self.letters)

    @property
    def exit_code(self) -> int:
        return 2 if self.dead_letters else 0

    def as_dict(self) -> dict[str, Any]:
        """For machines; warnings are told apart."""
        data = asdict(self)
        data = data.pop("identity") | data.pop("cost") | data.pop("rollback") | data
        data.pop("warnings")
        data.pop("used")
        data["retraction"] = self.rollback.counters
        data["balances"] = [balance.as_dict() for balance in self.balances]
        if self.cost.used is not None:
            data["used"] = self.cost.used.as_dict()
        return {**data, "dead_letters": self.dead_letters, "exit_code": self.exit_code}
