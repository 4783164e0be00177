"""The readers by format: one row each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from pyspark.sql import SparkSession

from clinker_spark.spark.scan.request import ReadRequest, Scan

READERS: dict[str, tuple[str, str]] = {
    "csv": ("clinker_spark.spark.scan.csv.source", "read_csv"),
    "json": ("clinker_spark.spark.scan.json.source", "read_json"),
    "xml": ("clinker_spark.spark.scan.xml.source", "read_xml"),
    "fixed_width": ("clinker_spark.spark.scan.fixed.source", "read_fixed_width"),
    "kinds": ("clinker_spark.spark.scan.kinds.source", "read_kinds"),
    "parquet": ("clinker_spark.spark.scan.parquet.source", "read_parquet"),
    "dataset": ("clinker_spark.spark.scan.dataset.source", "read_dataset"),
}
"""Module and function of each; imported when a source of that format is built."""


def read(spark: SparkSession, kind: str, request: ReadRequest) -> Scan:
    """The scan of a source."""
    module, name = READERS[kind]
    reader: Callable[[SparkSession, ReadRequest], Scan] = getattr(import_module(module), name)
    return reader(spark, request)
