"""Parsed records as the batches that Spark receives: the columns of every reader, whatever the format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from clinker_spark.cxl.hidden import ERROR_COLUMN, ERROR_TYPE
from clinker_spark.cxl.lower.plan import quote
from clinker_spark.plan.columns import CELLS_PREFIX, LINE_COLUMN, RECORD_COLUMN, WIDENED_COLUMN
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.spark.columns.undeclared import TEXTS, VALUES
from clinker_spark.spark.scan.lines import line_array
from clinker_spark.spark.scan.record_plan import RecordPlan, RecordSplit
from clinker_spark.spark.scan.text.streams import MARK, REPLACEMENT

ERROR = pa.struct([(name, pa.string()) for name in ("kind", "field", "value", "message")])
WIDENED = pa.map_(pa.string(), pa.string())
WIDENED_VALUES = pa.map_(pa.string(), pa.struct([("json", pa.string())]))
MAX_ROWS = 8192
_SHOWN = 200
Error = dict[str, str | None]


@dataclass
class Rows:
    """Records that were parsed together. `errors` are by row; the first one that is found of a record stays."""

    count: int
    values: dict[str, pa.Array] = field(default_factory=dict)
    """The wanted columns, and members as the lines have them."""
    errors: dict[int, Error] = field(default_factory=dict)
    texts: dict[str, pa.Array] = field(default_factory=dict)
    """The declared columns as they stood in the file, when the plan asks for the record."""
    widened: pa.Array | None = None
    lines: Sequence[bytes | None] | None = None
    """The bytes of the records without line ends, when the plan asks for the record and the format has them."""


def engine_columns(plan: RecordPlan) -> list[tuple[str, str]]:
    """Names and Spark types of the columns after the wanted ones."""
    found = [(ERROR_COLUMN, ERROR_TYPE)]
    if plan.widened:
        found.append((WIDENED_COLUMN, VALUES if plan.typed else TEXTS))
    return found + asked_fields(positions=plan.positions, record=plan.record, names=plan.names)


def asked_fields(*, positions: bool, record: bool, names: Iterable[str]) -> list[tuple[str, str]]:
    """Names and Spark types of the last columns, where they are asked for; `names` are all declared columns.

    >>> asked_fields(positions=True, record=False, names=())
    [('$file', 'INT'), ('$row', 'BIGINT')]
    """
    found = [(FILE_COLUMN, "INT"), (ROW_COLUMN, "BIGINT")] if positions else []
    if record:
        fields = ", ".join(f"{quote(name)}: STRING" for name in names)
        found += [(RECORD_COLUMN, f"STRUCT<{fields}>"), (LINE_COLUMN, "STRING")]
    return found


def read_batches(plan: RecordPlan, split: RecordSplit, most: int = MAX_ROWS) -> Iterator[pa.RecordBatch]:
    """The records of a split in the columns of the plan, `most` at once."""
    row, left = split.first_row, split.take
    if left is not None and left <= 0:
        return
    for rows in plan.reader.rows(plan, split):
        if not rows.count:
            continue
        batch = batch_of(plan, rows, split.file, np.arange(row, row + rows.count, dtype=np.int64))
        row += rows.count
        if left is not None:
            batch = batch.slice(0, left)
            left -= batch.num_rows
        for start in range(0, batch.num_rows, most):
            yield batch.slice(start, most)
        if left is not None and left <= 0:
            return


def batch_of(plan: RecordPlan, rows: Rows, file: int, numbers: np.ndarray) -> pa.RecordBatch:
    """The columns of some records; `numbers` are what `$row` says."""
    names = [name for name, _ in plan.fields]
    arrays = [rows.values[name] for name in names]
    for i in range(len(plan.members)):
        names.append(f"{CELLS_PREFIX}{i}")
        given = rows.values.get(names[-1])
        arrays.append(pa.nulls(rows.count, pa.string()) if given is None else given)
    names.append(ERROR_COLUMN)
    arrays.append(error_column(rows.errors, rows.count))
    if plan.widened:
        names.append(WIDENED_COLUMN)
        kind = WIDENED_VALUES if plan.typed else WIDENED
        arrays.append(pa.nulls(rows.count, kind) if rows.widened is None else rows.widened)
    if plan.positions:
        names += [FILE_COLUMN, ROW_COLUMN]
        arrays.append(pa.array(np.full(rows.count, file, dtype=np.int32)))
        arrays.append(pa.array(numbers))
    if plan.record:
        names += [RECORD_COLUMN, LINE_COLUMN]
        arrays.append(pa.StructArray.from_arrays([rows.texts[name] for name in plan.names], names=list(plan.names)))
        arrays.append(pa.nulls(rows.count, pa.string()) if rows.lines is None else line_array(rows.lines))
    return pa.RecordBatch.from_arrays(arrays, names)


def error_column(errors: Mapping[int, Error], rows: int) -> pa.Array:
    """Why records cannot be used, by row; null for the others."""
    if not errors:
        return pa.nulls(rows, ERROR)
    chosen = sorted(errors)
    places = np.zeros(rows, dtype=np.int32)
    places[chosen] = np.arange(len(chosen))
    there = np.ones(rows, dtype=bool)
    there[chosen] = False
    return pa.array([errors[row] for row in chosen], ERROR).take(pa.array(places, mask=there))


# ---------------------------------------------------------------- errors and texts


def shown(text: str) -> str:
    """A text as an error shows it: not too long, and without characters that cannot be written."""
    return unicode_text(text if len(text) <= _SHOWN else text[:_SHOWN] + "…").replace(MARK, REPLACEMENT)


def structural(message: str, value: str | None = None, name: str | None = None) -> Error:
    text = None if value is None else shown(value)
    return {"kind": "structural_validation", "field": name, "value": text, "message": message}


def missing(name: str, kind: Any, how: str = "missing") -> Error:
    message = f"'{name}' is {how}, and its type {kind} is not nullable"
    return {"kind": "missing_required_field", "field": name, "value": None, "message": message}


def unicode_text(text: str) -> str:
    """The text without halves of surrogate pairs, which escapes in a file can produce and UTF-8 has no bytes for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def string_array(texts: Sequence[str | None]) -> pa.Array:
    """Texts as a column, whatever characters they hold."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array([None if text is None else unicode_text(text) for text in texts], pa.string())


def widened_array(maps: Sequence[Mapping[str, str | None] | None], *, typed: bool = False) -> pa.Array:
    """The undeclared fields of each record: texts, or with `typed` the JSON of values."""
    offsets = [0]
    keys: list[str] = []
    cells: list[str | None] = []
    for entry in maps:
        keys.extend(entry or ())
        cells.extend((entry or {}).values())
        offsets.append(len(keys))
    values = string_array(cells)
    if typed:
        values = pa.StructArray.from_arrays([values], names=["json"], mask=values.is_null())
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), string_array(keys), values)
