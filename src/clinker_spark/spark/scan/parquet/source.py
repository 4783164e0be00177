"""Parquet files as a DataFrame, read by Spark itself.

Every file is read on its own and the files are put one after the other: Spark sorts the pieces of all files by size
before it makes tasks of them, which loses the order of the source. The pieces of a single file are equally large but
for the last one, and the sort is stable, so that they stay in order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import InputError
from clinker_spark.spark.scan.csv.header import file_name, unreadable
from clinker_spark.spark.scan.files import hadoop_path, parquet_parts
from clinker_spark.spark.scan.parquet.columns import PartFile, column_problem, projection, resolve
from clinker_spark.spark.scan.record_plan import READ_ERRORS, reason_of, reject_undeclared
from clinker_spark.spark.scan.request import ReadRequest, Scan, SourceFile


@dataclass(frozen=True)
class Part:
    """A file that Spark reads. A source's file is one of them, or a folder of them."""

    file: int
    path: str
    schema: st.StructType
    rows: int | None
    """How many records it has, if that had to be known."""


def read_parquet(spark: SparkSession, request: ReadRequest) -> Scan:
    """The records of Parquet files. Raises InputError for files that cannot be read or do not fit the schema."""
    parts = parts_of(spark, request)
    check_parts(request, parts)
    widened = _widened(request, parts)
    fallible = any(
        column_problem(column, resolve(part.schema, file_name(column))) is not None
        for part in parts
        for column in request.columns
    )
    frames = list(_frames(spark, request, parts, widened, fallible=fallible))
    if not frames:
        what = PartFile(st.StructType(), 0, 0, 0)
        empty = spark.createDataFrame([], "_metadata STRUCT<row_index: BIGINT>")
        frames = [empty.selectExpr(*projection(request, what, widened, fallible=fallible))]
    rows = [part.rows for part in parts]
    return Scan(
        _one_after_the_other(frames),
        fallible,
        in_python=False,
        widened=widened,
        row_offsets=_offsets(request, parts) if request.positions else (),
        rows=sum(n or 0 for n in rows) if request.readers.limit is None and None not in rows else None,
    )


def _frames(
    spark: SparkSession, request: ReadRequest, parts: list[Part], widened: tuple[str, ...], *, fallible: bool
) -> Iterator[DataFrame]:
    """Each file by itself; as many as are wanted."""
    left = request.readers.limit
    before: dict[int, int] = {}
    for place, part in enumerate(parts):
        if left is not None and left <= 0:
            return
        frame = spark.read.schema(part.schema).parquet(part.path)
        if left is not None:
            # Not `limit`: it gathers records of all tasks in the order in which they happen to end.
            frame = frame.where(f"_metadata.row_index < {left}L")
            left -= part.rows or 0
        what = PartFile(part.schema, part.file, place, before.get(part.file, 0))
        yield frame.selectExpr(*projection(request, what, widened, fallible=fallible))
        before[part.file] = before.get(part.file, 0) + (part.rows or 0)


def _widened(request: ReadRequest, parts: list[Part]) -> tuple[str, ...]:
    """The columns that no schema declares and that are carried along."""
    if request.conventions.on_unmapped != "auto_widen":
        return ()
    declared = {file_name(column) for column in request.columns}
    return tuple(dict.fromkeys(name for part in parts for name in undeclared(part.schema, declared)))


def _offsets(request: ReadRequest, parts: list[Part]) -> tuple[int, ...]:
    """How many records lie before each file."""
    totals = [sum(part.rows or 0 for part in parts if part.file == i) for i in range(len(request.files))]
    return tuple(sum(totals[:i]) for i in range(len(totals)))


def _one_after_the_other(frames: list[DataFrame]) -> DataFrame:
    """The union of all, halved again and again: a chain of unions is analysed anew with every link."""
    while len(frames) > 1:
        pairs = [frames[i : i + 2] for i in range(0, len(frames), 2)]
        frames = [pair[0].union(pair[1]) if len(pair) > 1 else pair[0] for pair in pairs]
    return frames[0]


# ---------------------------------------------------------------- files


def parts_of(spark: SparkSession, request: ReadRequest) -> list[Part]:
    """Every file with its schema and, where positions or a limit need it, the number of its records."""
    counted = request.positions or request.readers.limit is not None
    known = request.readers.known_schemas if request.readers.known_schemas is not None else {}
    problems: list[Diagnostic] = []
    found: list[Part] = []
    for i, file in enumerate(request.files):
        try:
            for path in _paths(spark, file):
                found.append(_part(spark, i, path, known, counted=counted))
        except READ_ERRORS as error:
            problems.append(unreadable(file.name, reason_of(error)))
        except PySparkException as error:
            problems.append(unreadable(file.name, (error.getMessage() or str(error)).splitlines()[0]))
    if problems:
        raise InputError(problems)
    return found


def _paths(spark: SparkSession, file: SourceFile) -> list[str]:
    """The files in order of their names, if it is a folder of them."""
    if file.staged:
        return [stamp.path for stamp in file.stamps]
    if "://" in file.path:
        return sorted(spark.read.parquet(file.path).inputFiles())
    if not os.path.isdir(file.path):
        return [file.path]
    found = parquet_parts(file.path)
    if not found:
        raise OSError("the folder has no files that end in .parquet")
    return found


def _part(spark: SparkSession, file: int, path: str, known: dict[str, st.StructType], *, counted: bool) -> Part:
    if "://" in path:
        frame = spark.read.parquet(path)
        return Part(file, path, frame.schema, frame.count() if counted else None)
    with pq.ParquetFile(path) as opened:
        # Spark starts a job to learn a schema. Files with the same one, as written, need one job together.
        # The first line of the text says where it lies in memory.
        written = str(opened.schema).partition("\n")[2] + str(opened.schema_arrow.metadata)
        rows = opened.metadata.num_rows
    if written not in known:
        known[written] = spark.read.parquet(hadoop_path(path)).schema
    return Part(file, hadoop_path(path), known[written], rows)


# ---------------------------------------------------------------- columns


def undeclared(schema: st.StructType, declared: set[str]) -> list[str]:
    """Columns of which the schema names neither the whole nor a part."""
    heads = {name.split(".")[0] for name in declared}
    return [field.name for field in schema.fields if field.name not in declared and field.name not in heads]


def check_parts(request: ReadRequest, parts: list[Part]) -> None:
    """Does every file have the declared columns, in types that can be read as theirs?"""
    problems: list[Diagnostic] = []
    told: set[tuple[int, str]] = set()
    declared = {file_name(column) for column in request.columns}

    def tell(part: Part, about: str, found: Any) -> None:
        if (part.file, about) not in told:  # parts of one folder are alike
            told.add((part.file, about))
            problems.extend(found)

    for part in parts:
        name = request.files[part.file].name
        for column in request.columns:
            source = resolve(part.schema, file_name(column))
            if source is None:
                if not column.data_type.nullable:
                    known = [field.name for field in part.schema.fields if field.name not in declared]
                    help_text = did_you_mean(file_name(column), known) or "the file has " + ", ".join(
                        field.name for field in part.schema.fields
                    )
                    message = f"'{name}' has no column '{file_name(column)}'"
                    tell(part, column.name, [Diagnostic("E228", message, help=help_text)])
            elif source.read(column) is None:
                message = f"column '{column.name}' is {column.type} in the schema and {source.shown} in '{name}'"
                help_text = "declare the type that the file has, and convert the values in a transform"
                tell(part, column.name, [Diagnostic("E247", message, help=help_text)])
        if request.conventions.on_unmapped == "reject":
            for extra in undeclared(part.schema, declared):
                tell(part, f"+{extra}", reject_undeclared(request, name, [extra]))
    if problems:
        raise InputError(problems)
