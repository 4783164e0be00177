"""Sources: a scan with the hidden columns that somebody downstream needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.cxl.builtins.physical import physical
from clinker_spark.cxl.hidden import ARRIVAL_COLUMN, ERROR_COLUMN, variable_column
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import (
    CK_PREFIX,
    DOCUMENT_COLUMN,
    EVENT_COLUMN,
    FROM_COLUMN,
    GONE_FILE_COLUMN,
    GONE_ROW_COLUMN,
    LETTER_COLUMN,
    LETTER_TYPE,
    LINE_COLUMN,
    ORIGIN_COLUMN,
    ORIGIN_TYPE,
    RECORD_COLUMN,
)
from clinker_spark.plan.ledger import NONE, WITHHELD_FROM, Flow, count
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.spark.operators.build import Builder
from clinker_spark.spark.operators.source_order import repaired
from clinker_spark.spark.operators.stream import DOCUMENT_BITS, Stream
from clinker_spark.spark.operators.time_windows import event_time
from clinker_spark.spark.rejects.dirty_groups import key_text
from clinker_spark.spark.scan.formats import read
from clinker_spark.spark.scan.group_sizes import ONE_IN, largest_group
from clinker_spark.spark.scan.request import ReadRequest, Scan, SourceFile
from clinker_spark.spark.scan.scans import meter_path, progress_path

LEAST_SAMPLED = 20_000
"""Limits of groups below this are too small to be watched in a sample: they are always counted."""
RECORD_COUNTS = "record counts"
"""What the passes of a run know of the parts of files (`ReadRequest.known_counts`)."""
_ENGINE = (FILE_COLUMN, ROW_COLUMN, RECORD_COLUMN, LINE_COLUMN, ARRIVAL_COLUMN, ERROR_COLUMN)
PER_FILE = ("file", "path", "row")
"""Members of $source that differ from record to record."""


def build_source(builder: Builder, node: SourcePlan) -> Stream:
    """The records of the source's files, in file order."""
    files = builder.files[node.name]
    need = builder.plan.facts.required[node.name]
    members = need.members & set(PER_FILE)
    removed = builder.removed.get(node.name)
    unsorted = node.name in builder.unsorted
    positions = builder.letters or need.document or bool(members) or removed is not None or unsorted
    progress = None if builder.progress is None else progress_path(Path(builder.progress), node.name)
    passed = builder.plan.facts.pass_through.get(node.name)
    cells = passed.runs if passed is not None and builder.writes else ()
    wanted = passed.columns if passed is not None and cells else need.columns & set(node.schema)
    unread: dict[str, str] = {}
    if builder.letters and not builder.texts and passed is not None:
        # Only failures are looked for: what goes to an output as it is cannot fail, and is not even sent.
        keys = set(node.config.correlation_key or ())
        unread = {name: physical(node.schema[name]) for name in wanted - passed.columns - keys}
        wanted = wanted - unread.keys()
    watched = watches_groups(builder, node)
    if watched and builder.sets_aside and node.config.type == "csv":
        watched, by_readers = False, tuple(node.config.correlation_key)
    else:
        by_readers = ()
    if builder.stamps or watched:
        wanted |= set(node.config.correlation_key or ())
    if unsorted:
        wanted |= {item.field for item in node.config.sort_order}
    request = ReadRequest(
        source=node.name,
        files=files,
        columns=node.columns,
        options=node.config.options,
        compression=node.config.compression,
        on_unmapped=node.config.on_unmapped.mode,
        date_formats=tuple(builder.plan.file.settings.date_formats),
        wanted=wanted,
        arrival=need.arrival or watched,
        positions=positions,
        record=builder.letters and builder.texts,
        limit=builder.limit,
        progress=progress,
        meter=None if builder.meter is None else meter_path(Path(builder.meter), node.name),
        cells=cells,
        only_flags=builder.writes or (builder.letters and not builder.texts),
        aside=progress if builder.sets_aside else None,
        watched=by_readers,
        known_counts=builder.measured.setdefault(RECORD_COUNTS, {}) if builder.limit is None else None,
        chosen=builder.chosen.get(node.name),
        keys=tuple(node.config.correlation_key or ()) if builder.stamps else (),
        here=builder.small and not builder.repeats,
    )
    scan = read(builder.spark, node.config.type, request)
    if builder.small:  # in their order: the parts of files on this machine have no places that would be preferred
        scan = replace(scan, frame=scan.frame.coalesce(1))
        if builder.repeats:
            scan = replace(scan, frame=builder.shared(scan.frame))
    if removed is not None:
        scan = replace(scan, frame=_without(scan.frame, removed, few=builder.few))
    if request.chosen is not None and request.chosen.keep:
        # Failures and what is held back are two readers of few records.
        scan = replace(scan, frame=scan.frame.persist(StorageLevel.MEMORY_AND_DISK))
        builder.stored.append(scan.frame)
    builder.scans[node.name] = scan
    assert scan.in_python == (node.name in builder.plan.facts.python), node.name
    if builder.writes and not builder.keeps_progress and scan.rows is None:
        scan = replace(scan, frame=builder.count(f"{node.name}.source", scan.frame, rows=F.count(F.lit(1))))
    if watched:
        builder.watching.add(node.name)
        scan = replace(scan, frame=_watch_groups(builder, node, scan.frame))
    if unsorted and need.arrival:
        scan = replace(scan, frame=repaired(scan.frame, node, builder.unsorted[node.name]))
    hidden = _hidden(builder, node, files, members, scan)
    have = scan.frame.columns
    kept = [name for name in have if name not in _ENGINE]
    columns = [F.col(quote(name)) for name in kept]
    columns += [F.lit(None).cast(kind).alias(name) for name, kind in unread.items()]
    columns += [column.alias(name) for name, column in hidden.items()]
    if ERROR_COLUMN in have:
        columns.append(F.col(quote(ERROR_COLUMN)))
    stream = Stream(
        scan.frame.select(*columns),
        in_place=not unsorted and (removed is None or builder.few),
        flow=_flow(builder, node, removed=removed is not None, chosen=request.chosen is not None),
        pushes=not scan.in_python and not scan.fallible,
    )
    return builder.mark(node, stream)


def _flow(builder: Builder, node: SourcePlan, *, removed: bool, chosen: bool) -> Flow:
    """How many records there are: what readers give, without those that were taken back. Readers may leave out
    themselves what is `chosen` so, and what they keep aside."""
    ledger, name = builder.ledger, node.name
    read, given, left_out = (count(f"{name}: {what}") for what in ("read", "given", "left out"))
    rest = left_out if chosen else NONE
    if builder.scans[name].split_files is not None:
        aside = count(f"{name}: kept aside")
        rest = rest + aside
        ledger.entry(name).failed[f"{name}: kept aside"] = aside
    if removed or chosen:
        ledger.entry(name).dropped[WITHHELD_FROM, 0] = left_out
    ledger.law(name, "has {left} records, and {right} were given or kept aside by its readers", read, given + rest)
    flow = given - left_out if removed else given
    if f"{name}.source" in builder.counts:
        ledger.law(name, "gives {left} records, and {right} were counted", flow, count(f"{name}.source: rows"))
    return flow


def watches_groups(builder: Builder, node: SourcePlan) -> bool:
    """Can a group be so large that its size must be watched? Only the first pass does, and only for large files."""
    most = builder.plan.file.error_handling.max_group_buffer
    possible = sum(file.size for file in builder.files[node.name]) // 2  # a record has a byte and a line end at least
    first = (
        not builder.letters
        and builder.dirty is None
        and builder.left_out is None
        and not builder.stamp
        and builder.limit is None
    )
    first = first and not builder.chosen and node.name not in builder.watched
    return bool(node.config.correlation_key) and first and most >= LEAST_SAMPLED and possible > most


def _watch_groups(builder: Builder, node: SourcePlan, frame: DataFrame) -> DataFrame:
    """Count the most frequent key among one in `ONE_IN` records: a group above the limit cannot hide from that."""
    keys = ", ".join(quote(name) for name in node.config.correlation_key)
    sampled = f"xxhash64({quote(ARRIVAL_COLUMN)}) & {ONE_IN - 1} = 0"
    largest = f"approx_top_k(CASE WHEN {sampled} THEN xxhash64({keys}) END, 2, 4096)"  # null may be one of the two
    return builder.count(f"{node.name}.groups", frame, largest=F.expr(largest))


def watched_size(builder: Builder, node: SourcePlan) -> int | None:
    """About how many records the largest group of a source has, as the first pass saw it; None if nobody looked."""
    scan = builder.scans.get(node.name)
    if scan is not None and scan.watches:
        assert builder.progress is not None and scan.split_files is not None
        return largest_group(progress_path(Path(builder.progress), node.name), len(scan.split_files))
    found: Any = builder.counted(f"{node.name}.groups").get("largest")
    if found is None:
        return None
    return max((row["count"] for row in found if row["item"] is not None), default=0) * ONE_IN


def _without(frame: DataFrame, removed: DataFrame | Sequence[tuple[int, int]], *, few: bool) -> DataFrame:
    """The records that were not retracted."""
    if not isinstance(removed, DataFrame):
        rows: dict[int, list[int]] = {}
        for file, row in removed:
            rows.setdefault(file, []).append(row)
        places = [(F.col(quote(FILE_COLUMN)) == file) & F.col(quote(ROW_COLUMN)).isin(r) for file, r in rows.items()]
        return frame.where(~reduce(Column.__or__, places))
    gone = removed.select(F.col("file").alias(GONE_FILE_COLUMN), F.col("row").alias(GONE_ROW_COLUMN))
    same = (F.col(quote(FILE_COLUMN)) == F.col(quote(GONE_FILE_COLUMN))) & (
        F.col(quote(ROW_COLUMN)) == F.col(quote(GONE_ROW_COLUMN))
    )
    return frame.join(gone.hint("broadcast") if few else gone, same, "left_anti")


def _hidden(
    builder: Builder, node: SourcePlan, files: tuple[SourceFile, ...], members: frozenset[str], scan: Scan
) -> dict[str, Column]:
    need = builder.plan.facts.required[node.name]
    file, row = F.col(quote(FILE_COLUMN)), F.col(quote(ROW_COLUMN))
    found: dict[str, Column] = {}
    if need.arrival:
        found[ARRIVAL_COLUMN] = F.col(quote(ARRIVAL_COLUMN))
    if need.document:
        found[DOCUMENT_COLUMN] = (F.lit(node.index).cast("long") * F.lit(2**DOCUMENT_BITS) + file).cast("long")
    if need.event:
        watermark = node.config.watermark
        found[EVENT_COLUMN] = event_time(watermark, node.schema[watermark.column])
    if "file" in members:
        found[variable_column("source", "file")] = F.element_at(_texts(f.name for f in files), file + 1)
    if "path" in members:
        found[variable_column("source", "path")] = F.element_at(_texts(f.origin for f in files), file + 1)
    if "row" in members:
        found[variable_column("source", "row")] = row if len(files) <= 1 else _dense(files, scan)
    if "count" in need.members:
        found[variable_column("source", "count")] = F.lit(builder.source_count(node)).cast("long")
    if "name" in need.members:
        found[variable_column("source", "name")] = F.lit(node.source_name)
    if builder.stamps:
        found |= {CK_PREFIX + name: F.col(quote(name)) for name in node.config.correlation_key or ()}
        found[FROM_COLUMN] = F.lit(node.index)
    if builder.letters:
        origin = F.struct(F.lit(node.index).alias("source"), file.cast("int").alias("file"), row.alias("row"))
        found[ORIGIN_COLUMN] = origin.cast(ORIGIN_TYPE)
        found[LETTER_COLUMN] = F.lit(None).cast(LETTER_TYPE)
    if builder.letters and builder.texts:
        pairs: list[Column] = []
        for column in node.columns:
            pairs += [F.lit(column.name), F.col(f"{quote(RECORD_COLUMN)}.{quote(column.name)}")]
        for name in node.config.correlation_key or ():
            pairs += [F.lit(CK_PREFIX + name), key_text(scan.frame, name)]
        if LINE_COLUMN in scan.frame.columns:
            pairs += [F.lit(LINE_COLUMN), F.col(quote(LINE_COLUMN))]
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


__all__ = ["PER_FILE", "build_source"]
