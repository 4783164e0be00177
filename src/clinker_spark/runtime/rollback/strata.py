"""In which order failures are judged, and what failed totals were made of. Needs no Spark."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.reject.saved_letters import Letters

UNTRACED = -1
"""The stratum of failures that nothing can be retracted for."""


def strata(plan: Plan, failures: pa.RecordBatch | pa.Table) -> np.ndarray:
    """Of each failure (`stage`, `source`, `groups`) the stratum in which it is judged: how many relaxed aggregates
    stand before its node. That of a failed total is one higher than that of the records which it was made of."""
    facts = plan.facts.correlation
    stages = failures["stage"].to_numpy(zero_copy_only=False) if failures.num_rows else np.array([], np.int32)
    found = np.array([facts.strata[node.name] for node in plan.nodes])[stages]
    groups = _combined(failures["groups"])
    offsets = groups.offsets.to_numpy()
    sizes = np.diff(offsets)
    rows = np.repeat(np.arange(len(groups)), sizes)
    keys = groups.keys.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    for i, node in enumerate(plan.nodes):
        if facts.made_strata[node.name] > facts.strata[node.name]:
            has = np.zeros(len(groups), dtype=bool)
            has[rows[pc.equal(keys, node.name).to_numpy(zero_copy_only=False)]] = True
            found[has & (stages == i)] = facts.made_strata[node.name]
    made = pc.is_null(failures["source"]).to_numpy(zero_copy_only=False)
    found[made & (sizes == 0)] = UNTRACED
    return found


def failed_totals(failures: Letters, most: int) -> tuple[dict[str, set[str]], int]:
    """By aggregate: the totals that failed, or that what failed was made of; a few more than `most`, if there are more.
    And how many there are in all."""
    totals: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for batch in failures.batches("source", "groups"):
        made = batch["groups"].filter(pc.is_null(batch["source"]))
        names, groups = made.keys.to_pylist(), made.items.to_pylist()
        counts.update(names)
        for name, group in zip(names, groups, strict=True):
            if len(known := totals.setdefault(name, set())) <= most:
                known.add(group)
    return totals, counts.total()


def _combined(column: pa.Array | pa.ChunkedArray) -> pa.MapArray:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column
