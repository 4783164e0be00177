"""Sources: a scan with the hidden columns that somebody downstream needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from clinker_spark.cxl.lower.plan import ARRIVAL_COLUMN, ERROR_COLUMN, quote
from clinker_spark.plan.needs import source_columns
from clinker_spark.plan.nodes import SourcePlan
from clinker_spark.plan.ready_cells import source_runs, typed_columns
from clinker_spark.spark.operators.stream import (
    DOCUMENT_COLUMN,
    LETTER_COLUMN,
    LETTER_TYPE,
    ORIGIN_COLUMN,
    ORIGIN_TYPE,
    Stream,
)
from clinker_spark.spark.sources.formats import read
from clinker_spark.spark.sources.request import (
    FILE_COLUMN,
    RECORD_COLUMN,
    ROW_COLUMN,
    WIDENED_COLUMN,
    ReadRequest,
    Scan,
    SourceFile,
)
from clinker_spark.spark.sources.scans import progress_path

if TYPE_CHECKING:
    from clinker_spark.spark.operators.build import Builder

PER_FILE = ("file", "path", "row")
"""Members of $source that differ from record to record."""


def build_source(builder: Builder, node: SourcePlan) -> Stream:
    """The records of the source's files, in file order."""
    files = builder.files[node.name]
    need = builder.plan.needs[node.name]
    members = need.members & set(PER_FILE)
    positions = builder.letters or need.document or bool(members)
    progress = None if builder.progress is None else progress_path(Path(builder.progress), node.name)
    cells = source_runs(builder.plan, node) if builder.writes else ()
    request = ReadRequest(
        source=node.name,
        files=files,
        columns=node.columns,
        options=node.config.options,
        compression=node.config.compression,
        on_unmapped=node.config.on_unmapped.mode,
        date_formats=tuple(builder.plan.file.settings.date_formats),
        wanted=typed_columns(builder.plan, node) if cells else source_columns(builder.plan, node),
        arrival=need.arrival,
        positions=positions,
        record=builder.letters,
        limit=builder.limit,
        progress=progress,
        cells=cells,
        only_flags=builder.writes,
        aside=progress if builder.sets_aside else None,
    )
    scan = read(builder.spark, node.config.type, request)
    builder.scans[node.name] = scan
    hidden = _hidden(builder, node, files, members, scan)
    have = scan.frame.columns
    kept = [name for name in have if name not in (FILE_COLUMN, ROW_COLUMN, RECORD_COLUMN, ARRIVAL_COLUMN, ERROR_COLUMN)]
    columns = [F.col(quote(name)) for name in kept]
    columns += [column.alias(name) for name, column in hidden.items()]
    if ERROR_COLUMN in have:
        columns.append(F.col(quote(ERROR_COLUMN)))
    return builder.mark(node, Stream(scan.frame.select(*columns), in_place=True))


def count_source(builder: Builder, node: SourcePlan) -> int:
    """How many records a source has, good or bad."""
    request = ReadRequest(
        source=node.name,
        files=builder.files[node.name],
        columns=node.columns,
        options=node.config.options,
        compression=node.config.compression,
        on_unmapped="drop",
        date_formats=tuple(builder.plan.file.settings.date_formats),
        wanted=frozenset(),
        limit=builder.limit,
    )
    return read(builder.spark, node.config.type, request).frame.count()


def _hidden(
    builder: Builder, node: SourcePlan, files: tuple[SourceFile, ...], members: set[str], scan: Scan
) -> dict[str, Column]:
    need = builder.plan.needs[node.name]
    file, row = F.col(quote(FILE_COLUMN)), F.col(quote(ROW_COLUMN))
    found: dict[str, Column] = {}
    if need.arrival:
        found[ARRIVAL_COLUMN] = F.col(quote(ARRIVAL_COLUMN))
    if need.document:
        found[DOCUMENT_COLUMN] = (F.lit(node.index).cast("long") * F.lit(2**32) + file).cast("long")
    if "file" in members:
        found["$source.file"] = F.element_at(_texts(f.name for f in files), file + 1)
    if "path" in members:
        found["$source.path"] = F.element_at(_texts(f.path for f in files), file + 1)
    if "row" in members:
        found["$source.row"] = row if len(files) <= 1 else _dense(files, scan)
    if "count" in need.members:
        found["$source.count"] = F.lit(builder.source_count(node)).cast("long")
    if "name" in need.members:
        found["$source.name"] = F.lit(node.source_name)
    if builder.letters:
        origin = F.struct(F.lit(node.index).alias("source"), file.cast("int").alias("file"), row.alias("row"))
        found[ORIGIN_COLUMN] = origin.cast(ORIGIN_TYPE)
        pairs: list[Column] = []
        for column in node.columns:
            pairs += [F.lit(column.name), F.col(f"{quote(RECORD_COLUMN)}.{quote(column.name)}")]
        found[LETTER_COLUMN] = F.create_map(*pairs).cast(LETTER_TYPE)
    return found


def _texts(values: Any) -> Column:
    return F.array(*[F.lit(value) for value in values])


def _dense(files: tuple[SourceFile, ...], scan: Scan) -> Column:
    """1, 2, 3 over all files of a source."""
    row = F.col(quote(ROW_COLUMN))
    if len(files) <= 1:
        return row
    offsets = F.array(*[F.lit(offset).cast("long") for offset in scan.row_offsets])
    return row + F.element_at(offsets, F.col(quote(FILE_COLUMN)) + 1)


__all__ = ["PER_FILE", "WIDENED_COLUMN", "build_source"]
