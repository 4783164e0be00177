"""Functions over the Arrow batches of a frame, in Python workers.

Before each of them PySpark asks which version of pandas there is, and loads it for that: 30 MB in this process, and as
much in those of the workers, besides 20 MB of libraries, of a limit that may be 1 GB. Arrow batches need none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas import functions, utils

_ASKING: tuple[Any, ...] = (utils, functions)
"""The modules of PySpark that ask, each by a name of its own for the same function."""
_asks = utils.require_minimum_pandas_version


def over_batches(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """What `mapInArrow` makes."""
    with without_pandas():
        return frame.mapInArrow(function, schema)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Meanwhile PySpark takes it for granted that there is a pandas that suits it."""
    for module in _ASKING:
        module.require_minimum_pandas_version = _granted
    try:
        yield
    finally:  # of two threads the second one may load it; what there was before them is always put back
        for module in _ASKING:
            module.require_minimum_pandas_version = _asks


def load_converters() -> None:
    """What PySpark loads when the first value goes to the JVM: to know whether there is NumPy, it asks its tools for
    tests, and these ask for everything."""
    with without_pandas():
        import_module("pyspark.testing.utils")


def _granted() -> None:
    return None
