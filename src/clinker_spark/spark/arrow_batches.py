"""Functions over the Arrow batches of a frame, in Python workers.

Before each of them PySpark asks which version of pandas there is, and loads it for that: 50 MB in this process, and
nearly as much in the workers, of a limit that may be 1 GB. Arrow batches need none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas import functions, utils


def over_batches(
    frame: DataFrame, function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """What `mapInArrow` makes."""
    with without_pandas():
        return frame.mapInArrow(function, schema)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Meanwhile PySpark takes it for granted that there is a pandas that suits it."""
    before = [(module, module.require_minimum_pandas_version) for module in (utils, functions)]
    for module, _ in before:
        module.require_minimum_pandas_version = _granted
    try:
        yield
    finally:
        for module, asked in before:
            module.require_minimum_pandas_version = asked


def load_converters() -> None:
    """What PySpark loads when the first value goes to the JVM: to know whether there is NumPy, it asks its tools for
    tests, and these ask for everything."""
    with without_pandas():
        import_module("pyspark.testing.utils")


def _granted() -> None:
    return None
