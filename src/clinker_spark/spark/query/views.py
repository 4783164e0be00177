"""Sources of queries as views of the session."""

from __future__ import annotations

import hashlib
from typing import Any

from pyspark.sql import SparkSession

from clinker_spark.query.files.formats import FileSource
from clinker_spark.spark.query.frames import scan_frame
from clinker_spark.spark.scan.files import Stamp


def view_of(spark: SparkSession, name: str, content: Any, ordered: bool, *, held: bool = False) -> str:
    """Makes a view of a source, and gives its name. `held`: in joins, every task may hold it whole.

    The view of a file that has not changed since is used again: listing files and making a view costs a query more
    than parsing it does. A file that has changed has another name, and a plan that reads the old one is left alone.
    """
    if isinstance(content, FileSource) and content.rows is None:
        name = f"clinker_file_{_fingerprint(content, ordered)}{'_held' * held}"
        if spark.catalog.tableExists(name):
            return name
    frame = scan_frame(spark, content, ordered)
    (frame.hint("broadcast") if held else frame).createOrReplaceTempView(name)
    return name


def _fingerprint(source: FileSource, ordered: bool) -> str:
    """All that a view of a file depends on: how it is read, and the state of each file."""
    stamps = [Stamp.of(path) for path in source.paths]
    return hashlib.sha256(repr((source, ordered, stamps)).encode()).hexdigest()[:24]
