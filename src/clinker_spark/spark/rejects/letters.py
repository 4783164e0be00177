"""Dead letters: every failure of a pass in one DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    BUILT_COLUMN,
    BUILT_TYPE,
    CK_PREFIX,
    GROUP_PREFIX,
    LETTER_COLUMN,
    ORIGIN_COLUMN,
    STAGE_COLUMN,
)
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.aggregate import LATE
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.plan.nodes.reshape import CONFLICT
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.columns.select import named, select_sql
from clinker_spark.spark.operators.combine import MISS
from clinker_spark.spark.plan_cuts import united
from clinker_spark.spark.rejects.collected import Diverted
from clinker_spark.spark.rejects.correlated import CORRELATED, text_map
from clinker_spark.spark.render.joined_values import COLLISION

AS_IS = (
    MISS,
    "validation_failure",
    "expansion_limit_exceeded",
    "nan_in_output_field",
    COLLISION,
    CONFLICT,
    CORRELATED,
    LATE,
)
"""Kinds of errors that are categories of dead letters themselves, wherever they happen."""


@dataclass(frozen=True)
class LetterCount:
    """How many dead letters have the same source, stage and category."""

    source: int | None
    stage: int
    category: str
    count: int


def letters(builder: Builder, suspected: Callable[[Diverted], bool] = lambda place: True) -> DataFrame | None:
    """All failures at suspected places; None when no record can fail there. Columns: source, file, row, stage, route,
    category, field, value, message, letter, tie, keys, groups, trigger, built."""
    frames = [_letters(builder.plan, found) for found in builder.rejects.failures if suspected(found)]
    return united(frames) if frames else None


def _letters(plan: Plan, found: Diverted) -> DataFrame:
    frame, stream = found.frame, found.stream
    origin, error, stage = (quote(name) for name in (ORIGIN_COLUMN, ERROR_COLUMN, STAGE_COLUMN))
    tie = "array()"
    if ARRIVAL_COLUMN in frame.columns:
        arrival = quote(ARRIVAL_COLUMN)
        tie = arrival if isinstance(frame.schema[ARRIVAL_COLUMN].dataType, ArrayType) else f"array({arrival})"
    route = "NULL" if stream.route is None else sql_string(stream.route)
    built = quote(BUILT_COLUMN) if BUILT_COLUMN in frame.columns else "array()"
    columns = {
        "source": f"{origin}.source",
        "file": f"{origin}.file",
        "row": f"{origin}.row",
        "stage": stage,
        "route": f"CAST({route} AS STRING)",
        "category": _category(plan, stage, f"{error}.kind", f"{origin}.source"),
        "field": f"CASE WHEN NOT startswith({error}.field, '$') THEN {error}.field END",  # not our own columns
        "value": f"{error}.value",
        "message": f"{error}.message",
        "letter": quote(LETTER_COLUMN),
        "tie": f"CAST({tie} AS ARRAY<BIGINT>)",
        "keys": text_map(frame, CK_PREFIX),
        "groups": text_map(frame, GROUP_PREFIX),
        "trigger": f"coalesce({error}.kind <> '{CORRELATED}', TRUE)",
        "built": f"CAST({built} AS {BUILT_TYPE})",
    }
    return select_sql(frame, [named(sql, name) for name, sql in columns.items()])


def _category(plan: Plan, stage: str, kind: str, source: str) -> str:
    """SQL for the category of a failure."""

    def at(places: Sequence[int]) -> str:
        return f"{stage} IN ({', '.join(map(str, places))})"

    as_is = f"{kind} IN ({', '.join(map(sql_string, AS_IS))})"
    own = [i for i, node in enumerate(plan.nodes) if node.category is None]
    cases = [f"WHEN {at(own)} OR {as_is} THEN {kind}" if own else f"WHEN {as_is} THEN {kind}"]
    by_category: dict[tuple[str, str], list[int]] = {}
    for i, node in enumerate(plan.nodes):
        if node.category is not None and node.made_category is not None and node.category != PlanNode.category:
            by_category.setdefault((node.category, node.made_category), []).append(i)
    for (category, made), places in by_category.items():
        if made != category:
            cases.append(f"WHEN {at(places)} AND {source} IS NULL THEN {sql_string(made)}")
        cases.append(f"WHEN {at(places)} THEN {sql_string(category)}")
    return f"CASE {' '.join(cases)} ELSE {sql_string(PlanNode.category or '')} END"


def in_order(frame: DataFrame) -> DataFrame:
    """In source and row order; what was made of several records comes last."""
    return frame.orderBy(F.col("source").asc_nulls_last(), "file", "row", "stage", "tie")


def first_letters(frame: DataFrame, most: int) -> list[Any]:
    """The first letters as rows, for messages and previews."""
    return in_order(frame).limit(most).collect()


def of_sources(frame: DataFrame, sources: Sequence[int], *, others: bool = False) -> DataFrame:
    """The letters of some sources, or of all others and of none."""
    mine = F.col("source").isin(list(sources))
    return frame.where(F.col("source").isNull() | ~mine if others else mine)


def layout(plan: Plan, counts: Sequence[LetterCount]) -> list[str]:
    """The columns of the records: as declared when all have the same ones, else all of them by name."""
    found: list[tuple[str, ...]] = []
    for count in counts:
        if count.source is not None:
            source = plan.sources[count.source]
            columns = (*(c.name for c in source.columns), *source.key_columns)
        else:
            node = plan.nodes[count.stage]
            made = [n for n in (*plan.upstream(node.name), node) if n.made]
            columns = tuple(made[-1].schema) if made else ()
        if columns not in found:
            found.append(columns)
    if len(found) == 1:
        return list(found[0])
    return sorted({name for columns in found for name in columns})
