"""Columns of text as cells of a CSV file: the text that writing their values gives, from the text they were read of.

Nearly always that is the text itself, and a look at its first and last characters and its length can tell. The rest
is written anew: trailing zeros are cut off, and what is left (exponents, very long numbers) is written one by one.

>>> column = TextColumn("x", FLOAT)
>>> texts = pa.array(["1.5", "1.50", "007", "1e3", ""])
>>> cell_text(column, texts, column.convert(texts).values).to_pylist()
['1.5', '1.5', '7', '1000', '']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.core.types import FLOAT, Kind
from clinker_spark.cxl.builtins.text import float_text
from clinker_spark.spark.scan.text.bytes import TextBytes, byte_table, mentions
from clinker_spark.spark.scan.text.values import TextColumn

__all__ = ["FLOAT", "cell_text", "joined_cells", "quoted_where_needed"]

_PLUS, _MINUS, _POINT, _ZERO = b"+-.0"
_EXPONENT = byte_table(b"eE+")
_OF_VALUES = "0123456789-.truefalse"
_SURE_DIGITS = 15
"""Different numbers of up to so many digits are different floats, so that the shortest text of the float is theirs."""


def joined_cells(
    columns: Sequence[TextColumn],
    texts: Sequence[pa.Array],
    values: Sequence[pa.Array],
    delimiter: str,
    as_they_stand: Callable[[], pa.Array | None] | None = None,
) -> pa.Array:
    """The cells of each record side by side, as they stand in a file. What is null is an empty cell. Where all are
    written as they were read, `as_they_stand` may know a shorter way."""
    written = [cell_text(*each) for each in zip(columns, texts, values, strict=True)]
    if as_they_stand is not None and all(a is b for a, b in zip(written, texts, strict=True)):
        found = as_they_stand()
        if found is not None:
            return found
    cells = []
    for column, cell in zip(columns, written, strict=True):
        # The other kinds need quotes only if the delimiter is one of their characters.
        tested = column.type.kind is Kind.STRING or delimiter in _OF_VALUES
        cells.append(quoted_where_needed(cell, delimiter) if tested else cell)
    if len(cells) == 1:
        return pc.fill_null(cells[0], "")
    return pc.binary_join_element_wise(*cells, delimiter, null_handling="replace", null_replacement="")


def quoted_where_needed(text: pa.Array, delimiter: str) -> pa.Array:
    """Texts with quotes around those that need them."""
    if not mentions(text, f'{delimiter}"\r\n'.encode()):
        return text
    found = [pc.match_substring(text, character) for character in (delimiter, '"', "\r", "\n")]
    needed = pc.fill_null(pc.or_(pc.or_(found[0], found[1]), pc.or_(found[2], found[3])), False)
    if not pc.any(needed).as_py():
        return text
    chosen = pc.filter(text, needed)
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(chosen, '"', '""'), '"', "")
    return pc.replace_with_mask(text, needed, quoted)


def cell_text(column: TextColumn, text: pa.Array, values: pa.Array) -> pa.Array:
    """The text of the values, before quoting; anything where there is no value."""
    match column.type.kind:
        case Kind.INT:
            return text if _plain_ints(text) else pc.cast(values, pa.string())
        case Kind.FLOAT:
            return _float_cells(text, values)
        case Kind.DATE:
            return text if _iso_dates(column, text) else pc.cast(values, pa.string())
        case Kind.BOOL:
            return pc.cast(values, pa.string())
    return text


def _plain_ints(text: pa.Array) -> bool:
    """Are these digits without a plus and without leading zeros? What does not read as a number may be anything."""
    found = TextBytes(text)
    first = found.at(found.starts)
    if ((first == _PLUS) | ((first == _ZERO) & (found.lengths > 1))).any():
        return False
    negative = np.flatnonzero(first == _MINUS)
    return not (found.at(found.starts[negative] + 1) == _ZERO).any()


def _iso_dates(column: TextColumn, text: pa.Array) -> bool:
    """All dates of ten characters are in the ISO form where no other form is read."""
    if column.formats or column.only_formats:
        return False
    lengths = TextBytes(text).lengths
    return bool(((lengths == 10) | (lengths == 0)).all())


def _float_cells(text: pa.Array, values: pa.Array) -> pa.Array:
    found = TextBytes(text)
    if not len(text):
        return text
    first, last = found.at(found.starts), found.at(found.ends - 1)
    negative = first == _MINUS
    whole = found.starts
    if negative.any():
        whole = whole + negative
        first = found.at(whole)
    digits = found.lengths - negative
    odd = (digits > _SURE_DIGITS) | (first == _POINT) | (first == _PLUS) | (last == _POINT)
    odd |= (first == _ZERO) & (digits > 1) & (found.at(whole + 1) != _POINT)
    odd[found.texts_with(_EXPONENT)] = True
    odd &= found.lengths > 0
    ends_in_zero = (last == _ZERO) & (found.lengths > 1) & ~odd
    if ends_in_zero.any():
        chosen = text.take(pa.array(np.flatnonzero(ends_in_zero)))
        trimmed = pc.if_else(pc.match_substring(chosen, "."), pc.ascii_rtrim(pc.ascii_rtrim(chosen, "0"), "."), chosen)
        if not trimmed.equals(chosen):
            text = pc.replace_with_mask(text, pa.array(ends_in_zero), trimmed)
    if odd.any():
        written = [None if v is None else float_text(v) for v in values.take(pa.array(np.flatnonzero(odd))).to_pylist()]
        text = pc.replace_with_mask(text, pa.array(odd), pa.array(written, pa.string()))
    return text
