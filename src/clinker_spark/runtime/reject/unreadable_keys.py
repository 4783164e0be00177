"""Broken records whose correlation key nobody could read: it is not known which groups they belong to."""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc

from clinker_spark.runtime.errors import DataError
from clinker_spark.runtime.reject.saved_letters import Saved
from clinker_spark.runtime.run.state import RunState


def check_keys(state: RunState, letters: Saved) -> None:
    """Says once for each source how many of its records failed before a part of their key could be read, or stops:
    `error_handling.unreadable_key`."""
    counts = _unreadable(state, letters)
    stops = state.handling.unreadable_key == "stop"
    found = []
    for node in state.plan.sources:
        count = counts[node.index]
        if not count:
            continue
        keys = ", ".join(f"'{name}'" for name in node.config.correlation_key)
        records = "1 record" if count == 1 else f"{count:,} records"
        message = f"{records} of '{node.name}' failed before the key {keys} could be read: no group is withheld for it"
        help_text = "look at the dead letters; error_handling: { unreadable_key: stop } publishes nothing then"
        if stops:
            help_text = "correct the lines, or write error_handling: { unreadable_key: warn }"
        found.append(node.diagnostic("E454" if stops else "W453", message, "config", "correlation_key", help=help_text))
    if found and stops:
        raise DataError(found)
    state.report.warnings += found


def _unreadable(state: RunState, letters: Saved) -> Counter[int]:
    plan = state.plan
    stages = {plan.nodes.index(node): node for node in plan.sources if node.key_columns}
    counts: Counter[int] = Counter()
    for batch in letters.batches("stage", "trigger", "keys"):
        for stage, node in stages.items():
            mine = batch.filter(pc.and_(pc.equal(batch["stage"], stage), batch["trigger"]))
            parts = len(node.key_columns)
            found = ([value for _, value in keys or () if value is not None] for keys in mine["keys"].to_pylist())
            counts[node.index] += sum(len(values) < parts for values in found)
    return counts
