"""Text files with several kinds of records as a DataFrame: one task per range of lines."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.errors import InputError
from clinker_spark.spark.columns.python_calls import arrow_type
from clinker_spark.spark.scan.csv.header import dialect_of
from clinker_spark.spark.scan.csv.splits import SMALLEST, TARGET
from clinker_spark.spark.scan.fixed.rows import SEPARATORS
from clinker_spark.spark.scan.kinds.lines import KindReader, structure_problem
from clinker_spark.spark.scan.record_plan import (
    PIECE,
    RecordFile,
    RecordPlan,
    RecordSplit,
    line_splits,
    local_files,
    with_splits,
)
from clinker_spark.spark.scan.record_source import parallelism_of, scan_of
from clinker_spark.spark.scan.request import ReadRequest, Scan

_KNOWN: OrderedDict[Any, str | None] = OrderedDict()
"""What trailers said in files that this process has read: each pass of a run asks for it."""
_MOST_KNOWN = 10_000


def read_kinds(spark: SparkSession, request: ReadRequest) -> Scan:
    """The records of files with several kinds of them. Raises InputError for files that cannot be used."""
    return scan_of(spark, kinds_plan(request, parallelism=parallelism_of(spark)), request)


def kind_reader(request: ReadRequest, piece: int = PIECE) -> KindReader:
    """The reader for what is asked for."""
    planned, options = request.conventions.kinds, request.options
    assert planned is not None
    fixed = hasattr(options, "line_separator")
    return KindReader.of(
        planned,
        options,
        request.conventions,
        separator=SEPARATORS[options.line_separator] if fixed else b"\n",
        dialect=None if fixed else dialect_of(options),
        has_header=not fixed and options.has_header,
        arrow={column.name: arrow_type(column.data_type) for column in request.columns},
        piece=piece,
    )


def kinds_plan(
    request: ReadRequest, *, parallelism: int, target: int = TARGET, smallest: int = SMALLEST, piece: int = PIECE
) -> RecordPlan:
    """Cut the files at lines, after a look at what their trailers say."""
    files = local_files(request, "text")
    reader = kind_reader(request, piece)
    reader = replace(reader, wrong=check_structure(reader, files, stop=not request.conventions.whole_files))
    plan = RecordPlan.of(request, files, reader)
    sizes = {"parallelism": parallelism, "target": target, "smallest": smallest}
    splits: list[RecordSplit] = []
    for i, file in enumerate(files):
        # A file without a line is wrong, too, if it should have a trailer.
        splits += line_splits(i, file, reader.separator, bom=True, **sizes) or [RecordSplit(i)]
    return with_splits(plan, splits, request.readers.limit, lambda split: reader.count(files[split.file], split))


def check_structure(reader: KindReader, files: Sequence[RecordFile], *, stop: bool = True) -> tuple[str | None, ...]:
    """What is wrong with each file as a whole. Raises InputError, if it is to `stop`, with all that is wrong."""
    if not reader.planned.spec.structure or not reader.planned.whole:
        return ()
    found = tuple(_structure(reader, file) for file in files)
    problems = [
        Diagnostic("E346", f"'{file.name}': {problem}", help="get the file again, or correct 'structure'")
        for file, problem in zip(files, found, strict=True)
        if problem is not None
    ]
    if stop and problems:
        raise InputError(problems)
    return found


def _structure(reader: KindReader, file: RecordFile) -> str | None:
    status = os.stat(file.path)
    known = (file.path, status.st_size, status.st_mtime_ns, status.st_ino, repr(reader.planned), reader.encoding)
    if known not in _KNOWN:
        _KNOWN[known] = structure_problem(reader, file)
        while len(_KNOWN) > _MOST_KNOWN:
            _KNOWN.popitem(last=False)
    return _KNOWN[known]
