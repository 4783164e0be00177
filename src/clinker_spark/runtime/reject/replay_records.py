"""Dead letters as records of files again: one writer for each format that sources read.

Whoever corrects a letter edits its cells, or its line. Edited cells win over the line they were read of, an edited
line over its cells; where both were edited they must say the same.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from clinker_spark.config.model.schema import layout
from clinker_spark.config.model.sources.record_kinds import RECORD_TYPE
from clinker_spark.core.types import STRING, Kind, Type
from clinker_spark.plan.nodes.source import SourcePlan
from clinker_spark.runtime.reject.letter_files import Letter
from clinker_spark.runtime.reject.replay import as_json
from clinker_spark.spark.scan.csv.header import dialect_of, file_name
from clinker_spark.spark.scan.csv.pieces import Piece, find_values
from clinker_spark.spark.scan.fixed.rows import SEPARATORS
from clinker_spark.spark.scan.json.values import json_cell, lookup, undeclared
from clinker_spark.spark.scan.kinds.source import kind_reader
from clinker_spark.spark.scan.request import Conventions, ReadRequest, SourceFile
from clinker_spark.spark.scan.text.readers import read_bool, read_decimal, read_float, read_int
from clinker_spark.spark.scan.text.streams import is_utf8, single_bytes

_LONGEST_OPEN = 1 << 20
_SAID = ("id", "source_row", "error_category", "triggering_value", "error_detail")
_TEXTS = (Kind.STRING, Kind.DATE, Kind.DATETIME)


@dataclass(frozen=True)
class Fed:
    """A record that is fed, and what its letters say, by their stage."""

    letters: dict[str, dict[str, str]]

    @classmethod
    def of(cls, letter: Letter) -> Fed:
        found = cls({})
        found.add(letter)
        return found

    def add(self, letter: Letter) -> None:
        """One more letter of the record."""
        said = {name: letter.engine[name] for name in _SAID if name in letter.engine}
        self.letters.setdefault(letter.engine["stage"], said)

    @property
    def ids(self) -> set[str]:
        return {known["id"] for known in self.letters.values() if known.get("id")}

    @property
    def row(self) -> str:
        """Its row in the file that the letters name."""
        return next(iter(self.letters.values())).get("source_row", "")

    def letter(self, stage: str) -> dict[str, str]:
        """What the letter of a stage said; of another stage, only who it is."""
        first = next(iter(self.letters.values()))
        return self.letters.get(stage) or {name: first.get(name, "") for name in ("id", "source_row")}


class Writer:
    """Writes the records of one input file. Formats say how a line and how cells become bytes, and when a record must
    be the last one of a file: what follows a broken record could mend it."""

    suffix = ""
    separator = b"\n"

    def __init__(self, node: SourcePlan, path: Path) -> None:
        self.node = node
        self.columns = node.columns
        self.parts: list[tuple[Path, list[Fed]]] = []
        self._path = path
        self._file: BinaryIO | None = None

    def begin(self) -> bytes:
        """What every file begins with."""
        return b""

    def add(self, letter: Letter, fed: Fed) -> None:
        cells_edited, line_edited = letter.edited
        line = letter.line
        if line is not None and cells_edited and line_edited and not self._same(line, letter.record):
            raise ValueError("its cells and its line were edited, and say different things")
        count = 1
        if line is None or (cells_edited and not line_edited):
            line = self.of_cells(letter, line)
        else:
            count = self.records_of(line) if line_edited else 1
            line = self.of_line(line)
        if self.must_begin(line) and self._file is not None:
            self._file.close()
            self._file = None
        if self._file is None:
            path = self._path.with_name(f"{self._path.name}-{len(self.parts)}{self.suffix}")
            self.parts.append((path, []))
            self._file = open(path, "wb")  # noqa: SIM115 - closed by done() or before the next one
            self._file.write(self.begin())
        self._file.write(line + self.separator)
        self.parts[-1][1].extend([fed] * count)

    def must_begin(self, line: bytes) -> bool:
        """Must this record not follow the one before?"""
        return False

    def of_line(self, line: bytes) -> bytes:
        return line

    def _same(self, line: bytes, record: dict[str, str]) -> bool:
        cells = self.cells_of(line)
        return all((cells.get(column.name) or "") == record.get(column.name, "") for column in self.columns)

    def done(self, name: str) -> list[tuple[SourceFile, list[Fed]]]:
        if self._file is not None:
            self._file.close()
        return [(SourceFile(str(path), name, path.stat().st_size), fed) for path, fed in self.parts]

    def of_cells(self, letter: Letter, line: bytes | None) -> bytes:
        raise NotImplementedError

    def cells_of(self, line: bytes) -> dict[str, str | None]:
        raise NotImplementedError

    def records_of(self, line: bytes) -> int:
        """How many records an edited line has."""
        raise NotImplementedError


class CsvWriter(Writer):
    """Delimited text as the source writes it, with the header of the letters' file."""

    suffix = ".csv"

    def __init__(self, node: SourcePlan, header: str, path: Path) -> None:
        super().__init__(node, path)
        self.options = node.config.options
        self.dialect = dialect_of(self.options)
        self.by_name = {file_name(column): column.name for column in self.columns}
        self.names = self.dialect.cells(header) if header and self.options.has_header else list(self.by_name)
        self.header = (header or self._joined(self.names)) if self.options.has_header else None
        self.separator = self._encoded("\n")
        self._open = b""

    def begin(self) -> bytes:
        mark = codecs.BOM_UTF16_LE if self.options.encoding == "utf-16" else b""
        return mark if self.header is None else mark + self._encoded(self.header) + self.separator

    def of_line(self, line: bytes) -> bytes:
        return line if self._as_bytes else self._encoded(line.decode())

    @property
    def _as_bytes(self) -> bool:
        """Are lines kept as bytes? Those of encodings with several bytes are kept as text."""
        return is_utf8(self.options.encoding) or single_bytes(self.options.encoding)

    def must_begin(self, line: bytes) -> bool:
        """An unclosed quote must not be closed by a later letter that happens to follow it here."""
        own = line if self._as_bytes else line.decode(self._codec).encode()
        closes = False
        if self._open:
            seen = self._open + own + b"\n"
            first = next(self.dialect.quoted(seen, complete=False), None)
            closes = first is not None and first[2]
            self._open = seen if first is None and len(seen) < _LONGEST_OPEN else b""
            closes = closes or (first is None and not self._open)
        if not self._open:
            values = find_values(own, self.dialect)
            open_quotes = [opening for opening, _, closed in values or () if not closed]
            self._open = own[open_quotes[-1] :] + b"\n" if open_quotes else b""
        return closes

    @property
    def _codec(self) -> str:
        # A mark of the byte order belongs at the beginning of a file only.
        return {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(self.options.encoding, self.options.encoding)

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode(self._codec)
        except UnicodeEncodeError:
            raise ValueError(f"it has characters that {self.options.encoding} cannot write") from None

    def _joined(self, cells: list[str]) -> str:
        out = io.StringIO()
        csv.writer(
            out, delimiter=self.options.delimiter, quotechar=self.options.quote_char, lineterminator=""
        ).writerow(cells)
        return out.getvalue()

    def of_cells(self, letter: Letter, line: bytes | None) -> bytes:
        # Undeclared columns are not among the cells: they keep what the line has.
        before = self._cells(line) if line is not None else []
        cells = []
        for i, name in enumerate(self.names):
            column = self.by_name.get(name)
            kept = before[i] if i < len(before) else ""
            cells.append(kept if column is None else letter.record.get(column, ""))
        return self._encoded(self._joined(cells))

    def _cells(self, line: bytes) -> list[str]:
        return self.dialect.cells(line.decode(self.options.encoding if self._as_bytes else "utf-8", "replace"))

    def cells_of(self, line: bytes) -> dict[str, str | None]:
        cells = self._cells(line)
        return {self.by_name[name]: cell for name, cell in zip(self.names, cells, strict=False) if name in self.by_name}

    def records_of(self, line: bytes) -> int:
        return len(Piece(line, self.dialect, "utf-8", find_values(line, self.dialect), int).records)


class JsonWriter(Writer):
    """One object per line."""

    suffix = ".ndjson"

    def of_line(self, line: bytes) -> bytes:
        # An element of an array can span lines: between values, blanks do as well.
        return line.replace(b"\r", b" ").replace(b"\n", b" ")

    def records_of(self, line: bytes) -> int:
        return 1

    def of_cells(self, letter: Letter, line: bytes | None) -> bytes:
        own = self.node.config.type == "json"
        names = {column.name: file_name(column) if own else column.name for column in self.columns}
        found: dict[str, str] = {}
        if line is not None and isinstance(before := _parsed(line), dict):
            others = undeclared(before, frozenset(names.values()))
            found = {name: json.dumps(value, ensure_ascii=False) for name, value in others.items()}
        missing = letter.engine.get("triggering_field") if _is_missing(letter) else None
        for column in self.columns:
            text, t = letter.record.get(column.name, ""), column.data_type
            there = t.kind is Kind.STRING and not t.nullable and column.name != missing and not own
            if text != "" or there:
                found[names[column.name]] = _json_cell(text, t.kind) if own else _value(text, t, _is_repeated(letter))
        return ("{" + ",".join(f"{json.dumps(name)}:{cell}" for name, cell in found.items()) + "}").encode()

    def cells_of(self, line: bytes) -> dict[str, str | None]:
        found = _parsed(line)
        record = found if isinstance(found, dict) else {}
        return {column.name: json_cell(lookup(record, file_name(column))) for column in self.columns}


def _is_repeated(letter: Letter) -> bool:
    """Has an XML record an element several times that its column can hold once? Then it has it so again."""
    return letter.engine.get("error_category") == "structural_validation" and not letter.edited[0]


def _value(text: str, t: Type, repeated: bool) -> str:
    """A cell of XML or Parquet as JSON: a value of its type if it can be read as one, else a text."""
    if t.kind is Kind.ARRAY and isinstance(_parsed(text.encode()), list):
        return text
    if t.kind is Kind.ARRAY or (repeated and "; " in text):
        element = (t.element or STRING) if t.kind is Kind.ARRAY else t
        return "[" + ",".join(_value(part, element, False) for part in text.split("; ")) + "]"
    found: Any = None
    if t.kind is Kind.INT:
        found = read_int(text)
    elif t.kind is Kind.FLOAT:
        found = read_float(text)
    elif t.kind is Kind.BOOL:
        found = read_bool(text)
    elif t.kind is Kind.DECIMAL:
        known = read_decimal(text, None, None)
        return json.dumps(text) if known is None else format(known, "f")
    if found is not None:
        return json.dumps(found)
    return _json_cell(text, t.kind if t.kind in (Kind.MAP, Kind.ANY) else Kind.STRING)


def _is_missing(letter: Letter) -> bool:
    return letter.engine.get("error_category") == "missing_required_field" and not letter.edited[0]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _json_cell(text: str, kind: Kind) -> str:
    """A cell as JSON: as it is where it is JSON of the right kind, else as a text."""
    if kind not in _TEXTS:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            return text
    return json.dumps(text, ensure_ascii=False)


class FixedWriter(Writer):
    """Columns at fixed bytes."""

    suffix = ".txt"

    def __init__(self, node: SourcePlan, path: Path) -> None:
        super().__init__(node, path)
        self.places = layout(self.columns)
        self.width = max(end for _, end in self.places)
        self.encoding = node.config.options.encoding
        self.separator = SEPARATORS[node.config.options.line_separator]
        self._short = False

    def must_begin(self, line: bytes) -> bool:
        """Without line ends only the last record of a file can have another length."""
        before, self._short = self._short, not self.separator and len(line) % self.width != 0
        return before

    def of_cells(self, letter: Letter, line: bytes | None) -> bytes:
        out = bytearray(line if line is not None and len(line) == self.width else b" " * self.width)
        for column, (start, end) in zip(self.columns, self.places, strict=True):
            try:
                cell = letter.record.get(column.name, "").encode(self.encoding)
            except UnicodeEncodeError:
                raise ValueError(f"'{column.name}' has characters that {self.encoding} cannot write") from None
            if len(cell) > end - start:
                raise ValueError(f"'{column.name}' has {len(cell)} bytes, and there is room for {end - start}")
            pad = (column.pad or " ").encode()
            right = column.justify == "right" or (
                column.justify is None and column.data_type.kind in (Kind.INT, Kind.FLOAT, Kind.DECIMAL)
            )
            if not cell:
                pad = b" "
            out[start:end] = cell.rjust(end - start, pad) if right else cell.ljust(end - start, pad)
        return bytes(out)

    def cells_of(self, line: bytes) -> dict[str, str | None]:
        return {
            column.name: line[start:end].decode(self.encoding, "replace")
            for column, (start, end) in zip(self.columns, self.places, strict=True)
        }

    def records_of(self, line: bytes) -> int:
        return sum(map(bool, line.split(self.separator))) if self.separator else -(-len(line) // self.width)


class KindsWriter(Writer):
    """Lines of several kinds. Those that are no records, a trailer for instance, are not fed."""

    suffix = ".txt"

    def __init__(self, node: SourcePlan, path: Path) -> None:
        super().__init__(node, path)
        assert node.kinds is not None
        self.planned = node.kinds
        conventions = Conventions(kinds=node.kinds)
        self.reader = kind_reader(ReadRequest(node.name, (), node.columns, node.config.options, conventions))
        self.separator = self.reader.separator
        self.writers: dict[str, Writer] = {}
        for kind in node.kinds.spec.records:
            own = replace(node, columns=kind.columns, kinds=None)
            self.writers[kind.id] = writer_of(own, "", path)

    def add(self, letter: Letter, fed: Fed) -> None:
        line = letter.line
        if line is not None and self._kind(line) in self.planned.left_out:
            return
        super().add(letter, fed)

    def _kind(self, line: bytes) -> str | None:
        return self.reader.kind_of(line)

    def of_cells(self, letter: Letter, line: bytes | None) -> bytes:
        name = letter.record.get(RECORD_TYPE, "") or (None if line is None else self._kind(line))
        if name not in self.writers:
            raise ValueError(f"'{RECORD_TYPE}' says no kind of record; the kinds are {', '.join(self.writers)}")
        [tag] = [kind.tag for kind in self.planned.spec.records if kind.id == name]
        told = replace(letter, record={**letter.record, RECORD_TYPE: tag})  # if that is the cell which says the kind
        made = self.writers[name].of_cells(told, line)
        return self.reader.with_tag(made, name)

    def cells_of(self, line: bytes) -> dict[str, str | None]:
        name = self._kind(line)
        return {} if name is None else {**self.writers[name].cells_of(line), RECORD_TYPE: name}

    def records_of(self, line: bytes) -> int:
        lines = [part for part in line.split(self.separator) if part.strip()]
        return sum(self._kind(part) not in self.planned.left_out for part in lines)


def writer_of(node: SourcePlan, header: str, path: Path) -> Writer:
    if node.kinds is not None:
        return KindsWriter(node, path)
    if node.config.type == "fixed_width":
        return FixedWriter(node, path)
    return JsonWriter(node, path) if as_json(node) else CsvWriter(node, header, path)
