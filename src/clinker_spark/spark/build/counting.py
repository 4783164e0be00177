"""Counting what a program leaves out or makes more of, in the job that runs it anyway.

Counting ends a block of Spark's generated code, so it happens only where records can leave: a filter, a `distinct`, a
fan-out. A condition that costs next to nothing is evaluated twice, to count and to filter: the records that come
straight from a reader are then counted where they are. For any other condition they are copied with a flag, TRUE or
null, that is counted as it is and filtered by, so that it is evaluated once.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import EMPTY, FanOut, Where, quote
from clinker_spark.plan.columns import KEPT_COLUMN
from clinker_spark.plan.ledger import Flow, count
from clinker_spark.plan.nodes.base import PlanNode

if TYPE_CHECKING:
    from clinker_spark.spark.build.builder import Builder
    from clinker_spark.spark.build.stream import Stream

_QUOTED = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'")
_COSTLY = re.compile(r"\w\(|\b(?:CASE|R?LIKE|CAST)\b", re.IGNORECASE)
_FEW_CHARACTERS = 200


class Tap:
    """Follows the records of one program; `flow` is how many there are at its end."""

    def __init__(self, builder: Builder, node: PlanNode, stream: Stream) -> None:
        self.builder = builder
        self.node = node
        self.flow: Flow = stream.flow
        self.pushes = stream.pushes and not stream.fallible and not any(p.fallible for p in node.programs)
        self._places: Counter[str] = Counter()

    def where(self, df: DataFrame, step: Where) -> DataFrame:
        """The rows that are kept; the others are counted under the reason."""
        if step.reason == EMPTY:  # counted by `fan_out`
            return df.where(step.condition)
        place = self._places[step.reason]
        self._places[step.reason] += 1
        name = f"{self.node.name}.{step.reason}" + (f" {place + 1}" if place else "")
        ledger, before = self.builder.ledger, self.flow
        if not self.builder.writes or (self.pushes and step.reason == "filter"):
            # Spark leaves out whole parts of Parquet files when it sees the filter. What is in them is known from the
            # files themselves, and what comes out is counted further on.
            df = df.where(step.condition)
            self.flow = ledger.unknown(f"{name}: kept")
            dropped = count(f"{name}: dropped")
            ledger.law(self.node.name, f"leaves out records by {step.reason}", before, self.flow + dropped)
        else:
            flag = F.expr(f"CASE WHEN {step.condition} THEN TRUE END")
            every = F.count(F.lit(1))
            if is_cheap(step.condition):
                df = self.builder.metrics.count(name, df, rows=every, kept=F.count(flag)).where(step.condition)
            else:
                df = self.builder.metrics.count(
                    name, df.select("*", flag.alias(KEPT_COLUMN)), rows=every, kept=F.count(quote(KEPT_COLUMN))
                )
                df = df.where(F.col(quote(KEPT_COLUMN)).isNotNull()).drop(KEPT_COLUMN)
            rows, self.flow = count(f"{name}: rows"), count(f"{name}: kept")
            ledger.law(self.node.name, f"takes {{left}} records, and {{right}} reach its {name}", before, rows)
            dropped = rows - self.flow
            self.pushes = False
        ledger.entry(self.node.name).dropped[step.reason, place] = dropped
        return df

    def fan_out(self, df: DataFrame, step: FanOut) -> DataFrame:
        """The same rows; counted is how many they become in the next step."""
        name = f"{self.node.name}.emit each"
        ledger, before = self.builder.ledger, self.flow
        self.pushes = False
        self.flow = count(f"{name}: made")
        ledger.entry(self.node.name).dropped[EMPTY, 0] = count(f"{name}: empty")
        if not self.builder.writes:
            ledger.unknown(f"{name}: made")
            return df
        fine = "TRUE" if step.error is None else f"{step.error} IS NULL"
        metrics = {
            "rows": F.count(F.lit(1)),
            "made": F.expr(f"coalesce(sum(CASE WHEN {fine} THEN {step.size} ELSE 1 END), 0L)"),
            "empty": F.expr(f"count(CASE WHEN {fine} AND {step.size} = 0 THEN 1 END)"),
        }
        df = self.builder.metrics.count(name, df, **metrics)
        ledger.law(
            self.node.name, "takes {left} records, and {right} reach its fan-out", before, count(f"{name}: rows")
        )
        return df


def is_cheap(condition: str) -> bool:
    """Does it cost less to evaluate a condition once more than to copy a record? It does where columns are compared.

    >>> is_cheap("(`qty` > 5L)"), is_cheap("`$t1` IS NOT NULL OR `rate (%)` = 0.5D")
    (True, True)
    >>> is_cheap("contains(`name`, 'x')"), is_cheap("CASE WHEN `a` THEN `b` ELSE `c` END")
    (False, False)
    """
    return len(condition) <= _FEW_CHARACTERS and _COSTLY.search(_QUOTED.sub("", condition)) is None
