"""Index values at a steady pace."""

from __future__ import annotations

import re

import numpy as np

from clinker_spark.dataset.errors import DatasetError
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.indexes import TIME

_UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}


def every(dataset: Dataset, index: str | None, step: str) -> dict[str, np.ndarray]:
    """For each segment the multiples of a step (`10`; `100ms` for times) from its beginning to its end."""
    if index is None:
        raise DatasetError("E854", "a step needs an index", "name the index: --index frame")
    size = step_of(step, dataset.index_type(index))
    found = {}
    for segment in dataset.catalogue.segments.values():
        if index in segment.ranges:
            low, high = segment.ranges[index]
            found[segment.name] = np.arange(-(-low // size) * size, high + 1, size, dtype=np.int64)
    return found


def step_of(text: str, kind: str) -> int:
    """A step as a number.

    >>> step_of("100ms", TIME), step_of("10", "int64")
    (100000, 10)
    """
    match = re.fullmatch(r"([0-9]+)\s*(us|ms|s|m|h)?", text.strip())
    if match is None or int(match[1]) == 0 or (match[2] is None) == (kind == TIME):
        wanted = "a time such as 100ms, 2s or 1m" if kind == TIME else "a whole number above 0"
        raise DatasetError("E854", f"'{text}' is no step of this index", f"write {wanted}")
    return int(match[1]) * _UNITS.get(match[2] or "us", 1)
