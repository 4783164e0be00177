"""Records of a stream with their matches in a table: the worker's side of a broadcast combine."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from clinker_spark.cxl.ir import TypedProgram
from clinker_spark.cxl.vector.call import uniform
from clinker_spark.cxl.vector.program import VectorProgram
from clinker_spark.spark.fragments.joins.index import Index, Numbers, Span, TooMany
from clinker_spark.spark.fragments.task import Lookup, Table
from clinker_spark.spark.joins.names import OK, PAIR, is_of_join

MOST_PAIRS = 1 << 21
"""So many matches of one batch are held; with more, a batch is cut."""
_KEPT = 8
"""Tables of earlier runs need not stay."""
_indexes: dict[tuple[str, tuple[str, ...], Span | None], Index] = {}
"""What this worker has looked up in: it may get many splits."""

Programs = Callable[[TypedProgram], VectorProgram]
Joined = tuple[pl.DataFrame, int]
"""Records, and how many have failed."""


@dataclass(frozen=True)
class Rules:
    """What becomes of matches and misses."""

    first: bool
    on_miss: str


def with_keys(lookup: Lookup, frame: pl.DataFrame, failed: int, programs: Programs) -> Joined:
    """The records whose keys can be computed, with them."""
    batch = programs(lookup.keys).run(frame, failed)
    floats = [name for name in lookup.left_ranges if batch.frame.schema[name] == pl.Float64]
    placed = [pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in floats]
    return batch.frame.with_columns(placed), batch.failed


def joined(lookup: Lookup, left: pl.DataFrame, rules: Rules, programs: Programs, most: int | None) -> Joined:
    """The records with the columns of their matches, in the order of both sides. Raises `TooMany` for more than `most`
    matches."""
    index = _index(lookup)
    records, rows, failed = _pairs(lookup, index, left, rules, programs, most)
    missing = np.ones(left.height, dtype=bool)
    missing[records] = False
    gone = 0
    if failed is not None:
        gone = int(failed.sum())
        records, rows = records[~failed], rows[~failed]
    if rules.on_miss == "error":
        gone += int(missing.sum())
    elif rules.on_miss != "skip" and missing.any():
        lost = np.flatnonzero(missing)
        records = np.concatenate([records, lost])
        order = np.argsort(records, kind="stable")
        records, rows = records[order], np.concatenate([rows, np.full(len(lost), -1)])[order]
    kept = left.drop([name for name in left.columns if is_of_join(name)])
    if len(records) != left.height or not (records == np.arange(left.height)).all():
        kept = kept[records]
    names = [name for name in index.table.columns if not is_of_join(name)]
    return kept.hstack(_taken(index.table.select(names), rows)), gone


def _pairs(
    lookup: Lookup, index: Index, left: pl.DataFrame, rules: Rules, programs: Programs, most: int | None
) -> tuple[Numbers, Numbers, Numbers | None]:
    """The matches that count, in the order of both sides, and which of them have failed."""
    low, high = (None if i is None else lookup.left_ranges[i] for i in lookup.span)
    found: list[tuple[Numbers, Numbers, Numbers | None]] = []
    size = 0
    alone = rules.first and lookup.residual is None and len(lookup.ops) == 1 and index.has_earliest
    candidates = index.pairs(left, lookup.left, (low, high))
    for records, rows in [index.earliest(left, lookup.left, (low, high))] if alone else candidates:
        held, failed = _holds(lookup, index, left, records, rows, programs)
        if held is not None:
            records, rows = records[held], rows[held]
            failed = None if failed is None else failed[held]
        if rules.first and len(index.parts) == 1 and not lookup.left_ranges and lookup.residual is None:
            once = np.flatnonzero(np.diff(records, prepend=-1))  # in the order of the table already
            records, rows = records[once], rows[once]
        found.append((records, rows, failed))
        size += len(records)
        if most is not None and size > most:
            raise TooMany
    if not found:
        none = np.empty(0, dtype=np.int64)
        return none, none, None
    records, rows = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    marks = [part[2] for part in found]
    failed = None if marks[0] is None else np.concatenate([mark for mark in marks if mark is not None])
    places = records * np.int64(index.table.height + 1) + rows
    if len(places) > 1 and not (places[1:] > places[:-1]).all():
        order = np.argsort(places, kind="stable")
        records, rows, failed = records[order], rows[order], None if failed is None else failed[order]
    if rules.first:
        once = np.flatnonzero(np.diff(records, prepend=-1))
        records, rows, failed = records[once], rows[once], None if failed is None else failed[once]
    return records, rows, failed


def _holds(
    lookup: Lookup, index: Index, left: pl.DataFrame, records: Numbers, rows: Numbers, programs: Programs
) -> tuple[Numbers | None, Numbers | None]:
    """Which candidates are pairs, None if all are; and which of them have a condition that fails, which makes a pair
    as well."""
    exact = all(part.exact for part in index.parts)
    checks = [(a, "eq", b) for a, b in zip(lookup.left, lookup.right, strict=True)]
    for i, (a, op, b) in enumerate(zip(lookup.left_ranges, lookup.ops, lookup.right_ranges, strict=True)):
        if i not in lookup.span or (not exact and i == lookup.span[1]):  # what begins too late is no candidate
            checks.append((a, _COMPARED[op], b))
    held: Numbers | None = None
    for a, name, b in checks:
        mine, other = left[a].gather(records), index.table[b].gather(rows)
        met = getattr(mine, name)(other).fill_null(False).to_numpy()
        held = met if held is None else held & met
    if lookup.residual is None:
        return held, None
    at = np.arange(len(records)) if held is None else np.flatnonzero(held)
    named = pl.Series(PAIR, at)
    pairs = left[records[at]].drop([name for name in left.columns if is_of_join(name)])
    pairs = pairs.hstack(_taken(index.table, rows[at])).with_columns(named)
    batch = programs(lookup.residual).run(pairs)
    true = np.zeros(len(records), dtype=bool)
    true[batch.frame.filter(pl.col(OK).fill_null(False))[PAIR].to_numpy()] = True
    failed = np.zeros(len(records), dtype=bool)
    for rejected in batch.rejected:
        failed[rejected[PAIR].to_numpy()] = True
    return true | failed, failed


_COMPARED = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}


def _taken(table: pl.DataFrame, rows: Numbers) -> pl.DataFrame:
    """Rows of a table; -1 is one without values."""
    chosen = pl.Series("rows", rows)
    if len(rows) and rows.min() < 0:
        chosen = chosen.set(chosen < 0, None)
    return table.select(pl.all().gather(chosen)) if table.width else pl.DataFrame()


def _index(lookup: Lookup) -> Index:
    span = None
    low, high = lookup.span
    if low is not None or high is not None:
        ends = [None if i is None else lookup.right_ranges[i] for i in (low, high)]
        is_open = [i is not None and "=" not in lookup.ops[i] for i in (low, high)]
        span = Span(ends[0], ends[1], *is_open)
    key = (lookup.table.name, lookup.right, span)
    if key not in _indexes:
        while len(_indexes) >= _KEPT:
            del _indexes[next(iter(_indexes))]
        _indexes[key] = Index(uniform(_read(lookup.table)), lookup.right, span)
    return _indexes[key]


def _read(table: Table) -> pl.DataFrame:
    if table.path is None:
        return pl.read_ipc(io.BytesIO(table.content or b""))
    # Texts were written as Polars keeps them: all workers of a machine share the pages of the file.
    found = pl.from_arrow(pa.ipc.open_file(pa.memory_map(table.path)).read_all())
    assert isinstance(found, pl.DataFrame)
    return found
