"""Recordings of many entities over time, and questions about the state of everything at each moment.

A dataset is a folder: segments (one recording each) of chunks (rows of one entity) with manifests that say which times
each chunk covers. `files` reads bytes and knows what there is, `selection` decides what a query needs, `flow` brings it
into bounded memory, `rows` makes rows of it as soon as nothing can change them any more.

Nothing here writes files or knows Spark: `runtime.dataset` imports events, `spark.dataset` makes DataFrames.

The package can be called, as the short way from Python to Spark:

>>> clinker_spark.dataset("robots/").reader(index="frame", fill_latest_at=True)  # doctest: +SKIP
"""

import sys

import clinker_spark

sys.modules[__name__].__class__ = clinker_spark.CallableDatasets
