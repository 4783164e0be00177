"""The readers by format: one row each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from pyspark.sql import SparkSession

from clinker_spark.spark.sources.request import ReadRequest, Scan

READERS: dict[str, tuple[str, str]] = {
    "csv": ("clinker_spark.spark.sources.csv_source", "read_csv"),
    "json": ("clinker_spark.spark.sources.json_source", "read_json"),
    "xml": ("clinker_spark.spark.sources.xml_source", "read_xml"),
    "fixed_width": ("clinker_spark.spark.sources.fixed_source", "read_fixed_width"),
    "parquet": ("clinker_spark.spark.sources.parquet_source", "read_parquet"),
}
"""Module and function of each; imported when a source of that format is built."""


def read(spark: SparkSession, kind: str, request: ReadRequest) -> Scan:
    """The scan of a source."""
    module, name = READERS[kind]
    reader: Callable[[SparkSession, ReadRequest], Scan] = getattr(import_module(module), name)
    return reader(spark, request)
