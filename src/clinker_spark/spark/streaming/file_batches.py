"""The records of one file of a stream, as the readers of `clinker run` give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.spark.scan.csv.header import file_name
from clinker_spark.spark.scan.csv.planning import make_plan
from clinker_spark.spark.scan.csv.records import engine_columns as csv_columns
from clinker_spark.spark.scan.csv.records import read_split
from clinker_spark.spark.scan.files import SourceFile
from clinker_spark.spark.scan.fixed.source import fixed_plan
from clinker_spark.spark.scan.json.source import json_plan
from clinker_spark.spark.scan.record_batches import engine_columns, read_batches
from clinker_spark.spark.scan.record_plan import RecordPlan, malformed
from clinker_spark.spark.scan.request import ReadRequest
from clinker_spark.spark.scan.xml.source import xml_plan

Fields = list[tuple[str, str]]


@dataclass(frozen=True)
class Opened:
    """The parts of some files, and the columns of their records."""

    fields: Fields
    parts: int
    read: Callable[[int], Iterator[pa.RecordBatch]]


def open_files(kind: str, request: ReadRequest, parallelism: int) -> Opened:
    """The files of a request; without any of them, the columns that they would have."""
    if kind == "csv":
        plan = make_plan(request, parallelism=parallelism)
        wanted = [(column.name, physical(column.data_type)) for column in request.selected]
        return Opened([*wanted, *csv_columns(plan)], len(plan.splits), lambda i: iter(read_split(plan, plan.splits[i])))
    if kind == "parquet":
        return _parquet(request)
    plans: dict[str, Callable[[], RecordPlan]] = {
        "json": lambda: json_plan(request, parallelism=parallelism),
        "xml": lambda: xml_plan(request),
        "fixed_width": lambda: fixed_plan(request, parallelism=parallelism),
    }
    found = plans[kind]()
    fields = [*found.fields, *engine_columns(found)]
    return Opened(fields, len(found.splits), lambda i: iter(read_batches(found, found.splits[i])))


def with_file(request: ReadRequest, path: str, name: str, size: int) -> ReadRequest:
    return replace(request, files=(SourceFile(path, name, size),))


def _parquet(request: ReadRequest) -> Opened:
    """Row groups of Parquet files. A batch job lets Spark read them, which has no such reader for files by name."""
    fields = [(column.name, physical(column.data_type)) for column in request.selected]
    groups = []
    for file in request.files:
        with pq.ParquetFile(file.path) as opened:
            groups += [(file, i) for i in range(opened.num_row_groups)]

    def read(i: int) -> Iterator[pa.RecordBatch]:
        file, group = groups[i]
        names = [file_name(column) for column in request.selected]
        with pq.ParquetFile(file.path) as opened:
            missing = [name for name in names if name not in opened.schema_arrow.names]
            if missing:
                raise malformed(file.name, f"has no column '{missing[0]}'")
            for batch in opened.iter_batches(row_groups=[group], columns=names, batch_size=16384):
                yield batch.select(names)

    return Opened(fields, len(groups), read)
