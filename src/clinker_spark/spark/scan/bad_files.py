"""Files that cannot be read as a whole: damaged, unreadable, of another format or encoding, or without the columns that
are declared. With `on_bad_file: skip` they are looked for before any record is read, so that none of theirs is written.

Looking costs what it must: the header of a CSV file, all bytes of a compressed one, all pages of a Parquet file, and
all of a JSON or XML document, which is one value and wrong as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.csv.header import dialect_of, file_name, read_header, unreadable
from clinker_spark.spark.scan.json.documents import records, shape_of
from clinker_spark.spark.scan.kinds.source import check_structure, kind_reader
from clinker_spark.spark.scan.parquet.source import check_parts, parts_of
from clinker_spark.spark.scan.record_plan import READ_ERRORS, RecordFile, local_files, reason_of
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from clinker_spark.spark.scan.text.streams import compression_of, open_binary
from clinker_spark.spark.scan.xml.records import xml_records
from clinker_spark.spark.scan.xml.source import shape_of_options

_OF_THE_SOURCE = ("E226", "E007", "E248")
"""What is wrong with the source, whatever the file."""
_BLOCK = 1 << 20


def bad_files(spark: SparkSession, kind: str, request: ReadRequest) -> dict[int, Diagnostic]:
    """By place among the files: what is wrong with those that cannot be read. Raises `InputError` for what is wrong
    with the source itself."""
    check = _CHECKS.get(kind)
    if check is None:
        return {}

    def problem(file: SourceFile) -> Diagnostic | None:
        try:
            check(spark, request, file)
        except InputError as error:
            [first, *_] = error.diagnostics
            if first.code in _OF_THE_SOURCE:
                raise
            return first
        except READ_ERRORS as error:
            return unreadable(file.name, reason_of(error))
        return None

    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        found = list(pool.map(problem, request.files))
    return {i: what for i, what in enumerate(found) if what is not None}


def _csv(spark: SparkSession, request: ReadRequest, file: SourceFile) -> None:
    read_header(file, request, dialect_of(request.options))
    _to_its_end(request, file)


def _lines(spark: SparkSession, request: ReadRequest, file: SourceFile) -> None:
    _opened(request, file, "fixed-width")
    _to_its_end(request, file)


def _kinds(spark: SparkSession, request: ReadRequest, file: SourceFile) -> None:
    alone = replace(request, files=(file,))
    check_structure(kind_reader(alone), local_files(alone, "text"))
    _to_its_end(request, file)


def _json(spark: SparkSession, request: ReadRequest, file: SourceFile) -> None:
    opened = _opened(request, file, "JSON")
    path = tuple(request.options.record_path.split(".")) if request.options.record_path else ()
    shape = "object" if path else request.options.format or shape_of(opened.open)
    if shape == "ndjson":
        _to_its_end(request, file)
        return
    for _ in records(opened, shape, path, exact=False):
        pass


def _xml(spark: SparkSession, request: ReadRequest, file: SourceFile) -> None:
    for _ in xml_records(_opened(request, file, "XML"), shape_of_options(request.options)):
        pass


def _parquet(spark: SparkSession, request: ReadRequest, file: SourceFile) -> None:
    alone = replace(request, files=(file,))
    check_parts(alone, parts_of(spark, alone))
    carried = request.conventions.on_unmapped == "auto_widen"
    for stamp in file.stamps:
        with pq.ParquetFile(stamp.path, page_checksum_verification=True) as opened:
            names = {file_name(column) for column in request.columns}
            wanted = [name for name in opened.schema_arrow.names if carried or name in names]
            for _ in opened.iter_batches(columns=wanted):  # a good footer says nothing about what it leads to
                pass


def _opened(request: ReadRequest, file: SourceFile, kind: str) -> RecordFile:
    [opened] = local_files(replace(request, files=(file,)), kind)
    return opened


def _to_its_end(request: ReadRequest, file: SourceFile) -> None:
    """Only the last byte shows that a compressed file is whole."""
    compression = compression_of(file.origin, request.conventions.compression)
    if compression != "none":
        with open_binary(file.path, compression, file.name) as opened:
            while opened.read(_BLOCK):
                pass


_CHECKS: dict[str, Callable[[SparkSession, ReadRequest, SourceFile], None]] = {
    "csv": _csv,
    "json": _json,
    "xml": _xml,
    "fixed_width": _lines,
    "kinds": _kinds,
    "parquet": _parquet,
}
