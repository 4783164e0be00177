"""The process that Spark forks its Python workers from (`spark.python.daemon.module`).

A worker that reads a source needs PyArrow and our readers: a second of work, for each worker and each time that Spark
ends idle ones and starts others. Here they are loaded once, before the first fork. What is there then is kept from the
garbage collector, which Spark calls after every task: it would look through all of these modules each time.
"""

from __future__ import annotations

import gc
from importlib import import_module

from pyspark import daemon

from clinker_spark.spark.sources.formats import READERS

__all__ = ["load"]

_OF_SPARK = ("pyspark.sql.pandas.serializers", "pyspark.sql.pandas.types")


def load() -> None:
    """Import what workers need. It is no matter of the daemon if that fails: the worker that needs it will say so."""
    for name in ("pyarrow", *_OF_SPARK, *(module for module, _ in READERS.values())):
        try:
            import_module(name)
        except ImportError:
            continue
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    daemon.manager()
