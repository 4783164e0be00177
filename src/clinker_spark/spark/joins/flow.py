"""How many records a step of a combine makes, as far as that can be said before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clinker_spark.plan.ledger import Flow, count
from clinker_spark.plan.nodes.combine import CombinePlan, CombineStep

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder

SKIPPED = "on_miss: skip"
"""Why a record without a match is left out."""


def matched(builder: Builder, node: CombinePlan, step: CombineStep, left: Flow) -> Flow:
    """How many records a step makes of those of the left side."""
    ledger = builder.ledger
    if node.match == "all":  # as many as there are matches
        return ledger.unknown(f"{node.name}.pairs with {step.build}")
    if node.on_miss != "skip":
        return left
    # An inner join does not say what it leaves out: each record has one match at most, the others are the misses.
    found = ledger.unknown(f"{node.name}.found in {step.build}")
    missed = count(f"{node.name}.not found in {step.build}")
    ledger.law(node.name, f"looks up records in {step.build}", left, found + missed)
    ledger.entry(node.name).dropped[SKIPPED, node.steps.index(step)] = missed
    return found
