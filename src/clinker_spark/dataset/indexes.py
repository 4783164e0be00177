"""Index values: numbers in chunks and manifests, numbers or points in time for people."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from clinker_spark.dataset.arrays import of_numbers
from clinker_spark.dataset.errors import DatasetError

NUMBER = "int64"
TIME = "timestamp[us, tz=UTC]"
ARROW = {NUMBER: pa.int64(), TIME: pa.timestamp("us", tz="UTC")}
"""The types that an index can have. Both are whole numbers inside: counts, or microseconds since 1970."""

FIRST = -(2**63) + 2
LAST = 2**63 - 2
"""The least and the greatest value that an index can have; there is room for one more on either side."""
NOTHING = -(2**63)
"""What stands for no value where numbers are computed."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def number_of(value: Any, kind: str, name: str) -> int:
    """An index value that somebody wrote, as a number.

    >>> number_of("2026-01-01T00:00:01Z", TIME, "log_time") - number_of("2026-01-01", TIME, "log_time")
    1000000
    """
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    given = value
    if isinstance(value, np.integer):
        value = int(value)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").astype(dt.datetime)
    if isinstance(value, str):
        text = value.strip()
        if text.lstrip("+-").isdigit():
            value = int(text)
        elif kind == TIME:
            try:
                value = dt.datetime.fromisoformat(text)
            except ValueError:
                value = None
    if isinstance(value, dt.datetime) and kind == TIME:
        moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        value = (moment - _EPOCH) // _MICROSECOND
    if isinstance(value, bool) or not isinstance(value, int) or not FIRST <= value <= LAST:
        wanted = "a whole number" if kind == NUMBER else "a time, such as 2026-01-31T12:00:00Z, or microseconds"
        raise DatasetError("E854", f"{given!r} is no value of index '{name}'", f"write {wanted}")
    return value


def shown(number: int, kind: str) -> str:
    """An index value for people. Times outside of the calendar stay numbers."""
    if kind == NUMBER:
        return str(number)
    try:
        text = (_EPOCH + number * _MICROSECOND).isoformat()
    except OverflowError:
        return str(number)
    return text.replace("+00:00", "Z")


def column(numbers: np.ndarray, kind: str, missing: np.ndarray | None = None) -> pa.Array:
    """Index values as an Arrow array."""
    found = of_numbers(numbers, missing)
    return found if kind == NUMBER else found.view(ARROW[kind])


def numbers_of(values: Sequence[Any], kind: str, name: str) -> np.ndarray:
    """Given index values, ascending. Raises DatasetError for duplicates."""
    found = np.array(sorted(number_of(value, kind, name) for value in values), dtype=np.int64)
    if len(found) and (found[1:] == found[:-1]).any():
        again = shown(int(found[1:][found[1:] == found[:-1]][0]), kind)
        raise DatasetError("E854", f"index values must be unique: {again} is given twice", "remove one of them")
    return found
