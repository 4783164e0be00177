"""Reshapes: rules that change the records of a group, and add others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from clinker_spark.cxl.program import Program
from clinker_spark.plan.columns import RULE_PREFIX, VALUE_PREFIX
from clinker_spark.plan.facts import Estimate, Required
from clinker_spark.plan.memory import RESHAPE, Holder
from clinker_spark.plan.nodes.grouped import GroupedPlan

CONFLICT = "mutation_conflict"
"""The category of a record of which two rules change the same column."""


@dataclass(frozen=True)
class Rule:
    """A rule. Its condition is the column `$rule.N`, its values are `$value.N.M`: of `sets`, then of `overrides`."""

    name: str
    index: int
    sets: tuple[str, ...]
    synthesizes: bool
    overrides: tuple[str, ...]
    blank: bool
    """Does the new record begin with nothing?"""

    @property
    def condition(self) -> str:
        return f"{RULE_PREFIX}{self.index}"

    @property
    def set_columns(self) -> dict[str, str]:
        """By column that is changed: the column with its new value."""
        return {name: f"{VALUE_PREFIX}{self.index}.{i}" for i, name in enumerate(self.sets)}

    @property
    def override_columns(self) -> dict[str, str]:
        """By column of the new record: the column with its value."""
        first = len(self.sets)
        return {name: f"{VALUE_PREFIX}{self.index}.{first + i}" for i, name in enumerate(self.overrides)}


@dataclass(frozen=True, eq=False, kw_only=True)
class ReshapePlan(GroupedPlan):
    """Groups, one after the other: their records as the rules left them, then those that the rules added."""

    kind = "reshape"
    shape = "box3d"
    audits = True

    rules: tuple[Rule, ...]
    conditions: Program
    values: Program
    """Over the columns of the records and `$rule.N`: a value is computed only where its rule is true."""

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.conditions, self.values)

    @property
    def holder(self) -> Holder:
        return RESHAPE

    @property
    def own_columns(self) -> frozenset[str]:
        return frozenset(rule.condition for rule in self.rules)

    @property
    def synthesizes(self) -> bool:
        return any(rule.synthesizes for rule in self.rules)

    @property
    def multiplies(self) -> bool:
        return self.synthesizes

    @property
    def conserves(self) -> bool:
        return not self.synthesizes

    @property
    def one_for_one(self) -> bool:
        return not self.synthesizes

    @property
    def conflicts(self) -> tuple[tuple[Rule, Rule, str], ...]:
        """The pairs of rules that change the same column, where both are true."""
        return tuple((a, b, name) for a, b in combinations(self.rules, 2) for name in a.sets if name in b.sets)

    @property
    def can_fail(self) -> bool:
        return super().can_fail or bool(self.conflicts)

    @property
    def rewritten(self) -> frozenset[str]:
        return frozenset(name for rule in self.rules for name in (*rule.sets, *rule.overrides))

    @property
    def written(self) -> frozenset[str]:
        return self.rewritten

    def estimate(self, before: Sequence[Estimate | None]) -> Estimate | None:
        return None if self.synthesizes else before[0]

    def retraction_lines(self, sources: Sequence[str], limit: str) -> Iterator[str]:
        by = ", ".join(self.partition_by) or "<all>"
        yield f"reshape '{self.name}' (source: {', '.join(sources)}, partition_by: {by}):"
        yield "  its rules see the records that are left; groups: unknown at plan time"

    def property_lines(self, need: Required) -> Iterator[str]:
        for rule in self.rules:
            does = [f"sets {', '.join(rule.sets)}"] if rule.sets else []
            does += ["adds a record"] if rule.synthesizes else []
            yield f"  rule '{rule.name}': {' and '.join(does)}"
        if self.conflicts:
            yield "  a record of which two rules change the same column fails, and its group with it"

    def details(self) -> dict[str, Any]:
        return {"partition_by": list(self.partition_by), "rules": [rule.name for rule in self.rules]}
