"""The order of rows as hidden columns, and what happens to it when rows are put together."""

from __future__ import annotations

from collections.abc import Sequence

from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.query.values import OrderTerm

NUMBER = "$n"


def first_of(terms: Sequence[OrderTerm]) -> tuple[str, str]:
    """A pipe step to put before an aggregation (or nothing), and the aggregate that keeps the first row's place.

    Places that only ascend are compared as they are. Others are numbered first, which needs all rows in one window:
    it happens only where somebody groups or deduplicates sorted rows and still wants their order.

    >>> first_of([OrderTerm("$o1"), OrderTerm("$o2")])
    ('', 'min(struct(`$o1`, `$o2`))')
    """
    if all(t.plain for t in terms):
        names = ", ".join(quote(t.column) for t in terms)
        return "", f"min({names})" if len(terms) == 1 else f"min(struct({names}))"
    return numbered(terms), f"min({quote(NUMBER)})"


def numbered(terms: Sequence[OrderTerm]) -> str:
    """A pipe step that adds the number of each row in this order."""
    return f"\n|> EXTEND row_number() OVER (ORDER BY {', '.join(t.sql() for t in terms)}) AS {quote(NUMBER)}"


def packed(terms: Sequence[OrderTerm]) -> tuple[str, tuple[str, ...]]:
    """A pipe step (or nothing) and the columns that then ascend in the order of the rows."""
    if all(t.plain for t in terms):
        return "", tuple(t.column for t in terms)
    return numbered(terms), (NUMBER,)
