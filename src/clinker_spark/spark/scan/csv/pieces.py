"""Delimited text in pieces of whole records, and the lines in which the records stand.

A piece is what a task parses at once: the bytes of a split, or a few megabytes of a stream. Pieces end where records
end, so that each can be parsed on its own, and quotes that nobody closed are found before the parser sees them: it
would take everything behind such a quote for one value.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clinker_spark.spark.scan import meter
from clinker_spark.spark.scan.csv.dialect import CsvDialect
from clinker_spark.spark.scan.csv.header import CsvFile
from clinker_spark.spark.scan.csv.plan import CsvPlan, CsvSplit
from clinker_spark.spark.scan.lines import line_text
from clinker_spark.spark.scan.text.streams import (
    MARK,
    TextStream,
    is_utf8,
    open_binary,
    single_bytes,
    utf8_with_marks,
)

STREAM_PIECE = 8 << 20
_BLOCK = 8 << 20
_MOST = (1 << 31) - 1
_BOM = b"\xef\xbb\xbf"
_NEWLINE, _RETURN = 10, 13
_STAND_IN = uuid.uuid4().hex
"""Begins the line that the parser sees in place of a record with an unclosed quote. No file knows it."""
Values = Sequence[tuple[int, int, bool]]
"""Quoted values: from, to, is it closed?"""


@dataclass(frozen=True)
class Unclosed:
    """A record with a quote that nobody closed: its bytes in the piece, and the line of the quote in the file."""

    start: int
    end: int
    line: int


class Piece:
    """Bytes of whole records, as they stand in the file.

    `values` are the quoted values, None when all quotes are known to be closed: then counting them tells where they
    are. `lines_before` counts the lines of the file before the piece."""

    def __init__(
        self, raw: bytes, dialect: CsvDialect, encoding: str, values: Values | None, lines_before: Callable[[], int]
    ) -> None:
        self.raw = raw
        self.dialect = dialect
        self.encoding = encoding
        self.values = values
        self._lines_before = lines_before
        self.places = {0: 0}
        """Where some records begin, as far as somebody who passed over them has noted it."""

    @cached_property
    def records(self) -> np.ndarray:
        """Where each record starts. It goes on to the start of the next one, blank lines included."""
        return _record_starts(self.raw, self.dialect, self.values)

    @cached_property
    def unclosed(self) -> tuple[Unclosed, ...]:
        openings = [opening for opening, _, closed in self.values or () if not closed]
        if not openings:
            return ()
        before = self._lines_before()
        found: list[Unclosed] = []
        counted = 0
        for opening in openings:
            before += _count_lines(self.raw, counted, opening)
            counted = opening
            record = int(np.searchsorted(self.records, opening, "right")) - 1
            found.append(Unclosed(*self._bounds(record), before + 1))
        return tuple(found)

    def text(self, width: int) -> bytes:
        """What the parser gets: UTF-8, and for each record with an unclosed quote a line with too many cells."""
        raw = self.raw
        if self.unclosed:
            parts, at = [], 0
            for i, what in enumerate(self.unclosed):
                stand_in = f"{_STAND_IN}{i}{self.dialect.delimiter * width}\n".encode()
                parts += [raw[at : what.start], stand_in]
                at = what.end
            raw = b"".join([*parts, raw[at:]])
        return utf8_with_marks(raw, self.encoding)

    def stands_for(self, text: str) -> Unclosed | None:
        """The record whose place in the parser's text this line took."""
        if not text.startswith(_STAND_IN):
            return None
        return self.unclosed[int(text[len(_STAND_IN) :].rstrip(self.dialect.delimiter))]

    def unclosed_text(self, what: Unclosed) -> str:
        line = self.raw[what.start : what.end].rstrip(b"\r\n")
        return utf8_with_marks(line, self.encoding).decode("utf-8")

    def _bounds(self, record: int) -> tuple[int, int]:
        end = self.records[record + 1] if record + 1 < len(self.records) else len(self.raw)
        return int(self.records[record]), int(end)

    @cached_property
    def _as_text(self) -> pa.StringArray | None:
        """All records with their line ends, over the bytes as they are; None where these are no text."""
        if b"\0" in self.raw:
            return None
        if not self.raw.isascii():
            if MARK.encode() in self.raw:
                return None
            try:
                self.raw.decode()
            except UnicodeDecodeError:
                return None
        offsets = np.append(self.records, len(self.raw)).astype(np.int32)
        return pa.StringArray.from_buffers(len(self.records), pa.py_buffer(offsets), pa.py_buffer(self.raw))

    @cached_property
    def is_plain(self) -> bool:
        """Are cells just what stands between delimiters and newlines, as UTF-8?"""
        others = (self.dialect.quote.encode(), b'"', b"\r")
        if len(self.raw) > _MOST or not is_utf8(self.encoding) or any(other in self.raw for other in others):
            return False
        return utf8_with_marks(self.raw, self.encoding) is self.raw and not self.raw.startswith(_BOM)

    def place(self, record: int) -> int:
        """Where a record begins."""
        found = self.places.get(record)
        return int(self.records[record]) if found is None else found

    def lines(self, records: np.ndarray) -> pa.Array:
        """The bytes of some records without their line ends, in the form of `source_lines`. Null for a record of which
        the bytes are not known: of encodings with several bytes, those with bytes that could not be decoded."""
        if self._as_text is not None:
            count = len(records)
            # Records are in order: those of a whole block stand side by side, and need not be copied to be trimmed.
            together = count > 0 and records[-1] - records[0] == count - 1
            lines = self._as_text.slice(records[0], count) if together else self._as_text.take(pa.array(records))
            return pc.ascii_rtrim(lines, characters="\r\n")
        mark = MARK.encode()
        texts: list[str | None] = []
        for record in records.tolist():
            start, end = self._bounds(record)
            line = self.raw[start:end].rstrip(b"\r\n")
            texts.append(None if mark in line else line_text(line))
        return pa.array(texts, pa.string())


def _record_starts(raw: bytes, dialect: CsvDialect, values: Values | None) -> np.ndarray:
    content = np.frombuffer(raw, dtype=np.uint8)
    ends = _line_ends(raw, content, dialect, values)
    starts = np.concatenate([[0], ends + 1])
    starts = starts[starts < len(raw)]
    first = content[starts]
    return starts[(first != _NEWLINE) & (first != _RETURN)]


def _line_ends(raw: bytes, content: np.ndarray, dialect: CsvDialect, values: Values | None) -> np.ndarray:
    """The last byte of every line end that is not quoted."""
    ends = np.flatnonzero(content == _NEWLINE)
    if b"\r" in raw:
        returns = np.flatnonzero(content == _RETURN)
        alone = content[np.minimum(returns + 1, len(content) - 1)] != _NEWLINE
        ends = np.sort(np.concatenate([ends, returns[alone]]))
    if values is not None:
        closed = np.array([(start, end) for start, end, closed in values if closed], dtype=np.int64).reshape(-1, 2)
        at = np.searchsorted(closed[:, 0], ends, "right") - 1
        return ends[(at < 0) | (ends >= closed[np.maximum(at, 0), 1])] if len(closed) else ends
    if dialect.quote.encode() not in raw:
        return ends
    quotes = np.flatnonzero(content == ord(dialect.quote))
    return ends[np.searchsorted(quotes, ends) % 2 == 0]


# ---------------------------------------------------------------- pieces of splits


def pieces(plan: CsvPlan, split: CsvSplit) -> Iterator[Piece]:
    """The pieces of a split, in order."""
    file = plan.files[split.file]
    if split.end is None:
        yield from _stream_pieces(file, plan.dialect, STREAM_PIECE)
        return
    with open(file.path, "rb") as opened:
        opened.seek(split.start)
        raw = opened.read(split.end - split.start)
    meter.add(len(raw))
    values = None if split.clean else find_values(raw, plan.dialect)
    yield Piece(raw, plan.dialect, file.encoding, values, lambda: _lines_of_file(file.path, split.start))


def find_values(raw: bytes, dialect: CsvDialect) -> Values | None:
    """The quoted values of whole records; None when a count shows that all quotes are closed."""
    if dialect.quote.encode() not in raw:
        return None
    counted = dialect.count_quotes(raw, _NEWLINE, _NEWLINE, (False,))
    state = counted.states[0]
    if state is not None and state.well and counted.quotes % 2 == 0:
        return None
    return list(dialect.quoted(raw))


def _count_lines(data: bytes, start: int, end: int) -> int:
    """The line ends between two bytes, of any kind; they do not lie inside of one."""
    return data.count(b"\n", start, end) + data.count(b"\r", start, end) - data.count(b"\r\n", start, end)


def _lines_of_file(path: str, end: int) -> int:
    """The lines before a byte of a file: only whoever has to name a line asks for it."""
    with open(path, "rb") as file:
        return _lines_of(file, end)


def _lines_of(stream: BinaryIO | TextStream, end: int) -> int:
    lines = 0
    while end > 0 and (block := _read(stream, min(end, _BLOCK))):
        if block.endswith(b"\r") and len(block) < end:
            block += _read(stream, 1)
        lines, end = lines + _count_lines(block, 0, len(block)), end - len(block)
    return lines


def _stream(file: CsvFile) -> tuple[BinaryIO | TextStream, str]:
    """A file that cannot be read from any byte, and the encoding of what is read of it."""
    if is_utf8(file.encoding) or single_bytes(file.encoding):
        return open_binary(file.path, file.compression, file.name), file.encoding
    # Bytes that mean a delimiter or a quote can be parts of characters: only the text can be cut.
    return TextStream(file.path, file.compression, file.encoding, file.name), "utf-8"


def _stream_pieces(file: CsvFile, dialect: CsvDialect, size: int) -> Iterator[Piece]:
    stream, encoding = _stream(file)
    with stream:
        held, start, wanted = _read(stream, len(_BOM)), 0, size
        if held == _BOM and is_utf8(encoding):
            held, start = b"", len(_BOM)
        while True:
            data = _read(stream, wanted)
            at_end = len(data) < wanted
            held += data
            cut, values = (len(held), find_values(held, dialect)) if at_end else _cut(held, dialect)
            if cut:
                yield Piece(held[:cut], dialect, encoding, values, partial(_lines_of_stream, file, start))
                held, start = held[cut:], start + cut
            wanted = size if cut else max(size, len(held))
            if at_end:
                return


def _lines_of_stream(file: CsvFile, end: int) -> int:
    """The lines before a byte of a stream, which is read again for it."""
    stream, _ = _stream(file)
    with stream:
        return _lines_of(stream, end)


def _read(stream: BinaryIO | TextStream, size: int) -> bytes:
    """Exactly so many bytes unless the stream ends."""
    parts = []
    while size > 0 and (data := stream.read(size)):
        parts.append(bytes(data))
        size -= len(data)
    return b"".join(parts)


def _cut(data: bytes, dialect: CsvDialect) -> tuple[int, Values | None]:
    """Where the last record ends that is known to end in the beginning of a stream (0: none), and the quoted values."""
    end = data.rfind(b"\n") + 1 or data.rfind(b"\r", 0, len(data) - 1) + 1
    if not end or dialect.quote.encode() not in data:
        return end, None
    lines = data[:end]
    counted = dialect.count_quotes(lines, _NEWLINE, _NEWLINE, (False,))
    state = counted.states[0]
    if state is not None and state.well:
        if counted.quotes % 2 == 0:
            return end, None
        if state.tail <= dialect.max_bytes and state.tail_lines < dialect.max_lines:
            # The value that is open here decides nothing about the records before its own.
            opening = end - state.tail - 1
            quotes = dialect.quote.encode()
            starts = _record_starts(lines[:opening] + quotes, dialect, None)
            return int(starts[-1]) if len(starts) else 0, None
    values, decided = dialect.decided(data)
    content = np.frombuffer(data, dtype=np.uint8)
    ends = _line_ends(data, content, dialect, values)
    ends = ends[(ends < decided) & (ends < len(data) - 1)]
    cut = int(ends[-1]) + 1 if len(ends) else 0
    return cut, [value for value in values if value[0] < cut]
