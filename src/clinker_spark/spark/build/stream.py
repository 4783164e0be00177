"""What flows between operators: a DataFrame, and what is known about its hidden columns and its order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.config.model.order import SortField
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.ledger import NONE, Flow

DOCUMENT_BITS = 32
"""The lower bits of a document are the position of the file among those of its source; above stands the source."""


@dataclass(frozen=True)
class Stream:
    """The records between two nodes. Those with an `$error` have failed and only wait to be diverted."""

    frame: DataFrame
    in_place: bool
    """Partition by partition, row by row, is their order."""
    route: str | None = None
    """The branch that the records took last."""
    flow: Flow = NONE
    """How many records there are, failed ones included, as the ledger of the pass knows it."""
    carried: tuple[str, ...] = ()
    """The nodes at which records may have failed that were not diverted yet."""
    pushes: bool = False
    """Can Spark move a filter on these records into the files it reads? Then nothing must stand in between."""

    @property
    def fallible(self) -> bool:
        return ERROR_COLUMN in self.frame.columns

    @property
    def arrival(self) -> bool:
        return ARRIVAL_COLUMN in self.frame.columns

    def over(self, frame: DataFrame) -> Stream:
        """The same stream with another DataFrame."""
        return replace(self, frame=frame)

    def without(self, *names: str) -> Stream:
        gone = [name for name in names if name in self.frame.columns]
        return self.over(self.frame.drop(*gone)) if gone else self


FAILED = f"({quote(ERROR_COLUMN)} IS NOT NULL)"
"""SQL: has the record failed?"""


ENDED = "clinker: a record failed"
"""What Spark says when a record that fails ends its job."""


def not_failed(strict: bool, condition: str = FAILED) -> str:
    """SQL: goes the record on? With `strict`, one that does not ends the job."""
    return f"CASE WHEN {condition} THEN CAST(raise_error('{ENDED}') AS BOOLEAN) ELSE TRUE END" if strict else f"NOT {condition}"


def failed() -> Column:
    """Has the record failed?"""
    return F.col(quote(ERROR_COLUMN)).isNotNull()


def direction(item: SortField, name: str) -> Column:
    """The column of this name, sorted as the item says."""
    column = F.col(quote(name))
    if item.order == "desc":
        return column.desc_nulls_first() if item.null_order == "first" else column.desc_nulls_last()
    return column.asc_nulls_first() if item.null_order == "first" else column.asc_nulls_last()


def order_text(item: SortField, key: str | None = None) -> str:
    """A sort column as SQL: "`day` DESC NULLS LAST"; with a `key`, that is compared in place of the column."""
    direction = "DESC" if item.order == "desc" else "ASC"
    nulls = "FIRST" if item.null_order == "first" else "LAST"
    return f"{key or quote(item.field)} {direction} NULLS {nulls}"
