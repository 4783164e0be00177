"""The header of a delimited file: which of its columns are the declared ones, and where its records start."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from clinker_spark.config.model.schema import Column
from clinker_spark.core.diagnostics import Diagnostic
from clinker_spark.core.diagnostics.suggest import did_you_mean
from clinker_spark.core.errors import InputError
from clinker_spark.core.types import Kind
from clinker_spark.spark.scan.csv.dialect import CsvDialect
from clinker_spark.spark.scan.request import ReadRequest, SourceFile
from clinker_spark.spark.scan.text.streams import MARK, TextStream, compression_of, is_utf8

_FIRST_READ = 1 << 16
_LONGEST = 16 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class CsvFile:
    """A file whose header is known."""

    path: str
    name: str
    compression: str
    encoding: str
    width: int
    """The cells of a record."""
    places: tuple[int | None, ...]
    """Where each declared column stands, None for one that the file does not have."""
    undeclared: tuple[tuple[str, int], ...]
    """Names and places of the columns that are not declared, when they are carried along."""
    body: int
    """The first byte after the header, for files that can be read from any byte."""
    has_header: bool = True
    blank: bool = False
    """There is no record in it."""
    header: str = ""
    """The line with the names."""

    @property
    def seekable(self) -> bool:
        """Can the file be read from any byte? Only if its bytes are parsed as they are."""
        return self.compression == "none" and is_utf8(self.encoding)


def dialect_of(options: Any) -> CsvDialect:
    return CsvDialect(options.delimiter, options.quote_char, options.max_field_bytes, options.max_field_lines)


def read_headers(request: ReadRequest) -> tuple[CsvFile, ...]:
    """Every file with its header matched to the declared columns; all that is wrong with them is told at once."""
    held = [column for column in request.columns if not column.multiple]  # those are JSON arrays
    problems = [_unusable_type(column) for column in held if column.data_type.kind in (Kind.ARRAY, Kind.MAP)]
    if problems:
        raise InputError(problems)
    dialect = dialect_of(request.options)
    found: list[CsvFile] = []
    for file in request.files:
        try:
            found.append(read_header(file, request, dialect))
        except InputError as error:
            problems.extend(error.diagnostics)
    if request.options.has_header and found and not problems and all(not file.width for file in found):
        message = f"'{found[0].name}' and {len(found) - 1} other file(s) have no header line: all of them are empty"
        problems.append(Diagnostic("E228", message, help="write the names of the columns into one of them at least"))
    if problems:
        raise InputError(problems)
    return tuple(found)


def _unusable_type(column: Column) -> Diagnostic:
    message = f"column '{column.name}' is declared as {column.type}, which a CSV file cannot hold"
    return Diagnostic("E226", message, help="declare it as string, and take it apart in a transform")


def read_header(file: SourceFile, request: ReadRequest, dialect: CsvDialect) -> CsvFile:
    compression = compression_of(file.origin, request.conventions.compression)
    encoding = request.options.encoding
    try:
        header, body, empty = _first_record(file, compression, encoding, dialect, request.options.has_header)
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        reason = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
        raise InputError([unreadable(file.name, reason)]) from None
    if not request.options.has_header:
        count = len(request.columns)
        start = 3 if _starts_with_bom(file.path, compression) else 0
        places = tuple(range(count))
        return CsvFile(file.path, file.name, compression, encoding, count, places, (), start, False, header is None)
    if header is None and len(request.files) > 1:
        return CsvFile(file.path, file.name, compression, encoding, 0, (), (), body, blank=True)
    if header is None:
        message = f"'{file.name}' has no header line: the file is {'empty' if empty else 'blank'}"
        raise InputError([Diagnostic("E228", message, help="write the names of the columns, or set has_header: false")])
    names = dialect.cells(header)
    problems = list(_header_problems(file.name, names, request, header))
    if problems:
        raise InputError(problems)
    at = {name: i for i, name in enumerate(names)}
    found = tuple(at.get(file_name(column)) for column in request.columns)
    declared = {place for place in found if place is not None}
    carried = request.conventions.on_unmapped == "auto_widen"
    undeclared = tuple((name, i) for i, name in enumerate(names) if i not in declared) if carried else ()
    return CsvFile(file.path, file.name, compression, encoding, len(names), found, undeclared, body, header=header)


def file_name(column: Column) -> str:
    """What the header calls a column."""
    return column.source_name or column.name


def unreadable(name: str, reason: str) -> Diagnostic:
    message = f"cannot read '{name}': {reason}"
    return Diagnostic("E229", message, help="check the path, its permissions and the compression")


def _header_problems(name: str, names: Sequence[str], request: ReadRequest, header: str) -> list[Diagnostic]:
    found = []
    if MARK in header:
        message = f"the header of '{name}' is not {request.options.encoding}"
        found.append(Diagnostic("E228", message, help="set options.encoding to the encoding of the file"))
    for repeated in dict.fromkeys(n for i, n in enumerate(names) if n in names[:i]):
        message = f"the header of '{name}' has '{repeated}' twice"
        found.append(Diagnostic("E228", message, help="every column needs a name of its own: rename one in the file"))
    declared = {file_name(column) for column in request.columns}
    free = [n for n in names if n not in declared]
    for column in request.columns:
        if file_name(column) not in names and not column.data_type.nullable:
            help_text = did_you_mean(file_name(column), free) or f"the header has {', '.join(names)}"
            message = f"'{name}' has no column '{file_name(column)}'"
            found.append(Diagnostic("E228", message, help=help_text))
    if request.conventions.on_unmapped == "reject":
        for extra in dict.fromkeys(free):
            close = did_you_mean(extra, declared - set(names))
            help_text = close or "declare it, or set on_unmapped.mode to drop or auto_widen"
            message = f"'{name}' has the column '{extra}', which the schema does not declare"
            found.append(Diagnostic("E228", message, help=help_text))
    return found


def _starts_with_bom(path: str, compression: str) -> bool:
    if compression != "none":
        return False
    with open(path, "rb") as file:
        return file.read(3) == _BOM


def _first_record(
    file: SourceFile, compression: str, encoding: str, dialect: CsvDialect, is_header: bool
) -> tuple[str | None, int, bool]:
    """The first line that is not blank (None if there is none), the byte after it, and whether the file is empty."""
    size = _FIRST_READ
    while True:
        with TextStream(file.path, compression, encoding, file.name) as stream:
            data = stream.read(size)
        start = 3 if data.startswith(_BOM) else 0
        while data[start : start + 1] in (b"\n", b"\r"):
            start += 1
        complete = len(data) < size or size >= _LONGEST
        end, closed = dialect.record_end(data, start, complete=complete)
        if not closed and is_header:
            number = data.count(b"\n", 0, end - 1) + 1
            help_text = "close the quote in the file, or set options.quote_char"
            message = f"the header of '{file.name}' has a quote that is opened in line {number} and not closed"
            raise InputError([Diagnostic("E453", message, help=help_text)])
        if end >= 0 or complete:
            end = len(data) if end < 0 else end
            line = data[start:end].decode("utf-8").rstrip("\r\n")
            return line or None, end, not data
        size *= 8
