"""Fixed-width files as a DataFrame: lines, or records without line ends, whose columns stand at fixed bytes."""

from __future__ import annotations

from pyspark.sql import SparkSession

from clinker_spark.config.model.schema import Column
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import Kind
from clinker_spark.spark.scan.csv.splits import SMALLEST, TARGET
from clinker_spark.spark.scan.fixed.rows import FixedReader, is_single_byte
from clinker_spark.spark.scan.record_plan import (
    PIECE,
    RecordPlan,
    RecordSplit,
    line_splits,
    local_files,
    start_of,
    stride_ranges,
    with_splits,
)
from clinker_spark.spark.scan.record_source import parallelism_of, scan_of
from clinker_spark.spark.scan.request import ReadRequest, Scan
from clinker_spark.spark.scan.text.streams import is_utf8


def read_fixed_width(spark: SparkSession, request: ReadRequest) -> Scan:
    """The records of fixed-width files. Raises InputError for files or schemas that cannot be used."""
    return scan_of(spark, fixed_plan(request, parallelism=parallelism_of(spark)), request)


def fixed_plan(
    request: ReadRequest, *, parallelism: int, target: int = TARGET, smallest: int = SMALLEST, piece: int = PIECE
) -> RecordPlan:
    """Cut the files at records. Bytes between the columns are filler, so there is never an undeclared field."""
    held = [column for column in request.columns if not column.multiple]  # those are JSON arrays
    problems = [_unusable_type(column) for column in held if column.data_type.kind in (Kind.ARRAY, Kind.MAP)]
    encoding = request.options.encoding
    if not is_utf8(encoding) and not is_single_byte(encoding):
        message = f"source '{request.source}' cannot read fixed-width files in {encoding}"
        help_text = "places are counted in bytes: use utf-8 or an encoding with one byte per character"
        problems.append(Diagnostic("E007", message, help=help_text))
    if problems:
        raise InputError(problems)
    files = local_files(request, "fixed-width")
    reader = FixedReader.of(request.columns, request.options, request.conventions, piece)
    plan = RecordPlan.of(request, files, reader)
    sizes = {"parallelism": parallelism, "target": target, "smallest": smallest}
    splits: list[RecordSplit] = []
    for i, file in enumerate(files):
        if reader.separator or not file.seekable:
            splits += line_splits(i, file, reader.separator, bom=is_utf8(encoding), **sizes)
            continue
        start = start_of(file, is_utf8(encoding))
        splits += [RecordSplit(i, *found) for found in stride_ranges(start, file.size, reader.width, **sizes)]
    return with_splits(plan, splits, request.readers.limit, lambda split: reader.count(files[split.file], split))


def _unusable_type(column: Column) -> Diagnostic:
    message = f"column '{column.name}' is declared as {column.type}, which a fixed-width file cannot hold"
    return Diagnostic("E226", message, help="declare it as string, and take it apart in a transform")
