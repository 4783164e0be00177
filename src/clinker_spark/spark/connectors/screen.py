"""The first records of a batch, for people who look at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from clinker_spark.spark.arrow_batches import over_batches

_COLUMNS = "line STRING, more BIGINT"
_SCHEMA = pa.schema([("line", pa.string()), ("more", pa.int64())])


def first_rows(batch: DataFrame, most: int) -> tuple[list[dict[str, Any]], int]:
    """At most so many of its records, which are lines of JSON, and how many more there are. All of them are read: what
    a stream holds, and how far it is, comes from that."""

    def shown(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left, more = most, 0
        for rows in batches:
            lines = rows.column(0).slice(0, left)
            left -= len(lines)
            more += rows.num_rows - len(lines)
            yield pa.RecordBatch.from_arrays([lines, pa.nulls(len(lines), pa.int64())], schema=_SCHEMA)
        yield pa.RecordBatch.from_arrays([pa.nulls(1, pa.string()), pa.array([more])], schema=_SCHEMA)

    found = over_batches(batch, shown, _COLUMNS).collect()
    lines = [row["line"] for row in found if row["line"] is not None]
    more = sum(row["more"] or 0 for row in found) + len(lines[most:])
    return [json.loads(line) for line in lines[:most]], more
