"""The fields of JSON files that the schema does not declare. They must be known before the job that reads them.

That takes one more pass over all files, unless the job may begin with a guess and look itself (`names_at_a_glance`).
Where the lines of ndjson are alike, only what is no value is compared; of others Arrow makes it, on all cores and at a
fraction of the cost of the run; of documents, and of lines that Arrow does not understand, Python does. `on_unmapped:
drop` needs no pass.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from clinker_spark.core.fast_paths import taken
from clinker_spark.spark.scan.json.alike import first_line, is_text, layout_of, read_alike
from clinker_spark.spark.scan.json.documents import decoder, records
from clinker_spark.spark.scan.json.lines import lines_of, parse_lines
from clinker_spark.spark.scan.json.values import undeclared
from clinker_spark.spark.scan.record_plan import BOM, RecordFile, RecordSplit, line_pieces
from clinker_spark.spark.scan.text.rows_of_values import ValueRows, json_rows

_PIECE = 4 << 20
READ_WHOLE = 4 << 20
"""Files of up to so many bytes are looked at from the first to the last record, whoever would be content with less."""
_BEGINNING, _SAMPLE = 1 << 20, 64 << 10
_SAMPLES = 8


class Names:
    """Undeclared names in order of appearance, each with whether it ever had a value."""

    def __init__(self, declared: frozenset[str]) -> None:
        self._declared = declared
        self._found: dict[str, bool] = {}

    def add(self, record: dict[str, Any]) -> None:
        for name, value in undeclared(record, self._declared).items():
            if not self._found.get(name):
                self._found[name] = value is not None

    def add_fields(self, fields: Iterable[pa.Field], prefix: str = "") -> None:
        for field in fields:
            name = prefix + field.name
            if name in self._declared:
                continue
            if pa.types.is_struct(field.type):
                self.add_fields([field.type.field(i) for i in range(field.type.num_fields)], name + ".")
            elif not self._found.get(name):
                self._found[name] = not pa.types.is_null(field.type)

    @property
    def seen(self) -> frozenset[str]:
        """All names that appeared."""
        return frozenset(self._found)

    @property
    def all_are_columns(self) -> bool:
        """Does none of them stand for an object that is null everywhere so far?"""
        return len(self.found) == len(self._found)

    @property
    def found(self) -> tuple[str, ...]:
        # A null says nothing about a field that is an object elsewhere: then its inner fields are the columns.
        prefixes = {name[:i] for name in self._found for i, char in enumerate(name) if char == "."}
        return tuple(name for name, filled in self._found.items() if filled or name not in prefixes)


def names_of_lines(file: RecordFile, names: Names, splits: Sequence[ValueRows] = ()) -> None:
    """The names of an ndjson file; with `splits`, of what its records become."""
    pieces = (data.removeprefix(BOM) for data in line_pieces(file, RecordSplit(0), b"\n", _PIECE))
    if splits or not taken("whole_pieces"):
        for data in pieces:
            _add_names_one_by_one(data, names, splits)
        return
    at_once = min(4, os.cpu_count() or 1)
    with ThreadPoolExecutor(at_once) as pool:
        while some := list(islice(pieces, at_once)):
            for data, alike in zip(some, pool.map(_names_if_alike, some), strict=True):
                _add_names(data, alike, names)


def names_at_a_glance(file: RecordFile, names: Names) -> frozenset[str] | None:
    """The names at the beginning of an ndjson file, which is as far as they are in order; None if other places have
    others, so that the whole file has to be looked at."""
    first = next(iter(line_pieces(file, RecordSplit(0), b"\n", _BEGINNING)), b"").removeprefix(BOM)
    _add_names(first, _names_if_alike(first), names)
    if not names.all_are_columns:
        return None
    known = names.seen
    for i in range(1, _SAMPLES + 1) if file.seekable else ():
        data = _sample(file, file.size * i // _SAMPLES)
        _add_names(data, _names_if_alike(data), names)
        if names.seen != known:
            return None
    return known


def _sample(file: RecordFile, at: int) -> bytes:
    """Whole lines before a place of a file."""
    start = max(at - _SAMPLE, 0)
    with file.open() as opened:
        opened.seek(start)
        data = opened.read(at - start)
    return data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1]


def _names_if_alike(data: bytes) -> dict[str, Any] | None:
    """The names of a piece whose lines differ only in their values, and all have some."""
    layout = layout_of(first_line(data)) if is_text(data) else None
    if layout is None or layout.nulls or read_alike(data, layout, ()) is None:
        return None
    return dict.fromkeys(layout.slots, True)


def _add_names(data: bytes, alike: dict[str, Any] | None, names: Names) -> None:
    if alike is not None:
        names.add(alike)
        return
    try:
        names.add_fields(pajson.read_json(pa.BufferReader(data)).schema)
    except (pa.ArrowException, UnicodeDecodeError):
        # A line that is not JSON, a field of two types, a field twice: nothing that ends a run.
        _add_names_one_by_one(data, names, ())


def _add_names_one_by_one(data: bytes, names: Names, splits: Sequence[ValueRows]) -> None:
    for record in parse_lines(lines_of(data), decoder(exact=False))[0]:
        for row in json_rows(record, splits):
            names.add(row)


def names_of_document(
    file: RecordFile, shape: str, path: tuple[str, ...], names: Names, splits: Sequence[ValueRows] = ()
) -> int:
    """The names of an array or object, and how many records there are."""
    count = 0
    for value, _, _ in records(file, shape, path, exact=False):
        rows = json_rows(value, splits) if type(value) is dict else []
        count += len(rows) if type(value) is dict else 1
        for row in rows:
            names.add(row)
    return count
