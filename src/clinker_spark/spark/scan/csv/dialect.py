r"""What a quote means in delimited text: the one place that knows it.

A quote opens a quoted value only where a value starts; anywhere else it is a character like any other. This is how the
parser sees it, so boundaries found here are boundaries there.

A quote that nobody closed would swallow what follows, to the next quote or to the end of the file. So a quote counts
as *unclosed* when its value would be longer than the limits, would go on to the end of the file, or would span lines
and then be followed by something else than a delimiter or a line end: that is the opening quote of a later value. The
record of an unclosed quote ends with the line of the quote.

>>> dialect = CsvDialect(",", '"')
>>> list(dialect.quoted(b'"a\nb",1\n2,"open\n3,"c"\n'))
[(0, 5, True), (10, 16, False), (18, 21, True)]
>>> dialect.cells('x,"a;b"')
['x', 'a;b']
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

csv.field_size_limit(2**31 - 1)  # of the whole process: how long values may be is said here, for each source
_NEWLINE, _RETURN = 10, 13
_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True)
class CsvDialect:
    """The delimiter and the quote character, both ASCII, and how long a quoted value may be."""

    delimiter: str
    quote: str
    max_bytes: int = 1 << 20
    max_lines: int = 1000

    @cached_property
    def _opening(self) -> re.Pattern[bytes]:
        quote, delimiter = re.escape(self.quote.encode()), re.escape(self.delimiter.encode())
        return re.compile(rb"(?:(?<=[\n\r" + delimiter + rb"])|\A)" + quote)

    @cached_property
    def _to_closing(self) -> re.Pattern[bytes]:
        quote = re.escape(self.quote.encode())
        return re.compile(rb"[^" + quote + rb"]*+(?:" + quote * 2 + rb"[^" + quote + rb"]*+)*+" + quote)

    @cached_property
    def _value_end(self) -> re.Pattern[bytes]:
        """What may follow the closing quote of a value that spans lines; blanks there are forgiven."""
        return re.compile(rb"[ \t]*+(?:[\r\n" + re.escape(self.delimiter.encode()) + rb"]|\Z)")

    def quoted(self, data: bytes, start: int = 0, *, complete: bool = True) -> Iterator[tuple[int, int, bool]]:
        """(from, to, is it closed?) of every quoted value after `start`, the start of a record. An unclosed one ends
        with its line. Where `data` is only the beginning, what it does not decide is left out, and all after it."""
        at, size = start, len(data)
        quote = self.quote.encode()
        while True:
            # A record can start at `start` without the newline before it being part of `data`.
            opening = at if at == start and data[at : at + 1] == quote else -1
            if opening < 0:
                match = self._opening.search(data, at)
                if match is None:
                    return
                opening = match.end() - 1
            closing = self._closing(data, opening, complete)
            if closing is None:
                return
            if closing > 0:
                at = closing
                yield opening, at, True
                continue
            line_end = _LINE_END.search(data, opening)
            if not complete and (line_end is None or line_end.end() == size):
                return
            at = size if line_end is None else line_end.end()
            yield opening, at, False
            if at == size:
                return

    def decided(self, data: bytes) -> tuple[list[tuple[int, int, bool]], int]:
        """The quoted values of the beginning of a text, and the first byte about which it decides nothing."""
        values = list(self.quoted(data, complete=False))
        at = values[-1][1] if values else 0
        if not values and data[:1] == self.quote.encode():
            return values, 0
        match = self._opening.search(data, at)
        return values, len(data) if match is None else match.start()

    def _closing(self, data: bytes, opening: int, complete: bool) -> int | None:
        """The byte after the quote that closes a value, 0 if it is unclosed, None if that is not decided yet."""
        size = len(data)
        first = opening + 1
        most = first + self.max_bytes
        found = self._to_closing.match(data, first, min(most + 1, size))
        if found is None:
            return 0 if complete or most + 1 <= size or self._too_many_lines(data, first, size) else None
        end = found.end()
        if self._too_many_lines(data, first, end - 1):
            return 0
        if end == size:
            return end if complete else None
        if data[end : end + 1] == self.quote.encode():  # half of a doubled one: the value is too long
            return 0
        follows = self._value_end.match(data, end)
        if follows is not None:
            # Blanks at the end of what is there say nothing yet.
            return end if complete or follows.end() < size or data[size - 1 : size] not in (b" ", b"\t") else None
        return 0 if b"\n" in data[first:end] or b"\r" in data[first:end] else end

    def _too_many_lines(self, data: bytes, start: int, end: int) -> bool:
        if end - start < self.max_lines:  # every line end is a byte at least
            return False
        value = data[start:end]
        return max(value.count(b"\n"), value.count(b"\r")) >= self.max_lines

    def record_end(self, data: bytes, start: int, *, complete: bool = True) -> tuple[int, bool]:
        """The byte after the record at `start`, its line end included, -1 when it goes on after `data`; and whether
        all its quotes are closed."""
        line_end = _LINE_END.search(data, start)
        if line_end is not None and data.find(self.quote.encode(), start, line_end.end()) < 0:
            return line_end.end(), True
        at = start
        for opening, closing, closed in self.quoted(data, start, complete=complete):
            if (line_end := _LINE_END.search(data, at, opening)) is not None:
                return line_end.end(), True
            at = closing
            if not closed:
                return at, False
        if not complete:
            _, decided = self.decided(data[start:])
            line_end = _LINE_END.search(data, at, start + decided)
        else:
            line_end = _LINE_END.search(data, at)
        return (line_end.end() if line_end is not None else -1), True

    def cells(self, record: str) -> list[str]:
        """The values of one record, as text."""
        rows = csv.reader(io.StringIO(record, newline=""), delimiter=self.delimiter, quotechar=self.quote)
        try:
            return next(iter(rows), [])
        except csv.Error:  # a return outside of quotes
            return [record]

    def unclosed_message(self, line: int) -> str:
        lines = f"{self.max_lines:,} line{'' if self.max_lines == 1 else 's'}"
        return (
            f"the quote that opens in line {line:,} is not closed: its value would be longer than "
            f"{lines} or {self.max_bytes:,} bytes, have no end, or end where no value ends"
        )

    # ------------------------------------------------------------ many quotes at once

    def count_quotes(
        self, data: bytes, before: int, after: int, states: tuple[bool, ...] = (False, True)
    ) -> QuoteCount:
        """The quotes in a piece of a file; `before` and `after` are the bytes around it. `states` are the answers that
        matter: of a piece that starts outside quotes, inside, or both."""
        content = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(content == ord(self.quote))
        if not len(quotes):
            lines = max(data.count(b"\n"), data.count(b"\r")) if True in states else 0
            inside = Inside(True, len(data), lines, len(data), lines, closes=False)
            return QuoteCount(0, (OUTSIDE, inside if True in states else None))
        previous = content[np.maximum(quotes - 1, 0)]
        following = content[np.minimum(quotes + 1, len(content) - 1)]
        if quotes[0] == 0:
            previous[0] = before
        if quotes[-1] == len(content) - 1:
            following[-1] = after
        found = [self._inside(data, quotes, previous, following, s) if s in states else None for s in (False, True)]
        return QuoteCount(len(quotes), (found[0], found[1]))

    def _inside(
        self, data: bytes, quotes: np.ndarray, previous: np.ndarray, following: np.ndarray, inside: bool
    ) -> Inside:
        """What the piece is like when its first quote opens a value, or, `inside`, closes one."""
        first_open, first_close = int(inside), 1 - int(inside)
        opens_at, closes_at = previous[first_open::2], following[first_close::2]
        well = bool(self._value_borders[opens_at].all() and self._value_borders[closes_at].all())
        if not well:
            return Inside(False)
        # A doubled quote closes and opens again: it is neither the beginning nor the end of a value.
        starts = quotes[first_open::2][opens_at != ord(self.quote)]
        ends = quotes[first_close::2][closes_at != ord(self.quote)]
        closes = bool(len(ends)) if inside else True
        head = (int(ends[0]) if len(ends) else len(data)) if inside else 0
        head_lines = _lines(data[:head]) if inside else 0
        whole = ends[1:] if inside else ends
        open_end = len(starts) > len(whole)
        lengths = whole - starts[: len(whole)] - 1
        for i in np.flatnonzero(lengths >= min(self.max_lines, self.max_bytes + 1)).tolist():
            if lengths[i] > self.max_bytes or self._too_many_lines(data, int(starts[i]) + 1, int(whole[i])):
                return Inside(False)
        tail, tail_lines = 0, 0
        if open_end:
            tail = len(data) - int(starts[-1]) - 1
            tail_lines = _lines(data[int(starts[-1]) + 1 :])
        elif inside and not closes:
            tail, tail_lines = head, head_lines
        return Inside(True, head, head_lines, tail, tail_lines, closes=closes)

    @cached_property
    def _value_borders(self) -> np.ndarray:
        allowed = np.zeros(256, dtype=bool)
        allowed[[_NEWLINE, _RETURN, ord(self.delimiter), ord(self.quote)]] = True
        return allowed


def _lines(data: bytes) -> int:
    return max(data.count(b"\n"), data.count(b"\r"))


@dataclass(frozen=True)
class Inside:
    """What a piece is like, given whether it starts inside a quoted value.

    `well`: all quotes that open or close stand where values start and end, and no value that lies in the piece is too
    long. `head` and `tail` are bytes of the values that it begins and ends in, with their line ends; `closes` says
    whether the value that it begins in ends in it."""

    well: bool
    head: int = 0
    head_lines: int = 0
    tail: int = 0
    tail_lines: int = 0
    closes: bool = True


OUTSIDE = Inside(True)


@dataclass(frozen=True)
class QuoteCount:
    """How many quotes a piece of a file has, and what it is like when it starts outside quotes, or inside.

    A doubled quote counts as closing and opening again. Where all is well, an even number of quotes before a place
    means that it is not quoted.
    """

    quotes: int
    states: tuple[Inside | None, Inside | None]
