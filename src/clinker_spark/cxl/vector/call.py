"""What the form of a builtin gets and gives, and what forms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Overload
from clinker_spark.cxl.errors import Fail

DTYPES: dict[Kind, Any] = {
    Kind.NULL: pl.String(),
    Kind.BOOL: pl.Boolean(),
    Kind.INT: pl.Int64(),
    Kind.FLOAT: pl.Float64(),
    Kind.STRING: pl.String(),
    Kind.DATE: pl.Date(),
    Kind.DATETIME: pl.Datetime("us"),
}


@dataclass(frozen=True)
class VectorCall:
    """The arguments that were given: columns that are cheap to repeat, the constants among them, their types."""

    args: Sequence[pl.Expr]
    literals: Sequence[Any]
    types: Sequence[Type]
    overload: Overload

    def literal(self, index: int) -> Any:
        """The constant at `index`, or NOT_LITERAL when it is left out or computed."""
        return self.literals[index] if index < len(self.literals) else NOT_LITERAL

    def is_constant(self, index: int) -> bool:
        return self.literal(index) is not NOT_LITERAL


@dataclass(frozen=True)
class Formed:
    """A value, and for each way to fail of the overload, in their order, where it does: an expression, or one made of
    the value's column. None: where the value is null although no argument is."""

    value: pl.Expr
    failed: tuple[pl.Expr | Callable[[pl.Expr], pl.Expr] | None, ...] = ()


Form = Callable[[VectorCall], pl.Expr | Formed]


def literal(value: Any, t: Type) -> pl.Expr:
    """A constant of a type.

    >>> from clinker_spark.core.types import INT
    >>> pl.select(x=literal(None, INT))["x"].dtype
    Int64
    """
    if t.kind is Kind.FLOAT and value is not None:
        value = float(value)
    return pl.lit(value, dtype=DTYPES[t.kind])


def repaired(call: VectorCall, fast: pl.Expr, doubtful: pl.Expr) -> pl.Expr:
    """`fast`, but what the interpreter says where `doubtful` holds. A doubt costs a step of Python for each value, so
    doubts must be rare; they make a form right whatever it meets."""
    columns = [i for i in range(len(call.args)) if not call.is_constant(i)]
    constants, run = list(call.literals), call.overload.run

    def one(values: Sequence[Any]) -> Any:
        given = list(constants)
        for i, value in zip(columns, values, strict=True):
            given[i] = value
        try:
            return run(*given)
        except Fail:
            return None

    return mended(fast, doubtful, [call.args[i] for i in columns], one)


def mended(fast: pl.Expr, doubtful: pl.Expr, args: Sequence[pl.Expr], one: Callable[[Sequence[Any]], Any]) -> pl.Expr:
    """`fast`, but `one(values of args)` where `doubtful` holds and no argument is null."""

    def mend(columns: Sequence[pl.Series]) -> pl.Series:
        known, doubts, *values = columns
        if not doubts.any():
            return known.head(len(doubts))
        if len(known) < len(doubts):
            known = known.extend_constant(known[0], len(doubts) - len(known))
        at = doubts.arg_true()
        rows = zip(*(column.gather(at).to_list() for column in values), strict=True)
        found = [None if None in row else one(row) for row in rows]
        return known.scatter(at, pl.Series(found, dtype=known.dtype))

    return pl.map_batches([fast, doubtful, *args], mend)


def text_bytes(texts: pl.Series) -> bytes:
    """All texts of a column, one after the other: to look for a character in them takes next to no time.

    >>> text_bytes(pl.Series(["ab", None, "c"]))
    b'abc'
    """
    return bytes(text_view(texts))


def text_view(texts: pl.Series) -> memoryview:
    """The same, without one more copy."""
    array = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
    content = array.buffers()[2]
    if content is None or not len(array):
        return memoryview(b"")
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return memoryview(content)[int(offsets[0]) : int(offsets[-1])]


def by_distinct(column: pl.Expr, one: Callable[[Any], Any], dtype: Any) -> pl.Expr:
    """A function of single values, called once for each value that differs: for dates, of which there are few."""

    def run(values: pl.Series) -> pl.Series:
        kept = values.drop_nulls().unique()
        if not len(kept):
            return pl.Series(values.name, [None] * len(values), dtype=dtype)
        found = pl.Series([one(value) for value in kept.to_list()], dtype=dtype)
        return values.replace_strict(kept, found, default=None, return_dtype=dtype)

    return column.map_batches(run, return_dtype=dtype)
