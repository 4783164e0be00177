"""Blocks of text as the batches that Spark receives: typed columns, and why a record cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.core.types import STRING
from clinker_spark.cxl.hidden import ERROR_COLUMN, ERROR_TYPE
from clinker_spark.plan.columns import CELLS_PREFIX, FAILED_COLUMN, LINE_COLUMN, RECORD_COLUMN, WIDENED_COLUMN
from clinker_spark.plan.facts import CellRun
from clinker_spark.query.hidden import FILE_COLUMN, ROW_COLUMN
from clinker_spark.spark.scan.csv.blocks import BLOCK, Block, RaggedRow, parsed_batches
from clinker_spark.spark.scan.csv.header import CsvFile
from clinker_spark.spark.scan.csv.plan import CsvPlan, CsvSplit
from clinker_spark.spark.scan.csv.stretches import cells_between
from clinker_spark.spark.scan.group_sizes import GroupSizes
from clinker_spark.spark.scan.kept_rejects import LetterKeeper
from clinker_spark.spark.scan.record_batches import WIDENED, Error, asked_fields, error_column
from clinker_spark.spark.scan.row_filter import RowFilter
from clinker_spark.spark.scan.text.cells import joined_cells
from clinker_spark.spark.scan.text.cleaning import Cleaning
from clinker_spark.spark.scan.text.streams import MARK, REPLACEMENT
from clinker_spark.spark.scan.text.values import TextColumn

_SHOWN = 200


def engine_columns(plan: CsvPlan) -> list[tuple[str, str]]:
    """Names and Spark types of the columns after the wanted ones."""
    found = [(f"{CELLS_PREFIX}{i}", "STRING") for i in range(len(plan.extras.cells))]
    if plan.extras.aside is None:
        found.append((FAILED_COLUMN, "BOOLEAN") if plan.extras.only_flags else (ERROR_COLUMN, ERROR_TYPE))
    if plan.widened:
        found.append((WIDENED_COLUMN, "MAP<STRING, STRING>"))
    return found + asked_fields(
        positions=plan.positions, record=plan.record, names=(column.name for column in plan.columns)
    )


def read_split(plan: CsvPlan, split: CsvSplit, block_size: int = BLOCK) -> Iterator[pa.RecordBatch]:
    """The records of a split in the columns of the plan."""
    file, extras = plan.files[split.file], plan.extras
    wanted = [*_needed(plan, file), *(place for _, place in file.undeclared)]
    row = split.first_row
    with ExitStack() as stack:
        keeper, sizes = None, None
        if extras.aside is not None:
            keeper = stack.enter_context(LetterKeeper(extras.aside, plan.splits.index(split), len(plan.columns)))
            if extras.watched:
                sizes = stack.enter_context(GroupSizes(extras.aside, plan.splits.index(split)))
        for block in parsed_batches(plan, split, wanted, block_size):
            numbers = np.arange(row, row + block.rows, dtype=np.int64)
            row += block.rows
            if block.ragged and extras.keys:
                block = _with_keys(plan, file, block)
            if extras.row_filter is not None:
                block, numbers = _filtered(plan, extras.row_filter, split.file, block, numbers)
            if sizes is not None:
                _look_at_groups(plan, file, block, sizes)
            if block.rows:
                yield _batch(plan, file, split.file, block, numbers, keeper)


def _needed(plan: CsvPlan, file: CsvFile) -> list[int]:
    """The places of the declared columns that somebody looks at."""
    every = plan.record or plan.extras.aside is not None
    in_cells = {name for run in plan.extras.cells for name in run.columns}
    in_cells |= set(plan.extras.row_filter.keys) if plan.extras.row_filter is not None else set()
    return [
        place
        for column, place in zip(plan.columns, file.places, strict=True)
        if place is not None and (every or column.checked or column.name in plan.selected or column.name in in_cells)
    ]


def _with_keys(plan: CsvPlan, file: CsvFile, block: Block) -> Block:
    """The block with the key cells of its ragged rows: a broken record still belongs to its group."""
    broken = {row: _ragged_cells(plan, what) for row, what in block.ragged.items()}
    mask = pa.array(np.isin(np.arange(block.rows), list(broken)))
    columns = dict(block.columns)
    for column, place in zip(plan.columns, file.places, strict=True):
        if column.name in plan.extras.keys and place is not None and place in columns:
            cells = [cells[place] if place < len(cells) else None for _, cells in sorted(broken.items())]
            columns[place] = pc.replace_with_mask(columns[place], mask, pa.array(cells, pa.string()))
    return replace(block, columns=columns)


def _ragged_cells(plan: CsvPlan, row: RaggedRow) -> list[str]:
    """The cells that a ragged row has. Behind an unclosed quote there are none."""
    cells = plan.dialect.cells(row.text)
    return cells if row.unclosed is None else cells[:-1]


def _look_at_groups(plan: CsvPlan, file: CsvFile, block: Block, sizes: GroupSizes) -> None:
    rows = sizes.sample(block.rows)
    keys = []
    for column, place in zip(plan.columns, file.places, strict=True):
        if column.name in plan.extras.watched:
            text = pa.nulls(len(rows), pa.string()) if place is None else block.columns[place].take(rows)
            keys.append(column.convert(text).values)
    sizes.add(keys)


def _filtered(
    plan: CsvPlan, row_filter: RowFilter, file_index: int, block: Block, numbers: np.ndarray
) -> tuple[Block, np.ndarray]:
    """The chosen records of a block, and their numbers. Only their keys were looked at, the rest is still text."""
    file = plan.files[file_index]
    readable = _without_marks(plan, file, block, {}) if block.marked else block
    keys: dict[str, pa.Array] = {}
    for column, place in zip(plan.columns, file.places, strict=True):
        if column.name in row_filter.keys and place is not None:
            keys[column.name] = column.convert(readable.columns[place]).values
    rows = np.flatnonzero(row_filter.stay(file_index, numbers, keys))
    if len(rows) == block.rows:
        return block, numbers
    columns = {place: text.take(pa.array(rows)) for place, text in block.columns.items()}
    ragged = {at: block.ragged[row] for at, row in enumerate(rows.tolist()) if row in block.ragged}
    chosen_block = Block(len(rows), columns, block.piece, block.records[rows], ragged, block.marked)
    return chosen_block, numbers[rows]


def _batch(
    plan: CsvPlan, file: CsvFile, file_index: int, block: Block, numbers: np.ndarray, keeper: LetterKeeper | None
) -> pa.RecordBatch:
    errors: dict[int, Error] = {row: _ragged_error(plan, what, file) for row, what in block.ragged.items()}
    if block.marked:
        block = _without_marks(plan, file, block, errors)
    typed = _typed(plan, file, block, errors)
    found = {name: values for name, values in typed.items() if name in plan.selected}
    for i, run in enumerate(plan.extras.cells):
        found[f"{CELLS_PREFIX}{i}"] = _cells(plan, file, block, typed, run)
    if keeper is None and plan.extras.only_flags:
        found[FAILED_COLUMN] = _failed_column(errors, block.rows)
    elif keeper is None:
        found[ERROR_COLUMN] = error_column(errors, block.rows)
    if plan.widened:
        found[WIDENED_COLUMN] = _widened(file, block, plan.cleaning)
    if plan.positions:
        found[FILE_COLUMN] = pa.array(np.full(block.rows, file_index, dtype=np.int32))
        found[ROW_COLUMN] = pa.array(numbers)
    if plan.record:
        found |= {RECORD_COLUMN: _record(plan, file, block), LINE_COLUMN: block.lines()}
    if not found:  # there must be some column to say how many records there are
        found[FAILED_COLUMN] = _failed_column({}, block.rows)
    batch = pa.RecordBatch.from_arrays(list(found.values()), list(found))
    if keeper is None:
        return batch
    if not errors:
        keeper.add(block.rows)
        return batch
    rows = np.array(sorted(errors))
    record = _record(plan, file, block).take(pa.array(rows))
    keeper.add(block.rows, errors, record, block.piece.lines(block.records[rows]))
    return batch.filter(pc.invert(_failed_column(errors, block.rows)))


def _typed(plan: CsvPlan, file: CsvFile, block: Block, errors: dict[int, Error]) -> dict[str, pa.Array]:
    """The values of the columns that are asked for, or must be looked at; what is no value is one of the errors."""
    found: dict[str, pa.Array] = {}
    for column, place in zip(plan.columns, file.places, strict=True):
        if place is None:
            if column.name in plan.selected:
                found[column.name] = pa.nulls(block.rows, column.arrow)
        elif column.name in plan.selected or column.checked:
            text = block.columns[place]
            converted = column.convert(text)
            found[column.name] = converted.values
            if converted.failed is not None:
                for row in np.flatnonzero(converted.failed.to_numpy(zero_copy_only=False)).tolist():
                    errors.setdefault(row, column.error(text[row].as_py()))
    return found


def _cells(plan: CsvPlan, file: CsvFile, block: Block, typed: dict[str, pa.Array], run: CellRun) -> pa.Array:
    """Finished cells of the output. A column that the file does not have has empty ones."""
    columns = {column.name: (column, place) for column, place in zip(plan.columns, file.places, strict=True)}
    nothing = pa.nulls(block.rows, pa.string())
    places = [columns[name][1] for name in run.columns]

    def as_they_stand() -> pa.Array | None:
        return cells_between(block, places, file.width) if run.delimiter == plan.dialect.delimiter else None

    chosen, texts, values = [], [], []
    for name in run.columns:
        column, place = columns[name]
        chosen.append(column if place is not None else TextColumn(name, STRING))
        texts.append(nothing if place is None else column.cleaning.clean(block.columns[place])[0])
        values.append(nothing if place is None else typed.get(name, nothing))
    return joined_cells(chosen, texts, values, run.delimiter, None if plan.cleaning else as_they_stand)


def _failed_column(errors: dict[int, Error], rows: int) -> pa.Array:
    found = np.zeros(rows, dtype=bool)
    found[list(errors)] = True
    return pa.array(found)


def _shown(text: str) -> str:
    return (text if len(text) <= _SHOWN else text[:_SHOWN]).replace(MARK, REPLACEMENT)


def _ragged_error(plan: CsvPlan, row: RaggedRow, file: CsvFile) -> Error:
    if row.unclosed is not None:
        message = plan.dialect.unclosed_message(row.unclosed)
        return {"kind": "structural_validation", "field": None, "value": _shown(row.text), "message": message}
    values = f"{row.cells} value" if row.cells == 1 else f"{row.cells} values"
    message = f"the row has {values}, the {'header' if file.has_header else 'schema'} has {file.width}"
    return {"kind": "structural_validation", "field": None, "value": _shown(row.text), "message": message}


def _without_marks(plan: CsvPlan, file: CsvFile, block: Block, errors: dict[int, Error]) -> Block:
    """The block with null for cells that could not be decoded; their records get an error."""
    names = {place: column.name for column, place in zip(plan.columns, file.places, strict=True) if place is not None}
    columns = dict(block.columns)
    for place, text in block.columns.items():
        broken = pc.fill_null(pc.match_substring(text, MARK), False)
        if not pc.any(broken).as_py():
            continue
        for row in np.flatnonzero(broken.to_numpy(zero_copy_only=False)).tolist():
            message = f"the value is not {file.encoding}"
            value = _shown(text[row].as_py())
            error = {"kind": "structural_validation", "field": names.get(place), "value": value, "message": message}
            errors.setdefault(row, error)
        columns[place] = pc.if_else(broken, pa.scalar(None, pa.string()), text)
    return replace(block, columns=columns, marked=False)


def _widened(file: CsvFile, block: Block, cleaning: Cleaning) -> pa.Array:
    """The cells of undeclared columns as one map per record; none for ragged rows."""
    rows, width = block.rows, len(file.undeclared)
    if not width:
        return pa.nulls(rows, WIDENED)
    cells = pa.concat_arrays([block.columns[place] for _, place in file.undeclared])
    if cleaning:
        cells, words = cleaning.clean(cells)
        cells = cells if words is None else pc.if_else(words, pa.scalar(None, pa.string()), cells)
    # Cell j of row i stands at j * rows + i; a map wants the cells of a row side by side.
    order = (np.arange(rows)[:, None] + np.arange(width)[None, :] * rows).ravel()
    keys = pa.array([name for name, _ in file.undeclared]).take(pa.array(np.tile(np.arange(width), rows)))
    offsets = pa.array(np.arange(0, rows * width + 1, width, dtype=np.int32))
    maps = pa.MapArray.from_arrays(offsets, keys, cells.take(pa.array(order)))
    if not block.ragged:
        return maps
    kept = np.arange(rows)
    return maps.take(pa.array(kept, mask=np.isin(kept, list(block.ragged))))


def _record(plan: CsvPlan, file: CsvFile, block: Block) -> pa.Array:
    """The declared columns as text; of a ragged row, those cells that it has."""
    ragged = {row: plan.dialect.cells(what.text) for row, what in sorted(block.ragged.items())}
    arrays = []
    for place in file.places:
        if place is None:
            arrays.append(pa.nulls(block.rows, pa.string()))
            continue
        text = block.columns[place]
        if ragged:
            found = [cells[place] if place < len(cells) else None for cells in ragged.values()]
            mask = np.isin(np.arange(block.rows), list(ragged))
            text = pc.replace_with_mask(text, pa.array(mask), pa.array(found, pa.string()))
        arrays.append(text)
    return pa.StructArray.from_arrays(arrays, names=[column.name for column in plan.columns])
