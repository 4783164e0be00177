"""Records as lines of text, in Polars: the same bytes as those of `spark.render`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import polars as pl

from clinker_spark.core.types import Kind
from clinker_spark.cxl.builtins.text import json_text
from clinker_spark.cxl.dates.formats import format_value
from clinker_spark.cxl.vector.call import by_distinct, text_bytes
from clinker_spark.cxl.vector.forms.decimals import rounded_texts
from clinker_spark.cxl.vector.forms.text import datetime_texts, float_texts, text_of
from clinker_spark.plan.columns import CELLS_PREFIX
from clinker_spark.spark.fragments.task import Cell, LineFormat, Members
from clinker_spark.spark.fragments.undeclared import texts_of_json
from clinker_spark.spark.render.cell_text import is_plain

_LINE = "line"
_JSON_SPECIAL = r'["\\\x00-\x1f]'


def lines_of(frame: pl.DataFrame, lines: LineFormat, end: str = "") -> tuple[pl.Series, int]:
    """The line of each record that can be written, with what ends it, and how many cannot."""
    if not frame.height:
        return pl.Series([], dtype=pl.String), 0
    if lines.kind == "csv":
        return _of_each(frame, _csv_line(lines, end)), 0
    floats = [cell.column for cell in lines.cells if cell.type.kind is Kind.FLOAT and not cell.finished]
    unfit = 0
    if floats:
        bad = frame.select(pl.any_horizontal([(~pl.col(name).is_finite()).fill_null(False) for name in floats]))
        mask = bad.to_series()
        unfit = int(mask.sum())
        frame = frame.filter(~mask) if unfit else frame
    if not frame.height:
        return pl.Series([], dtype=pl.String), unfit
    return _of_each(frame, _json_line(lines, frame, end)), unfit


def _of_each(frame: pl.DataFrame, line: pl.Expr) -> pl.Series:
    """The lines of all records, also where they do not depend on them: an output without columns, with constants."""
    return frame.with_columns(line.alias(_LINE))[_LINE]


def _text(cell: Cell) -> pl.Expr:
    """The text of a value, as `render.cell_text.scalar_text` has it."""
    column, style = pl.col(cell.column), cell.style
    match cell.type.kind:
        case Kind.DATE if style.date:
            return by_distinct(column, lambda value: format_value(style.date or "", value), pl.String())
        case Kind.DATETIME if style.datetime:
            return by_distinct(column, lambda value: format_value(style.datetime or "", value), pl.String())
        case Kind.DATETIME:
            return datetime_texts(column, style.between)
        case Kind.DECIMAL if style.scale is not None:
            return rounded_texts(column, cell.type, style.scale)
    return text_of(column, cell.type)


# ---------------------------------------------------------------- CSV


def _csv_line(lines: LineFormat, end: str) -> pl.Expr:
    cells = [_csv_cell(cell, lines.delimiter).fill_null("") for cell in lines.cells]
    single = len(cells) == 1 and (lines.cells[0].undeclared is not None or not lines.cells[0].finished)
    if single:  # a line must not be blank, readers skip those
        cells = [pl.when(cells[0] == "").then(pl.lit('""')).otherwise(cells[0])]
    between = pl.lit(lines.delimiter)
    parts = [part for cell in cells for part in (between, cell)][1:]
    return pl.concat_str([*parts, pl.lit(end)])


def _csv_cell(cell: Cell, delimiter: str) -> pl.Expr:
    if cell.finished and cell.undeclared is None:
        return pl.col(cell.column)
    text = _text(cell)
    if cell.finished:
        text = text.map_batches(texts_of_json, return_dtype=pl.String())
    if is_plain(cell.type, cell.style, delimiter + '"\r\n'):
        return text
    characters = (delimiter.encode(), b'"', b"\r", b"\n")
    special = f'[{_class(delimiter)}"\\r\\n]'

    def quoted(texts: pl.Series) -> pl.Series:
        content = text_bytes(texts)
        if not any(character in content for character in characters):
            return texts
        needs = texts.str.contains(special)
        wrapped = '"' + texts.str.replace_all('"', '""', literal=True) + '"'
        return wrapped.zip_with(needs.fill_null(False), texts)

    return text.map_batches(quoted, return_dtype=pl.String())


def _class(character: str) -> str:
    """A character inside of a class of a regular expression."""
    return character if character.isalnum() else f"\\x{{{ord(character):x}}}"


# ---------------------------------------------------------------- JSON


def _json_line(lines: LineFormat, frame: pl.DataFrame, end: str) -> pl.Expr:
    """One text of all keys and values. A member that may be left out in some record brings its comma along; only where
    the first one may, they are put together first."""
    parts: list[pl.Expr | str] = []
    for i, cell in enumerate(lines.cells):
        if cell.several:
            if not frame[cell.column].null_count():
                parts += ["," if i else "{", pl.col(cell.column)]
            elif i:
                parts.append(pl.concat_str([pl.lit(","), pl.col(cell.column)]).fill_null(""))
            else:
                return _optional_members(lines, end)
            continue
        key = ("," if i else "{") + json_text(cell.name) + ":"
        if not frame[cell.column].null_count():
            parts += [key, *_present(cell, frame[cell.column])]
        elif lines.nulls:
            parts += [key, _json_value(cell).fill_null("null")]
        elif i:
            parts.append(pl.concat_str([pl.lit(key), _json_value(cell)]).fill_null(""))
        else:
            return _optional_members(lines, end)
    return pl.concat_str(_together([*parts, ("}" if lines.cells else "{}") + end]))


def _together(parts: Sequence[pl.Expr | str]) -> list[pl.Expr]:
    """Texts that stand side by side as one: each of them is copied once for each record."""
    found: list[pl.Expr] = []
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        found += [pl.lit(text), part] if text else [part]
        text = ""
    return [*found, pl.lit(text)] if text else found


def _present(cell: Cell, values: pl.Series) -> list[pl.Expr | str]:
    """Values of which none is null. The quotes of plain texts are the same for all records."""
    styled = bool(cell.style.date or cell.style.datetime)
    match cell.type.kind:
        case Kind.STRING | Kind.NULL if not cell.finished and _is_plain(values):
            return ['"', pl.col(cell.column), '"']
        case Kind.DATE | Kind.DATETIME | Kind.DECIMAL if not (cell.finished or styled):
            return ['"', _text(cell), '"']
    return [_json_value(cell)]


def _optional_members(lines: LineFormat, end: str) -> pl.Expr:
    inner = pl.concat_str([_member(cell) for cell in lines.cells], separator=",", ignore_nulls=True)
    return pl.concat_str([pl.lit("{"), inner, pl.lit("}" + end)])


def _member(cell: Cell) -> pl.Expr:
    """A member with its key, null where it has no value."""
    if cell.several:
        return pl.col(cell.column)
    return pl.concat_str([pl.lit(json_text(cell.name) + ":"), _json_value(cell)])


def with_members(frame: pl.DataFrame, runs: Sequence[Members], unread: Collection[str]) -> pl.DataFrame:
    """The records with the texts of members that the reader did not give. Null where all members are left out."""
    for i, members in enumerate(runs):
        name = f"{CELLS_PREFIX}{i}"
        if name in frame.columns and not frame[name].null_count():
            continue
        if members.nulls:
            parts: list[pl.Expr | str] = []
            for cell in members.cells:
                key = ("," if parts else "") + json_text(cell.name) + ":"
                parts += [key, _json_value(cell).fill_null("null")]
            made = pl.concat_str(_together(parts))
        else:
            made = pl.concat_str([_member(cell) for cell in members.cells], separator=",", ignore_nulls=True)
            made = pl.when(made != "").then(made)
        frame = frame.with_columns(made.alias(name))
    return frame.drop(unread, strict=False) if runs else frame


def _json_value(cell: Cell) -> pl.Expr:
    column = pl.col(cell.column)
    if cell.finished:
        return column
    match cell.type.kind:
        case Kind.BOOL | Kind.INT:
            return column.cast(pl.String)
        case Kind.FLOAT:
            return float_texts(column, fraction=True)
        case Kind.STRING | Kind.NULL:
            return column.map_batches(_json_strings, return_dtype=pl.String())
        case Kind.DATE | Kind.DATETIME if cell.style.date or cell.style.datetime:
            return _text(cell).map_batches(_json_strings, return_dtype=pl.String())
    return pl.concat_str([pl.lit('"'), _text(cell), pl.lit('"')])


def _json_strings(texts: pl.Series) -> pl.Series:
    found: Any = '"' + texts + '"'
    if _is_plain(texts):
        return found
    special = texts.str.contains(_JSON_SPECIAL)
    at = special.fill_null(False).arg_true()
    return found.scatter(at, pl.Series([json_text(text) for text in texts.gather(at).to_list()], dtype=pl.String))


def _is_plain(texts: pl.Series) -> bool:
    """Do all of them stand in JSON as they are?"""
    content = text_bytes(texts)
    if b'"' in content or b"\\" in content:
        return False
    return not content or int(np.frombuffer(content, dtype=np.uint8).min()) >= ord(" ")
