"""Clinker on Spark: declarative data pipelines with a typed expression language (CXL).

>>> from clinker_spark import cxl  # doctest: +SKIP
>>> cxl.compile("emit total = price * 2", schema={"price": "int"}).evaluate({"price": 21})  # doctest: +SKIP
[{'total': 42}]

>>> pipeline = clinker_spark.load("pipeline.yaml")  # doctest: +SKIP
>>> pipeline.run().exit_code  # doctest: +SKIP
0
>>> pipeline.dataframe("clean").show()  # doctest: +SKIP

>>> clinker_spark.query("from p in people where p.age >= 18 select p.name", people=df).show()  # doctest: +SKIP

>>> clinker_spark.dataset("robots/").reader(index="frame", fill_latest_at=True).show()  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.1.0.dev0"


def load(path: str, **variables: Any) -> Any:
    """A pipeline from its file, checked and planned; see `clinker_spark.runtime.api.Pipeline`. No Java is started.

    `variables` are values for `$vars`.
    """
    return import_module("clinker_spark.runtime.api").Pipeline.load(path, variables)


class CallableQueries(ModuleType):
    """The package `clinker_spark.query`, which can be called."""

    def __call__(self, text: str, **sources: Any) -> Any:
        """A query program over DataFrames, tables, lists and files; see `clinker_spark.runtime.query.api.query`.

        `sources` are its names: DataFrames, lists of records, tables (`Table("sales")`) or plain values. Rows come
        back as a DataFrame, a single value as itself.
        """
        return import_module("clinker_spark.runtime.query.api").query(text, sources)


class CallableDatasets(ModuleType):
    """The package `clinker_spark.dataset`, which can be called."""

    def __call__(self, place: str) -> Any:
        """A dataset, a recording of many entities over time; see `clinker_spark.spark.dataset.reader`."""
        return import_module("clinker_spark.spark.dataset.reader").dataset(place)


def __getattr__(name: str) -> Any:
    if name in ("query", "dataset"):  # loaded when it is first asked for
        return import_module(f"clinker_spark.{name}")
    raise AttributeError(f"module 'clinker_spark' has no attribute '{name}'")
