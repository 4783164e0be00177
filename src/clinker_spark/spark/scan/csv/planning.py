"""Planning a read on the driver: headers are read, files are cut, and records counted as far as somebody must know."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from clinker_spark.spark.scan.csv.header import dialect_of, read_headers
from clinker_spark.spark.scan.csv.pieces import pieces
from clinker_spark.spark.scan.csv.plan import CsvPlan, CsvSplit
from clinker_spark.spark.scan.csv.splits import SMALLEST, TARGET, byte_ranges
from clinker_spark.spark.scan.request import ReadRequest
from clinker_spark.spark.scan.text.values import text_columns


def make_plan(request: ReadRequest, *, parallelism: int, target: int = TARGET, smallest: int = SMALLEST) -> CsvPlan:
    """Read the headers and cut the files. Raises InputError for files that cannot be used."""
    files = read_headers(request)
    dialect = dialect_of(request.options)
    names = dict.fromkeys(name for file in files for name, _ in file.undeclared)
    plan = CsvPlan(
        files,
        text_columns(request.columns, request.conventions.date_formats, request.conventions.cleaning),
        frozenset(column.name for column in request.selected),
        dialect,
        widened=tuple(names),
        positions=request.positions,
        record=request.record,
        extras=request.csv,
        cleaning=request.conventions.cleaning,
    )
    splits: list[CsvSplit] = []
    for i, file in enumerate(files):
        if file.blank:
            continue
        if not file.seekable:
            splits.append(CsvSplit(i, skip=int(request.options.has_header)))
            continue
        found = byte_ranges(file.path, file.body, dialect, parallelism=parallelism, target=target, smallest=smallest)
        splits += [CsvSplit(i, start, end, clean=found.clean) for start, end in found.ranges]
    plan = replace(plan, splits=tuple(splits))
    if request.readers.limit is not None:
        plan = _limited(plan, request.readers.limit)
    known = request.readers.known_counts if request.readers.known_counts is not None else {}
    return _numbered(plan, known) if request.positions or request.csv.row_filter is not None else plan


def _limited(plan: CsvPlan, limit: int) -> CsvPlan:
    """Only the splits with the first records. They are counted one by one, until there are enough."""
    kept: list[CsvSplit] = []
    left = limit
    for split in plan.splits:
        if left <= 0:
            break
        kept.append(replace(split, take=left))
        if split is not plan.splits[-1]:
            left -= count_records(plan, split)
    return replace(plan, splits=tuple(kept))


def _numbered(plan: CsvPlan, known: dict[Any, int]) -> CsvPlan:
    """The splits with the number of their first record. Nothing is numbered after the last split: it is not counted."""
    keys = [plan.key(split) for split in plan.splits[:-1]]
    new = [i for i, key in enumerate(keys) if key not in known]
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda i: count_records(plan, plan.splits[i]), new)
        known.update((keys[i], count) for i, count in zip(new, found, strict=True))
    counts = [*(known[key] for key in keys), 0]
    totals = [0] * len(plan.files)
    numbered: list[CsvSplit] = []
    for split, records in zip(plan.splits, counts, strict=False):
        numbered.append(replace(split, first_row=totals[split.file] + 1))
        totals[split.file] += records
    offsets = tuple(sum(totals[:i]) for i in range(len(totals)))
    return replace(plan, splits=tuple(numbered), row_offsets=offsets)


def count_records(plan: CsvPlan, split: CsvSplit) -> int:
    """The records of a split: its lines, but for those inside of quoted values."""
    return max(sum(len(piece.records) for piece in pieces(plan, split)) - split.skip, 0)
