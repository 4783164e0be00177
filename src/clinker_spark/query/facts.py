"""What the checker finds out about the nodes of a program that running it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from clinker_spark.core.types import Kind
from clinker_spark.query.types import QType, is_any, is_kind, is_number


@dataclass(frozen=True)
class Facts:
    """Facts about nodes, by their ids."""

    per_row: frozenset[int] = frozenset()
    """Queries whose `select sum(x)` is a total of each row, because x is a list."""
    totals: Mapping[int, QType] = field(default_factory=dict)
    """The types of sums, minima and maxima."""

    def total(self, node: Any, value: Any) -> Any:
        """The value of an aggregate as its type has it: of no floats it is 0.0, of no texts null."""
        t = self.totals.get(id(node))
        if t is None or type(value) is not int or is_any(t):
            return value
        if is_kind(t, Kind.FLOAT):
            return float(value)
        if is_kind(t, Kind.DECIMAL):
            return Decimal(value)
        return value if is_number(t) else None
