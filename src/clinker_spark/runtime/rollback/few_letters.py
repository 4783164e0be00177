"""What `Groups` asks of failures and other letters, while they are few: decided over tables, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from clinker_spark.plan.columns import CK_PREFIX
from clinker_spark.plan.graph import Plan
from clinker_spark.runtime.reject.saved_letters import Saved
from clinker_spark.spark.rejects.dirty_groups import KeyTexts


def failed_groups(plan: Plan, failed: Sequence[Saved]) -> Iterator[tuple[int, KeyTexts]]:
    """The groups of failed records: source and keys (`dirty_groups.dirty_groups`)."""
    for found in failed:
        table = found.table("source", "stage", "keys", "groups")
        for source, stage, pairs, groups in zip(*(column.to_pylist() for column in table.columns), strict=True):
            blame = plan.facts.correlation.blamed[stage]
            sources = {source} if blame.traced and source is not None else set(blame.others)
            for name, _ in groups if source is None else ():
                sources -= {node.index for node in plan.sources_of(name)}
            for index in sorted(sources):
                yield index, dict(pairs or ())


def carried_groups(failed: Sequence[Saved]) -> Iterator[tuple[int, KeyTexts]]:
    """The groups of failed records within their own sources: source and keys (`dirty_groups.carried_groups`)."""
    for found in failed:
        table = found.table("source", "keys")
        for source, pairs in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if source is not None:
                yield source, dict(pairs or ())


def own_groups(letters: Sequence[Saved]) -> Iterator[tuple[int, KeyTexts]]:
    """The groups of records as they were read: source and keys (`dirty_groups.own_groups`)."""
    for found in letters:
        table = found.table("source", "letter")
        for source, pairs in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if source is not None:
                yield source, {name: text for name, text in pairs or () if name.startswith(CK_PREFIX)}


def once_each(others: pa.Table, triggers: pa.Table) -> pa.Table:
    """Each record once, and none that failed itself: `correlated.once_each`."""
    place = ("source", "file", "row")
    failed = set(zip(*(triggers[name].to_pylist() for name in place), strict=True))
    best: dict[tuple[Any, ...], tuple[tuple[Any, ...], int]] = {}
    columns = [others[name].to_pylist() for name in (*place, "stage", "message")]
    for i, (source, file, row, *rank) in enumerate(zip(*columns, strict=True)):
        found = best.get((source, file, row))
        if (source, file, row) not in failed and (found is None or tuple(rank) < found[0]):
            best[source, file, row] = (tuple(rank), i)
    return others.take(pa.array(sorted(i for _, i in best.values()), pa.int64()))


def together(tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")
