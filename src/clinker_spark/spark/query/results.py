"""Rows of a query as plain values of the language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row

from clinker_spark.query.lower.values import VALUE, columns_of
from clinker_spark.query.types import QType, RecordType


def value_of(value: Any) -> Any:
    """A collected value: structs as records, at any depth."""
    if isinstance(value, Row):
        return {name: value_of(value[name]) for name in value.__fields__}
    if isinstance(value, list):
        return [value_of(v) for v in value]
    if isinstance(value, dict):
        return {k: value_of(v) for k, v in value.items()}
    return value


def row_of(row: Row, t: QType) -> Any:
    flat = isinstance(t, RecordType) and not (t.nullable and columns_of(t)[0][0] == VALUE)
    return value_of(row) if flat else value_of(row[0])


def collect(frame: DataFrame, t: QType) -> list[Any]:
    return [row_of(row, t) for row in frame.collect()]


def stream(frame: DataFrame, t: QType) -> Iterator[Any]:
    """One partition at a time, so that a long result never stands in memory as a whole."""
    for row in frame.toLocalIterator():
        yield row_of(row, t)
