"""Sources: a scan with the hidden columns that somebody downstream needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clinker_spark.core.fast_paths import taken
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
from clinker_spark.spark.build.builder import Builder
from clinker_spark.spark.build.passes import Retraction
from clinker_spark.spark.build.source_columns import conventions_of
from clinker_spark.spark.build.stream import DOCUMENT_BITS, Stream
from clinker_spark.spark.operators.source_order import repaired
from clinker_spark.spark.operators.time_windows import event_time
from clinker_spark.spark.rejects.dirty_groups import key_text
from clinker_spark.spark.rejects.withheld import with_left_out
from clinker_spark.spark.scan.formats import read
from clinker_spark.spark.scan.group_sizes import ONE_IN, largest_group
from clinker_spark.spark.scan.request import CsvExtras, Readers, ReadRequest, Scan, SourceFile
from clinker_spark.spark.scan.scans import meter_path, progress_path

LEAST_SAMPLED = 20_000
"""Limits of groups below this are too small to be watched in a sample: they are always counted."""
RECORD_COUNTS = "record counts"
"""What the passes of a run know of the parts of files (`ReadRequest.known_counts`)."""
_FILE_SCHEMAS = "file schemas"
_ENGINE = (FILE_COLUMN, ROW_COLUMN, RECORD_COLUMN, LINE_COLUMN, ARRIVAL_COLUMN, ERROR_COLUMN)
PER_FILE = ("file", "path", "row")
"""Members of $source that differ from record to record."""


def build_source(builder: Builder, node: SourcePlan) -> Stream:
    """The records of the source's files, in file order."""
    unread = _unread(builder, node)
    request = source_request(builder, node, unread)
    opened = builder.run.opened.get(node.name)
    found = read(builder.spark, node.reader, request) if opened is None else opened(request)
    scan = _placed(builder, found)
    removed = builder.asked.retraction.removed.get(node.name)
    if removed is not None:
        scan = replace(scan, frame=_without(scan.frame, removed, builder.asked.retraction))
    row_filter = request.csv.row_filter
    if row_filter is not None and row_filter.keep:
        # Failures and what is withheld are two readers of few records.
        scan = replace(scan, frame=builder.memo.store(node.name, scan.frame))
    builder.memo.scans[node.name] = scan
    assert scan.in_python == (node.name in builder.plan.facts.python), node.name
    frame = _counted(builder, node, scan)
    unsorted = builder.run.found.unsorted.get(node.name)
    if unsorted is not None and builder.plan.facts.columns.required[node.name].arrival:
        frame = repaired(frame, node, unsorted)
    columns = [F.col(quote(name)) for name in frame.columns if name not in _ENGINE]
    columns += [F.lit(None).cast(kind).alias(name) for name, kind in unread.items()]
    columns += [column.alias(name) for name, column in _hidden(builder, node, scan).items()]
    if ERROR_COLUMN in frame.columns:
        columns.append(F.col(quote(ERROR_COLUMN)))
    stream = Stream(
        frame.select(*columns),
        in_place=unsorted is None and (removed is None or builder.asked.retraction.broadcastable),
        flow=source_flow(builder, node, removed=removed is not None, filtered=row_filter is not None),
        pushes=not scan.in_python and not scan.fallible,
    )
    return builder.mark(node, with_left_out(builder, node, stream))


def _unread(builder: Builder, node: SourcePlan) -> dict[str, str]:
    """The columns that are null instead of what stands in the files, with their types. When only failures are looked
    for, what goes to an output as it is cannot fail, and is not even sent."""
    passed = builder.plan.facts.columns.pass_through.get(node.name)
    if not builder.finds or builder.asked.texts or passed is None:
        return {}
    keys = set(node.config.correlation_key or ())
    wanted = builder.plan.facts.columns.required[node.name].columns & set(node.schema)
    return {name: physical(node.schema[name]) for name in wanted - passed.columns - keys}


def source_request(builder: Builder, node: SourcePlan, unread: Collection[str] = ()) -> ReadRequest:
    """What the reader is asked for."""
    asked, run, need = builder.asked, builder.run, builder.plan.facts.columns.required[node.name]
    formats = tuple(builder.plan.file.settings.date_formats)
    placed = need.document or bool(need.members & set(PER_FILE)) or node.name in asked.retraction.removed
    positions = builder.finds or placed or node.name in run.found.unsorted
    # Where records are numbered, all of them count.
    bounds = () if positions or asked.limit is not None else builder.plan.facts.columns.bounds.get(node.name, ())
    return ReadRequest(
        source=node.name,
        files=run.files[node.name],
        columns=node.columns,
        options=node.config.options,
        conventions=conventions_of(node, node.config.on_unmapped.mode, formats),
        wanted=_wanted(builder, node) - set(unread),
        arrival=need.arrival or _counts_groups(builder, node),
        positions=positions,
        record=builder.finds and asked.texts,
        readers=Readers(
            limit=asked.limit,
            progress=_progress(builder, node),
            meter=None if run.folder is None else meter_path(Path(run.folder), node.name),
            known_counts=run.measured.setdefault(RECORD_COUNTS, {}) if asked.limit is None else None,
            known_schemas=run.measured.setdefault(_FILE_SCHEMAS, {}),
            here=run.small and not asked.repeats and taken("rows_in_plan"),
            bounds=bounds,
            batch_size=run.plan.file.settings.declared_batch_size,
        ),
        csv=_csv_extras(builder, node),
    )


def _wanted(builder: Builder, node: SourcePlan) -> frozenset[str]:
    """The columns whose values somebody reads."""
    passed = builder.plan.facts.columns.pass_through.get(node.name)
    wanted = builder.plan.facts.columns.required[node.name].columns & set(node.schema)
    if passed is not None and passed.runs and builder.writes:
        wanted = passed.columns
    if builder.stamps or _counts_groups(builder, node):
        wanted |= set(node.config.correlation_key or ())
    if node.name in builder.run.found.unsorted:
        wanted |= {item.field for item in node.config.sort_order}
    return wanted


def _csv_extras(builder: Builder, node: SourcePlan) -> CsvExtras:
    asked, key = builder.asked, tuple(node.config.correlation_key or ())
    passed = builder.plan.facts.columns.pass_through.get(node.name)
    return CsvExtras(
        cells=passed.runs if passed is not None and builder.writes else (),
        only_flags=builder.writes or (builder.finds and not asked.texts),
        aside=_progress(builder, node) if asked.sets_aside else None,
        watched=key if watches_groups(builder, node) and not _counts_groups(builder, node) else (),
        row_filter=asked.row_filters.get(node.name),
        keys=key if builder.stamps else (),
    )


def _progress(builder: Builder, node: SourcePlan) -> str | None:
    """Where readers write how far they are."""
    return None if builder.progress is None else progress_path(builder.progress, node.name)


def _placed(builder: Builder, scan: Scan) -> Scan:
    """Small inputs are one partition. The parts of files on this machine have no places that would be preferred: they
    stay in their order."""
    if not builder.run.small:
        return scan
    frame = scan.frame.coalesce(1)
    return replace(scan, frame=builder.shared(frame) if builder.asked.repeats else frame)


def _counted(builder: Builder, node: SourcePlan, scan: Scan) -> DataFrame:
    """Count after the reader what readers cannot count themselves."""
    frame = scan.frame
    if builder.writes and not builder.run.local and scan.rows is None:
        frame = builder.metrics.count(f"{node.name}.source", frame, rows=F.count(F.lit(1)))
    if _counts_groups(builder, node):
        builder.memo.watching.add(node.name)
        frame = _watch_groups(builder, node, frame)
    return frame


def source_flow(builder: Builder, node: SourcePlan, *, removed: bool, filtered: bool) -> Flow:
    """How many records there are: what readers give, without those that were retracted. Readers may leave out
    themselves what a row filter says, and what they keep aside."""
    ledger, name = builder.ledger, node.name
    read, given, left_out = (count(f"{name}: {what}") for what in ("read", "given", "left out"))
    rest = left_out if filtered else NONE
    if builder.scans[name].split_files is not None:
        aside = count(f"{name}: kept aside")
        rest = rest + aside
        ledger.entry(name).failed[f"{name}: kept aside"] = aside
    if removed or filtered:
        ledger.entry(name).dropped[WITHHELD_FROM, 0] = left_out
    ledger.law(name, "has {left} records, and {right} were given or kept aside by its readers", read, given + rest)
    flow = given - left_out if removed else given
    if f"{name}.source" in builder.metrics.counts:
        ledger.law(name, "gives {left} records, and {right} were counted", flow, count(f"{name}.source: rows"))
    return flow


def watches_groups(builder: Builder, node: SourcePlan) -> bool:
    """Can a group be so large that its size must be watched? Only the first pass does, and only for large files."""
    asked = builder.asked
    most = builder.plan.file.error_handling.max_group_buffer
    possible = (
        sum(file.size for file in builder.run.files[node.name]) // 2
    )  # a record has a byte and a line end at least
    first = not (asked.finds or asked.keys or asked.row_filters or asked.limit is not None)
    first = first and node.name not in builder.memo.watched
    return bool(node.config.correlation_key) and first and most >= LEAST_SAMPLED and possible > most


def _counts_groups(builder: Builder, node: SourcePlan) -> bool:
    """Are groups watched after the reader? Readers of CSV that keep records guess their sizes themselves."""
    return watches_groups(builder, node) and not (builder.asked.sets_aside and node.reader == "csv")


def _watch_groups(builder: Builder, node: SourcePlan, frame: DataFrame) -> DataFrame:
    """Count the most frequent key among one in `ONE_IN` records: a group above the limit cannot hide from that."""
    keys = ", ".join(quote(name) for name in node.config.correlation_key)
    sampled = f"xxhash64({quote(ARRIVAL_COLUMN)}) & {ONE_IN - 1} = 0"
    largest = f"approx_top_k(CASE WHEN {sampled} THEN xxhash64({keys}) END, 2, 4096)"  # null may be one of the two
    return builder.metrics.count(f"{node.name}.groups", frame, largest=F.expr(largest))


def watched_size(builder: Builder, node: SourcePlan) -> int | None:
    """About how many records the largest group of a source has, as the first pass saw it; None if nobody looked."""
    scan = builder.scans.get(node.name)
    if scan is not None and scan.watches:
        assert builder.progress is not None and scan.split_files is not None
        return largest_group(progress_path(builder.progress, node.name), len(scan.split_files))
    found: Any = builder.metrics.counted(f"{node.name}.groups").get("largest")
    if found is None:
        return None
    return max((row["count"] for row in found if row["item"] is not None), default=0) * ONE_IN


def _without(frame: DataFrame, removed: DataFrame | Sequence[tuple[int, int]], retraction: Retraction) -> DataFrame:
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
    return frame.join(gone.hint("broadcast") if retraction.broadcastable else gone, same, "left_anti")


def _hidden(builder: Builder, node: SourcePlan, scan: Scan) -> dict[str, Column]:
    """The hidden columns that somebody downstream needs."""
    need = builder.plan.facts.columns.required[node.name]
    file = F.col(quote(FILE_COLUMN))
    found: dict[str, Column] = {}
    if need.arrival and ARRIVAL_COLUMN in scan.frame.columns:  # streams have no order
        found[ARRIVAL_COLUMN] = F.col(quote(ARRIVAL_COLUMN))
    if need.document:
        found[DOCUMENT_COLUMN] = (F.lit(node.index).cast("long") * F.lit(2**DOCUMENT_BITS) + file).cast("long")
    if need.event:
        watermark = node.config.watermark
        found[EVENT_COLUMN] = event_time(watermark, node.schema[watermark.column])
    found |= _members(builder, node, scan)
    if builder.stamps:
        found |= {CK_PREFIX + name: F.col(quote(name)) for name in node.config.correlation_key or ()}
        found[FROM_COLUMN] = F.lit(node.index)
    if builder.finds:
        row = F.col(quote(ROW_COLUMN))
        origin = F.struct(F.lit(node.index).alias("source"), file.cast("int").alias("file"), row.alias("row"))
        found[ORIGIN_COLUMN] = origin.cast(ORIGIN_TYPE)
        found[LETTER_COLUMN] = (_letter(node, scan) if builder.asked.texts else F.lit(None)).cast(LETTER_TYPE)
    return found


def _members(builder: Builder, node: SourcePlan, scan: Scan) -> dict[str, Column]:
    """The members of $source that programs read."""
    files, file = builder.run.files[node.name], F.col(quote(FILE_COLUMN))
    made: dict[str, Callable[[], Column]] = {
        "file": lambda: F.element_at(_texts(f.name for f in files), file + 1),
        "path": lambda: F.element_at(_texts(f.origin for f in files), file + 1),
        "row": lambda: _dense(files, scan),
        "count": lambda: F.lit(builder.source_count(node)).cast("long"),
        "name": lambda: F.lit(node.source_name),
    }
    members = builder.plan.facts.columns.required[node.name].members
    return {variable_column("source", name): column() for name, column in made.items() if name in members}


def _letter(node: SourcePlan, scan: Scan) -> Column:
    """A record as a dead letter shows it: its texts, its key and its line."""
    pairs: list[Column] = []
    for column in node.columns:
        pairs += [F.lit(column.name), F.col(f"{quote(RECORD_COLUMN)}.{quote(column.name)}")]
    for name in node.config.correlation_key or ():
        pairs += [F.lit(CK_PREFIX + name), key_text(scan.frame, name)]
    if LINE_COLUMN in scan.frame.columns:
        pairs += [F.lit(LINE_COLUMN), F.col(quote(LINE_COLUMN))]
    return F.create_map(*pairs)


def _texts(values: Any) -> Column:
    return F.array(*[F.lit(value) for value in values])


def _dense(files: tuple[SourceFile, ...], scan: Scan) -> Column:
    """1, 2, 3 over all files of a source."""
    row = F.col(quote(ROW_COLUMN))
    if len(files) <= 1:
        return row
    offsets = F.array(*[F.lit(offset).cast("long") for offset in scan.row_offsets])
    return row + F.element_at(offsets, F.col(quote(FILE_COLUMN)) + 1)
