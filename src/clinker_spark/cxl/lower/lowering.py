"""What the lowering rules share: the plan being built, how names are read, and the way to the rule of another node.

`lower(expr)` gives an SQL text and the ways it can fail. Nothing a text does throws; what cannot be computed is
null, and the failure's condition says why. Lazy constructs guard the failures of the branch they may not take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from clinker_spark.cxl import ir
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN
from clinker_spark.cxl.lower.plan import PlanBuilder, Sql, quote
from clinker_spark.cxl.system import Context


@dataclass(frozen=True)
class WindowFrame:
    """The part of a partition that functions see.

    >>> str(WindowFrame("ROWS", "6 PRECEDING"))
    'ROWS BETWEEN 6 PRECEDING AND CURRENT ROW'
    """

    unit: Literal["ROWS", "RANGE"]
    """Is it so many rows, or the rows whose sort value is that near?"""
    first: str
    last: str = "CURRENT ROW"

    @property
    def by_values(self) -> bool:
        """SQL orders by one expression only then, and not ties by their arrival."""
        return self.unit == "RANGE"

    def __str__(self) -> str:
        return f"{self.unit} BETWEEN {self.first} AND {self.last}"


WHOLE = WindowFrame("ROWS", "UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING")
SO_FAR = WindowFrame("ROWS", "UNBOUNDED PRECEDING")


@dataclass(frozen=True)
class WindowSpec:
    """The analytic window of a node: SQL texts to partition and order by; ties keep the order of arrival."""

    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    arrival: str = quote(ARRIVAL_COLUMN)
    frame: WindowFrame = WHOLE

    def clauses(self) -> dict[str, str]:
        partition = f"PARTITION BY {', '.join(self.partition_by)} " if self.partition_by else ""
        order = f"ORDER BY {', '.join((*self.sort_by, self.arrival))}"
        tied = f"ORDER BY {', '.join(self.sort_by) or '1'}"
        framed = tied if self.frame.by_values else order
        return {
            "whole": f"({partition}{framed} {self.frame})",
            "running": f"({partition}{order} {SO_FAR})",
            "ranked": f"({partition}{order})",
            "tied": f"({partition}{tied})",
        }


@dataclass
class Lowering:
    """Lowers the expressions of one program into one plan.

    A rule lowers one kind of node, and what is inside it by `lower`, so that none has to know the others;
    `rules.rule_of` knows them all."""

    rule_of: Callable[[ir.TExpr], Rule]
    builder: PlanBuilder
    context: Context
    fields: Mapping[str, str] = field(default_factory=dict)
    """How to read a column, where it is not simply its name."""
    system_columns: frozenset[str] = frozenset()
    """Names like `$source.row` that exist as columns."""
    window: WindowSpec | None = None
    slots: dict[str, Sql] = field(default_factory=dict)
    aggregates: Callable[[ir.AggregateCall], Sql] | None = None

    def lower(self, e: ir.TExpr) -> Sql:
        return self.builder.shallow(self.rule_of(e)(self, e))

    def bound(self, e: ir.TExpr) -> Sql:
        """The value as a text that is cheap to repeat."""
        return self.builder.bind(self.lower(e))

    def open_lambda(self, slot: str) -> str:
        """The variable of a new lambda, which `slot` stands for inside of it."""
        variable = self.builder.fresh("cxl_x")
        self.builder.open_lambda(variable)
        self.slots[slot] = Sql(variable, variables=frozenset((variable,)), simple=True)
        return variable


Rule = Callable[[Lowering, Any], Sql]
