"""What the form of a builtin gets and gives, and what forms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from clinker_spark.core.types import Kind, Type
from clinker_spark.cxl.builtins.table import NOT_LITERAL, Overload
from clinker_spark.cxl.errors import Fail
from clinker_spark.cxl.values import decimal_text

_DTYPES: dict[Kind, Any] = {
    Kind.NULL: pl.String(),
    Kind.BOOL: pl.Boolean(),
    Kind.INT: pl.Int64(),
    Kind.FLOAT: pl.Float64(),
    Kind.STRING: pl.String(),
    Kind.DATE: pl.Date(),
    Kind.DATETIME: pl.Datetime("us"),
}
DIGITS = 38
"""Of a decimal in Polars: more than a value may have, so that nothing is lost before it is found to be too large."""


def dtype_of(t: Type) -> Any:
    """What columns of a type are to Polars. A decimal of a scale that only its value has is a text of its digits.

    >>> from clinker_spark.core.types import INT, decimal
    >>> dtype_of(INT), dtype_of(decimal(2)), dtype_of(decimal(None))
    (Int64, Decimal(precision=38, scale=2), String)
    """
    if t.kind is Kind.DECIMAL:
        return pl.String() if t.scale is None else pl.Decimal(DIGITS, t.scale)
    return _DTYPES[t.kind]


@dataclass(frozen=True)
class VectorCall:
    """The arguments that were given: columns that are cheap to repeat, the constants among them, their types."""

    args: Sequence[pl.Expr]
    literals: Sequence[Any]
    types: Sequence[Type]
    overload: Overload
    result: Type

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
    return pl.lit(as_kept(value) if is_digits(t) else value, dtype=dtype_of(t))


def uniform(frame: pl.DataFrame) -> pl.DataFrame:
    """The records as forms want them: Arrow's decimals say that they have fewer digits."""
    narrow = [(name, t) for name, t in frame.schema.items() if isinstance(t, pl.Decimal) and t.precision != DIGITS]
    return frame.with_columns(pl.col(name).cast(pl.Decimal(DIGITS, t.scale)) for name, t in narrow) if narrow else frame


def is_digits(t: Type) -> bool:
    """Are values of this type kept as texts of their digits?"""
    return t.kind is Kind.DECIMAL and t.scale is None


def as_kept(value: Any) -> Any:
    """A value for a column of texts: of a decimal, its digits."""
    return decimal_text(value) if isinstance(value, Decimal) else value


def interpreter_value(value: Any, t: Type) -> Any:
    """What the interpreter is given for a value of a column."""
    return Decimal(value) if is_digits(t) and value is not None else value


def repaired(call: VectorCall, fast: pl.Expr, doubtful: pl.Expr) -> pl.Expr:
    """`fast`, but what the interpreter says where `doubtful` holds. A doubt costs a step of Python for each value, so
    doubts must be rare; they make a form right whatever it meets."""
    columns, one = _one(call)
    return mended(fast, doubtful, [call.args[i] for i in columns], one)


def _one(call: VectorCall) -> tuple[list[int], Callable[[Sequence[Any]], Any]]:
    """The arguments that are columns, and what the interpreter makes of values of them; null where it fails."""
    columns = [i for i in range(len(call.args)) if not call.is_constant(i)]
    constants, run, types = list(call.literals), call.overload.run, call.types

    def one(values: Sequence[Any]) -> Any:
        given = list(constants)
        for i, value in zip(columns, values, strict=True):
            given[i] = interpreter_value(value, types[i])
        try:
            return run(*given)
        except Fail:
            return None

    return columns, one


def interpreted(call: VectorCall, needed: int | None = None) -> pl.Expr:
    """What the interpreter says of each record, equal ones asked once: for what has no form, which Spark computes in
    Python as well. Null where one of the arguments is null, of the first `needed` ones."""
    columns, one = _one(call)
    dtype = dtype_of(call.result)
    seen = [at for at, i in enumerate(columns) if needed is None or i < needed]
    never = any(call.literal(i) is None for i in range(len(call.args) if needed is None else needed))

    def run(given: Sequence[pl.Series]) -> pl.Series:
        size = 0 if 0 in map(len, given) else max(map(len, given))
        columns = [column if len(column) == size else column.new_from_index(0, size) for column in given]
        known: dict[tuple[Any, ...], Any] = {}
        found = []
        for row in zip(*(column.to_list() for column in columns), strict=True):
            if row not in known:
                known[row] = None if never or any(row[at] is None for at in seen) else as_kept_in(one(row), dtype)
            found.append(known[row])
        return pl.Series(found, dtype=dtype)

    return pl.map_batches([call.args[i] for i in columns], run, return_dtype=dtype)


def as_kept_in(value: Any, dtype: Any) -> Any:
    """A value for a column of this kind."""
    return as_kept(value) if dtype == pl.String else value


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
        found = [None if None in row else as_kept_in(one(row), known.dtype) for row in rows]
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
