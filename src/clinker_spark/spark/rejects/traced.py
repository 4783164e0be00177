"""What a pass over small inputs shows, all of it in one table: failures, what totals are made of, what reaches outputs.

Everything that correlation groups need is decided from this table, so that a turn is one job; and where the readers
look up what was retracted, the next turn runs the same plan again, without building or optimising it once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import BUILT_TYPE, CK_PREFIX, GROUP_PREFIX, LETTER_COLUMN, LETTER_TYPE, ORIGIN_COLUMN
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.nodes.base import PlanNode
from clinker_spark.spark.columns.select import select_sql
from clinker_spark.spark.plan_cuts import united
from clinker_spark.spark.rejects.correlated import text_map
from clinker_spark.spark.rejects.dirty_groups import writes_records_of
from clinker_spark.spark.rejects.letters import letters

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder


WHAT = "what"
FAILED, MADE_OF, REACHED, LEFT_OUT, NUMBERED = range(5)
"""A failure; a record that the total of an aggregate is made of; one that reaches an output; one that totals are made
without, because its group has a failure; a total, with its number as `row`."""

_NOTHING = {
    "route": "STRING",
    "category": "STRING",
    "field": "STRING",
    "value": "STRING",
    "message": "STRING",
    "tie": "ARRAY<BIGINT>",
    "trigger": "BOOLEAN",
    "built": BUILT_TYPE,
}
"""The columns that only failures have."""


def traced(builder: Builder, most: int, *, everywhere: bool) -> DataFrame:
    """The table, of a pass that collects letters and was built up to all outputs. Columns: those of letters, and
    `what`. A node that makes more than one record of another gives no more than `most` rows, to be safe. It has the
    records that reach outputs `everywhere`, or where that decides about groups with a failure."""
    failures = letters(builder)
    found = [] if failures is None else [failures.withColumn(WHAT, F.lit(FAILED))]
    found += [
        _records(frame, builder.plan[name], MADE_OF, builder) for name, frame in builder.rejects.contributions.items()
    ]
    found += [
        _records(held.reached, held.node, REACHED, builder)
        for held in builder.rejects.held
        if everywhere or _looked_at(builder.plan, held.node)
    ]
    found += [_records(frame, node, LEFT_OUT, builder) for frame, node in builder.rejects.left_out]
    found += [_numbers(frame, name, builder) for name, frame in builder.rejects.numbers.items()]
    if any(node.multiplies for node in builder.plan.nodes):
        found = [frame.limit(most) for frame in found]
    return united(found)


def _looked_at(plan: Plan, end: PlanNode) -> bool:
    """Must it be known what reaches an output? Where records can be withheld, and where those of sources without a key
    are written, which are no dead letters then."""
    free = [source for source in plan.sources if not source.key_columns]
    return bool(plan.facts.correlation.keys[end.inputs[0].node].own) or any(
        writes_records_of(plan, end, node) for node in free
    )


def _records(frame: DataFrame, node: PlanNode, what: int, builder: Builder) -> DataFrame:
    origin, stage = quote(ORIGIN_COLUMN), builder.plan.nodes.index(node)
    plain = [f"{origin}.{name}" for name in ("source", "file", "row")]
    plain += [f"{stage} AS stage", f"{quote(LETTER_COLUMN)} AS letter", f"{what} AS {WHAT}"]
    plain += [f"CAST(NULL AS {kind}) AS {name}" for name, kind in _NOTHING.items()]
    plain += [f"{text_map(frame, CK_PREFIX)} AS keys", f"{text_map(frame, GROUP_PREFIX)} AS groups"]
    return select_sql(frame, plain)


def _numbers(frame: DataFrame, name: str, builder: Builder) -> DataFrame:
    plain = ["CAST(NULL AS INT) AS source", "CAST(NULL AS INT) AS file", "number AS row"]
    plain += [f"{builder.plan.places[name]} AS stage", f"CAST(NULL AS {LETTER_TYPE}) AS letter"]
    plain += [f"{NUMBERED} AS {WHAT}", *(f"CAST(NULL AS {kind}) AS {name}" for name, kind in _NOTHING.items())]
    plain += ["CAST(map() AS MAP<STRING, STRING>) AS keys", f"map({sql_string(name)}, id) AS groups"]
    return select_sql(frame, plain)


def run_again(table: DataFrame) -> pa.Table:
    """Run the job. The plan was made by the first run, and is used again."""
    frame: Any = table
    return frame.toArrow()
