"""Do values stand in lines of JSON as outputs write them? Then their bytes can be copied.

>>> column = JsonColumn("x", FLOAT)
>>> [is_as_written(column, pa.array(texts)) for texts in (["0.5", "-12.0"], ["0.50"], ["7"])]
[True, False, False]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from clinker_spark.core.types import FLOAT, Kind
from clinker_spark.spark.scan.json.values import JsonColumn
from clinker_spark.spark.scan.text.bytes import TextBytes

__all__ = ["FLOAT", "is_as_written"]

_SURE_DIGITS = 15
"""Different numbers of up to so many digits are different floats, so that the shortest text of the float is theirs."""


def is_as_written(column: JsonColumn, texts: pa.Array) -> bool:
    """Of texts without escapes that were read as values of this column: is what is written for each of them the same
    text? No is a safe answer."""
    match column.type.kind:
        case Kind.STRING | Kind.BOOL:
            return True
        case Kind.INT:
            return b"-0" not in TextBytes(texts).used.tobytes()  # other numbers do not begin with a zero
        case Kind.FLOAT:
            return _are_floats(texts)
        case Kind.DATE:
            lengths = TextBytes(texts).lengths
            return not (column.formats or column.only_formats) and bool(((lengths == 10) | (lengths == 0)).all())
    return False


def _are_floats(texts: pa.Array) -> bool:
    """Are all of these digits with a point among them, no more than say what they say?"""
    found = TextBytes(texts.drop_null() if texts.null_count else texts)
    if not len(found.lengths):
        return True
    if int(found.lengths.max()) > _SURE_DIGITS + 1 or np.count_nonzero(found.used == ord(".")) != len(found.lengths):
        return False
    zeros = found.ends[found.at(found.ends - 1) == ord("0")]
    return bool((found.at(zeros - 2) == ord(".")).all())
