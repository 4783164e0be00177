"""CSV files of queries before Spark sees them: their columns, guessed types, and records that cannot be used."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

from clinker_spark.core.types import STRING, Type
from clinker_spark.query.failures import Failed
from clinker_spark.query.files.guesses import guessed, pattern
from clinker_spark.query.types import QType, RecordType

WHOLE = 64 * 2**20
"""Files up to this size are looked at as a whole; of larger ones the beginning, and Spark checks the rest."""
_BLOCK = 8 * 2**20


def shown_path(path: str) -> str:
    """A path as people write it: relative to where they are, if it is below."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def csv_names(paths: tuple[str, ...], delimiter: str, header: bool) -> tuple[str, ...]:
    """The columns of the files, which must be the same in all of them; their order may differ."""
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n"\0':
        raise Failed("a delimiter is one ASCII character", code="E707")
    found = [(path, _first_row(path, delimiter)) for path in paths]
    rows = [(path, row) for path, row in found if row is not None]
    if not rows:
        raise ValueError("it is empty")
    if not header:
        widest = max(len(row) for _, row in rows)
        return tuple(f"c{i}" for i in range(widest))
    for path, row in rows:
        if "" in row:
            help_text = "name it in the file, or read it with {header: false}"
            raise Failed(f"column {row.index('') + 1} of '{shown_path(path)}' has no name", help_text, code="E707")
        if len(set(row)) != len(row):
            raise ValueError("two columns have one name")
    check_columns(rows)
    return tuple(rows[0][1])


def check_columns(files: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Raises `Failed` if files have other columns than the first of them."""
    first, names = files[0]
    for path, own in files:
        if others := sorted(set(own) ^ set(names)):
            which = shown_path(path if others[0] in names else first)
            message = f"'{which}' has no column '{others[0]}', but other files have it"
            raise Failed(message, "load files with different columns one by one", code="E713")


def _first_row(path: str, delimiter: str) -> list[str] | None:
    with open(path, encoding="utf-8-sig", newline="") as file:
        try:
            return next((row for row in csv.reader(file, delimiter=delimiter) if row), None)
        except UnicodeDecodeError:
            raise Failed(*_not_utf8(path), code="E712") from None


def csv_row(
    paths: tuple[str, ...], names: tuple[str, ...], delimiter: str, header: bool, declared: QType | None
) -> tuple[RecordType, tuple[tuple[str, str], ...]]:
    """The type of the rows. Raises `Failed` for a record that cannot be used.

    Where only the beginning was looked at, also a pattern for each column of numbers that all of its texts must match.
    """
    if isinstance(declared, RecordType):
        for name, t in declared.fields:
            if not isinstance(t, Type):
                help_text = "declare it as string"
                raise Failed(f"'{name}' is declared as {t:?}, which a CSV file cannot hold", help_text, code="E711")
        return RecordType(tuple((n, (declared.field(n) or STRING).as_nullable()) for n in names)), ()
    import pyarrow as pa  # Arrow is loaded by queries that read such files

    whole = sum(os.path.getsize(p) for p in paths) <= WHOLE
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for path in paths:
        own = (_first_row(path, delimiter) or []) if header else list(names)
        table = _table(path, own, delimiter, header, whole) if own else None
        if table is None or not table.num_rows:
            continue
        for name in names:
            columns[name] += table.column(name).chunks
    types = {name: guessed(pa.chunked_array(chunks, pa.string())) for name, chunks in columns.items()}
    row = RecordType(tuple((n, t if whole or t is STRING else t.as_nullable()) for n, t in types.items()))
    if whole:
        return row, ()
    numbers = [(name, t) for name, t in types.items() if t != STRING]
    return row, tuple((name, pattern(pa.chunked_array(columns[name], pa.string()), t)) for name, t in numbers)


def _table(path: str, names: list[str], delimiter: str, header: bool, whole: bool) -> Any:
    """The texts of a file, or of its beginning; None when there are none."""
    import pyarrow as pa  # Arrow is loaded by queries that read such files
    from pyarrow import csv as pa_csv

    broken: list[Any] = []

    def keep(row: Any) -> str:
        broken.append(row)
        return "skip"

    def options(threads: bool) -> tuple[Any, Any, Any]:
        return (
            pa_csv.ReadOptions(
                column_names=names, skip_rows_after_names=int(header), use_threads=threads, block_size=_BLOCK
            ),
            pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=keep),
            pa_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, null_values=[]
            ),
        )

    try:
        if whole:
            table = pa_csv.read_csv(path, *options(True))
        else:
            with pa_csv.open_csv(path, *options(True)) as reader:
                table = pa.Table.from_batches([reader.read_next_batch()])
    except StopIteration:
        table = None
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return None
        if "UTF8" in str(error):
            raise Failed(*_not_utf8(path), code="E712") from None
        raise
    if broken:
        if whole:  # rows are counted only where one thread reads them all
            broken.clear()
            pa_csv.read_csv(path, *options(False))
        row = min(broken, key=lambda row: row.number or 0)
        number = f" {row.number - int(header)}" if row.number is not None else ""
        values = f"{row.actual_columns} value{'' if row.actual_columns == 1 else 's'}"
        message = f"record{number} of '{shown_path(path)}' has {values}, not {len(names)}: {row.text[:100]}"
        raise Failed(message, "mend the line, or quote what holds the delimiter", code="E712")
    return table


def _not_utf8(path: str) -> tuple[str, str]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f"line {number} of '{shown_path(path)}' is not UTF-8", "convert the file, for example with iconv"
    return f"'{shown_path(path)}' is not UTF-8", "convert the file, for example with iconv"
