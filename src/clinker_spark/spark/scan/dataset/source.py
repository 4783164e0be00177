"""The rows of a dataset query as records of a source.

They have types already, as those of Parquet files, and are checked and read by the same expressions. Each row knows its
number, which Parquet files say themselves: where exact numbers are asked for, one task reads everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from clinker_spark.config.model.source import DatasetSource
from clinker_spark.dataset.files.manifest import Dataset
from clinker_spark.dataset.indexes import FIRST, LAST, NUMBER, number_of
from clinker_spark.dataset.selection import SEGMENT, Query, layout_of
from clinker_spark.plan.nodes.source import always_there, checked_in_parquet
from clinker_spark.spark.dataset.partitions import Partitions, spark_schema, sql_fields
from clinker_spark.spark.scan.csv.header import file_name
from clinker_spark.spark.scan.parquet.columns import PartFile, column_problem, projection, resolve
from clinker_spark.spark.scan.parquet.source import Part, check_parts, undeclared
from clinker_spark.spark.scan.record_source import parallelism_of
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.scan.scans import scan

_METADATA = "_metadata"
_NUMBERS = pa.struct([("row_index", pa.int64())])
_PER_PARTITION = 1 << 33
"""More rows than a partition has; with the 40 bits that a file has, a hundred partitions fit."""


def read_dataset(spark: SparkSession, request: ReadRequest) -> Scan:
    """The rows that the options ask for. Raises InputError when query, dataset and schema do not fit together."""
    [file] = request.files
    dataset = Dataset.open(file.origin.removesuffix("/dataset.json"))
    asked = query_of(request.options)
    whole = layout_of(dataset, asked)
    check_parts(request, [Part(0, file.path, spark_schema(whole), None)])
    declared = {file_name(column) for column in request.columns}
    request = pruned(request)
    asked = within(dataset, asked, request)
    widens = request.conventions.on_unmapped == "auto_widen"
    if not widens:
        # A name may lead into a struct with dots: then the column is its beginning.
        known, names = whole.schema.names, [file_name(column) for column in request.columns]
        heads = {name if name in known else name.split(".")[0] for name in names}
        asked = replace(asked, columns=tuple(name for name in known if name in heads) or (SEGMENT,))
    exact = request.positions or request.readers.limit is not None
    partitions = Partitions.of(dataset, asked, 1 if exact else min(parallelism_of(spark), 100))
    schema = partitions.spark_schema
    widened = tuple(undeclared(schema, declared)) if widens else ()
    fallible = any(column_problem(c, resolve(schema, file_name(c))) is not None for c in request.columns)
    frame, here = scan(
        spark,
        len(partitions.groups),
        [*sql_fields(schema), (_METADATA, "STRUCT<row_index: BIGINT>")],
        lambda number: _numbered(partitions, number, request.readers.limit),
        request.readers,
    )
    columns = projection(request, PartFile(schema, 0, 0, 0), widened, fallible=fallible)
    return Scan(
        frame.selectExpr(*columns),
        fallible,
        in_python=True,
        here=here,
        widened=widened,
        row_offsets=(0,) if request.positions else (),
        splits=len(partitions.groups),
    )


def query_of(options: DatasetSource) -> Query:
    """What the keys of a source ask."""
    there = options.index is not None  # without one these have no effect, and that was said
    return Query(
        options.index,
        options.entities,
        options.segments,
        (options.range[0], options.range[1]) if options.range is not None and there else None,
        options.values if there else None,
        options.every if there else None,
        options.fill_latest_at,
        None,
        options.origin_time,
        options.row_ids,
        options.all_values,
    )


def pruned(request: ReadRequest) -> ReadRequest:
    """Columns that nobody reads, and in which nothing can be wrong, are not even fetched. The segment and the queried
    index are in every row."""
    there = always_there(request.options, request.columns)
    columns = tuple(c.model_copy(update={"nullable": True}) if c.name in there else c for c in request.columns)
    read = {column.name for column in request.selected}
    if not request.record:
        columns = tuple(c for c in columns if c.name in read or checked_in_parquet(c))
    return replace(request, columns=columns)


def within(dataset: Dataset, asked: Query, request: ReadRequest) -> Query:
    """The query for only the rows that are within the bounds of a request."""
    assert asked.index is not None or not request.readers.bounds
    names = {column.name: file_name(column) for column in request.columns}
    index = str(asked.index)
    kind = dataset.index_type(index) if asked.index is not None else NUMBER
    segments = set(dataset.catalogue.segments if asked.segments is None else asked.segments)
    low, high = FIRST, LAST
    for bound in request.readers.bounds:
        if names[bound.column] == SEGMENT:
            segments &= {bound.value}
        else:
            value = number_of(bound.value, kind, index)
            if bound.op in (">", ">=", "=="):
                low = max(low, value + (bound.op == ">"))
            if bound.op in ("<", "<=", "=="):
                high = min(high, value - (bound.op == "<"))
    if not request.readers.bounds:
        return asked
    first, last = (None, None) if asked.range is None else asked.range
    low = low if first is None else max(low, number_of(first, kind, index))
    high = high if last is None else min(high, number_of(last, kind, index))
    if low > high:
        return replace(asked, segments=())
    return replace(asked, segments=tuple(sorted(segments)), range=(low, high))


def _numbered(partitions: Partitions, number: int, limit: int | None) -> Iterator[pa.RecordBatch]:
    row = number * _PER_PARTITION
    left = limit
    for batch in partitions.read(number):
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        count = batch.num_rows
        numbers = pa.StructArray.from_arrays([pa.array(np.arange(row, row + count))], fields=list(_NUMBERS))
        columns: list[Any] = [*batch.columns, numbers]
        yield pa.record_batch(columns, schema=batch.schema.append(pa.field(_METADATA, _NUMBERS)))
        row += count
        if left == 0:
            return
