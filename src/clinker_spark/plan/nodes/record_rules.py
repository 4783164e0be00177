"""Rules that a transform applies to each of its records, beside what its program does: validations and log rules."""

from __future__ import annotations

from dataclasses import dataclass

from clinker_spark.config.model.transform import LogRule
from clinker_spark.cxl.program import Program


@dataclass(frozen=True, eq=False, kw_only=True)
class Check:
    """A validation: a condition (as one `$ok` column) that every record must meet."""

    name: str
    field: str | None
    program: Program
    severity: str
    message: str


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordLog:
    """A log rule for records, and its condition (as one `$log` column)."""

    rule: LogRule
    condition: Program | None

    @property
    def programs(self) -> tuple[Program, ...]:
        return () if self.condition is None else (self.condition,)
