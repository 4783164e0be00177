"""The process that Spark forks its Python workers from (`spark.python.daemon.module`).

A worker that reads a source needs PyArrow, Polars and our readers: a second of work, for each worker and each time that
Spark ends idle ones and starts others. Here they are loaded once, before the first fork. What is there then is kept
from the garbage collector, which Spark calls after every task: it would look through all of these modules each time.
"""

from __future__ import annotations

import gc
import os
from importlib import import_module

from pyspark import daemon

from clinker_spark.spark.scan.formats import READERS

__all__ = ["load"]

_OF_SPARK = ("pyarrow", "pyspark.sql.pandas.serializers", "pyspark.sql.pandas.types")
"""What Spark itself imports for a function over Arrow batches. Pandas is none of it, and takes 50 MB."""
_OF_FRAGMENTS = ("clinker_spark.spark.fragments.runner", "clinker_spark.spark.fragments.totals.finals")
"""With Polars, which starts its threads only when a worker computes something: they would not survive a fork."""


def load() -> None:
    """Import what workers need. It is no matter of the daemon if that fails: the worker that needs it will say so."""
    for name in (*_OF_SPARK, *_OF_FRAGMENTS, *(module for module, _ in READERS.values())):
        try:
            import_module(name)
        except ImportError:
            continue
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # each core has a worker of its own
    os.setpgid(0, 0)  # as Spark's own does: Ctrl-C is not for us, the JVM ends us
    load()
    daemon.manager()
