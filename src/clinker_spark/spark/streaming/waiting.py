"""What waits in the state of a query, read from its checkpoint with Spark's own reader of state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from clinker_spark.config.model.stream_join import SIDES
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import TIME_COLUMN, WINDOW_COLUMN

JOIN = "symmetricHashJoin"
TOTALS = ("stateStoreSave", "sessionWindowStateStoreSaveExec")


@dataclass(frozen=True)
class Held:
    """What one side of a join, or an aggregate, holds."""

    operator: int
    side: str | None
    """None: these are totals of windows that are not closed yet."""
    frame: DataFrame
    """`key` and `value`, as Spark keeps them."""

    def newest(self) -> int | None:
        """The newest time among them, in milliseconds since 1970; of windows, their end."""
        places = [(part, name) for part in ("value", "key") for name in _names(self.frame, part)]
        ends = [f"{part}.{quote(name)}.end" for part, name in places if name == WINDOW_COLUMN]
        times = [f"{part}.{quote(name)}" for part, name in places if name.endswith(TIME_COLUMN)]
        found = times if self.side else ends
        if not found:
            return None
        row = self.frame.agg(F.max(F.expr(f"unix_millis({found[0]})"))).first()
        return None if row is None else row[0]

    def top(self, most: int, width: int) -> list[tuple[tuple[str | None, ...], int]]:
        """The keys of which most records wait, and how many. A key has `width` columns; what Spark keeps behind them is
        its own."""
        keys = [F.col(f"key.{quote(name)}").cast("string") for name in _names(self.frame, "key")[:width]]
        texts = F.array(*keys).alias("key")
        counted = self.frame.groupBy(texts).agg(F.count(F.lit(1)).alias("records"))
        rows = counted.orderBy(F.desc("records"), "key").limit(most).collect()
        return [(tuple(row["key"]), int(row["records"])) for row in rows]

    def size(self) -> int:
        return self.frame.count()


def held(spark: SparkSession, checkpoint: Path) -> Iterator[Held]:
    """Both sides of all joins of a query, and its totals. Nothing before its first batch is finished: what they are is
    written when that batch is planned, and what is in them when it ends."""
    if not any(path.name.isdigit() for path in (checkpoint / "commits").glob("*")):
        return
    for row in operators(spark, checkpoint):
        number = row["operatorId"]
        reader = spark.read.format("statestore").option("operatorId", str(number))
        if row["operatorName"] == JOIN:
            for side in SIDES:
                yield Held(number, side, reader.option("joinSide", side).load(str(checkpoint)))
        elif row["operatorName"] in TOTALS:
            yield Held(number, None, reader.load(str(checkpoint)))


def operators(spark: SparkSession, checkpoint: Path) -> list[dict[str, Any]]:
    """What holds state in a query: number, name, and how many partitions there are."""
    try:
        rows = spark.read.format("state-metadata").load(str(checkpoint)).collect()
    except PySparkException:  # no batch was ever finished
        return []
    found = {row["operatorId"]: row.asDict() for row in rows}
    return [found[number] for number in sorted(found)]


def _names(frame: DataFrame, column: str) -> list[str]:
    kind = frame.schema[column].dataType
    return list(kind.names) if isinstance(kind, StructType) else []
