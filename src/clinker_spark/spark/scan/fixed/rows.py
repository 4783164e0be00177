"""Fixed-width records: bytes cut at the places of the schema, a whole column at a time.

Lines of the right length are laid out as a table of bytes; a column is a slice of it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.config.model.schema import Column, layout
from clinker_spark.core.types import Kind
from clinker_spark.spark.scan.record_batches import Error, Rows, structural
from clinker_spark.spark.scan.record_plan import BOM, PIECE, RecordFile, RecordPlan, RecordSplit, line_pieces
from clinker_spark.spark.scan.request import Conventions
from clinker_spark.spark.scan.text.values import TextColumn

SEPARATORS = {"lf": b"\n", "crlf": b"\r\n", "none": b""}
_NUMBERS = (Kind.INT, Kind.FLOAT, Kind.DECIMAL)
_COMPACT = {Kind.DATE: "%Y%m%d", Kind.DATETIME: "%Y%m%d%H%M%S"}


@dataclass(frozen=True)
class FixedColumn:
    """A column at bytes `start` to `end`."""

    text: TextColumn
    start: int
    end: int
    pad: str
    right: bool
    trim: bool

    @classmethod
    def of(cls, column: Column, place: tuple[int, int], conventions: Conventions) -> FixedColumn:
        cleaning = conventions.cleaning
        if column.trim is False:  # what the column says of itself counts
            cleaning = replace(cleaning, trim=False)
        text = TextColumn.of(column, conventions.date_formats, cleaning)
        kind = text.type.kind
        if kind in _COMPACT and not text.only_formats:
            # What a fixed-width output writes for a date; the place for dashes is saved there.
            text = replace(text, formats=(*text.formats, _COMPACT[kind]))
        right = column.justify == "right" if column.justify else kind in _NUMBERS
        return cls(text, *place, column.pad or " ", right, column.trim is not False)

    def trimmed(self, text: pa.Array) -> pa.Array:
        """The text without the padding. Zeros before a number are part of it: they are read, and 000 is no gap."""
        if not self.trim:
            return text
        if not (self.pad == "0" and self.text.type.kind in _NUMBERS):
            strip = pc.utf8_ltrim if self.right else pc.utf8_rtrim
            text = strip(text, characters=self.pad)
        if self.text.checked and self.pad != " ":
            # Outputs leave a field without a value blank, whatever the padding.
            blank = pc.equal(pc.binary_length(pc.utf8_trim(text, characters=" ")), 0)
            text = pc.if_else(blank, pa.scalar("", pa.string()), text)
        return text


@dataclass(frozen=True)
class FixedReader:
    """Parses the splits of a plan."""

    columns: tuple[FixedColumn, ...]
    width: int
    separator: bytes
    encoding: str
    piece: int = PIECE

    @classmethod
    def of(cls, columns: Sequence[Column], options: Any, conventions: Conventions, piece: int) -> FixedReader:
        places = layout(columns)
        found = [FixedColumn.of(column, place, conventions) for column, place in zip(columns, places, strict=True)]
        separator = SEPARATORS[options.line_separator]
        width = max(end for _, end in places)
        return cls(tuple(found), width, separator, options.encoding, piece)

    def rows(self, plan: RecordPlan, split: RecordSplit) -> Iterator[Rows]:
        for lines in self._lines(plan.files[split.file], split):
            if lines:
                yield self.records(plan, lines)

    def count(self, file: RecordFile, split: RecordSplit) -> int:
        return sum(map(len, self._lines(file, split)))

    def _lines(self, file: RecordFile, split: RecordSplit) -> Iterator[list[bytes]]:
        """The records of a split, some thousand at a time; wholly empty lines are none."""
        first = not split.start
        if self.separator:
            for data in line_pieces(file, split, self.separator, self.piece):
                data, first = (data.removeprefix(BOM) if first else data), False
                yield [line for line in data.split(self.separator) if line]
            return
        with file.open() as opened:
            if split.start:
                opened.seek(split.start)
            left = None if split.end is None else split.end - split.start
            step = max(self.piece // self.width, 1) * self.width
            held = b""
            while data := opened.read(step if left is None else min(step, left)):
                left = None if left is None else left - len(data)
                data, first = held + (bytes(data).removeprefix(BOM) if first else bytes(data)), False
                whole = len(data) // self.width * self.width
                held = data[whole:]
                yield [data[i : i + self.width] for i in range(0, whole, self.width)]
            # Editors end every file with a line end; anything else is the beginning of a record.
            if held.strip(b"\r\n\x1a"):
                yield [held]

    def records(self, plan: RecordPlan, lines: list[bytes]) -> Rows:
        """The records of lines. What stands behind the last column is not looked at, as what stands between two."""
        rows = Rows(len(lines))
        filled = lines
        if set(map(len, lines)) != {self.width}:
            for row, line in enumerate(lines):
                if len(line) < self.width:
                    rows.errors[row] = self._too_short(line)
            blank = b" " * self.width
            filled = [blank if row in rows.errors else line[: self.width] for row, line in enumerate(lines)]
        wrong = frozenset(rows.errors)
        table = np.frombuffer(b"".join(filled), dtype=np.uint8).reshape(len(lines), self.width)
        wanted = {name for name, _ in plan.fields}
        gone = pa.array(np.isin(np.arange(len(lines)), list(wrong))) if wrong else None
        for column in self.columns:
            name = column.text.name
            raw = self._texts(table[:, column.start : column.end], name, rows.errors)
            if gone is not None:
                raw = pc.if_else(gone, pa.scalar(None, pa.string()), raw)
                raw = self._with_parts(raw, lines, wrong, column, whole=True)
            values = self._values(column, raw, rows.errors)
            if name in wanted:
                rows.values[name] = values
            if plan.record:
                rows.texts[name] = raw if gone is None else self._with_parts(raw, lines, wrong, column)
        rows.lines = lines if plan.record else None
        return rows

    def _values(self, column: FixedColumn, raw: pa.Array, errors: dict[int, Error]) -> pa.Array:
        text = column.trimmed(raw)
        typed = column.text.convert(text)
        if typed.failed is not None:
            for row in np.flatnonzero(typed.failed.to_numpy(zero_copy_only=False)).tolist():
                errors.setdefault(row, column.text.error(text[row].as_py()))
        return typed.values

    def _texts(self, table: np.ndarray, name: str, errors: dict[int, Error]) -> pa.Array:
        """The column as text, null where its bytes are not in the file's encoding."""
        data = table.tobytes()
        count, width = table.shape
        if data.isascii():
            offsets = np.arange(0, count * width + 1, width, dtype=np.int32)
            return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))
        decode = codecs.getdecoder(self.encoding)
        texts: list[str | None] = []
        for row in range(count):
            cell = data[row * width : (row + 1) * width]
            try:
                texts.append(decode(cell)[0])
            except UnicodeDecodeError:
                texts.append(None)
                value = cell.decode(self.encoding, "replace")
                errors.setdefault(row, structural(f"the value is not {self.encoding}", value, name))
        return pa.array(texts, pa.string())

    def _with_parts(
        self, raw: pa.Array, lines: list[bytes], wrong: frozenset[int], column: FixedColumn, *, whole: bool = False
    ) -> pa.Array:
        """Of lines that are too short, what stands at the place of the column; or, `whole`, only what is all there:
        the key of a broken record may be."""
        texts = raw.to_pylist()
        for row in wrong:
            part = lines[row][column.start : column.end]
            text = part.decode(self.encoding, "replace") or None
            complete = len(part) == column.end - column.start and text is not None and "\ufffd" not in text
            texts[row] = text if complete or not whole else None
        return pa.array(texts, pa.string())

    def _too_short(self, line: bytes) -> Error:
        what = "line" if self.separator else "last record"
        message = f"the {what} has {len(line)} bytes, the schema has {self.width}"
        return structural(message, line.decode(self.encoding, "replace"))


def is_single_byte(encoding: str) -> bool:
    """Is every byte one character?"""
    return len(bytes(range(256)).decode(encoding, "replace")) == 256 and codecs.lookup(encoding).name != "ascii"
