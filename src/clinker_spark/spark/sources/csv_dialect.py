r"""Where records of delimited text end: the one place that knows what a quote means.

A quote opens a quoted value only where a value starts; anywhere else it is a character like any other. This is how the
parser sees it, so boundaries found here are boundaries there.

>>> dialect = CsvDialect(",", '"')
>>> dialect.record_end(b'"a\nb",1\n2,3\n', 0)
8
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

_NEWLINE, _RETURN = 10, 13
_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True)
class CsvDialect:
    """The delimiter and the quote character, both ASCII."""

    delimiter: str
    quote: str

    @cached_property
    def _opening(self) -> re.Pattern[bytes]:
        quote, delimiter = re.escape(self.quote.encode()), re.escape(self.delimiter.encode())
        return re.compile(rb"(?:(?<=[\n\r" + delimiter + rb"])|\A)" + quote)

    @cached_property
    def _to_closing(self) -> re.Pattern[bytes]:
        quote = re.escape(self.quote.encode())
        return re.compile(rb"[^" + quote + rb"]*+(?:" + quote * 2 + rb"[^" + quote + rb"]*+)*+" + quote)

    def quoted(self, data: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
        """(from, to) of every quoted value after `start`, the start of a record; the last one may be open."""
        at = start
        while True:
            # A record can start at `start` without the newline before it being part of `data`.
            opening = at if at == start and data[at : at + 1] == self.quote.encode() else -1
            if opening < 0:
                match = self._opening.search(data, at)
                if match is None:
                    return
                opening = match.end() - 1
            closing = self._to_closing.match(data, opening + 1)
            if closing is None:
                yield opening, len(data)
                return
            at = closing.end()
            yield opening, at

    def record_end(self, data: bytes, start: int) -> int:
        """The byte after the record at `start`, its line end included; -1 when it goes on after `data`."""
        at = start
        for opening, closing in self.quoted(data, start):
            if (line_end := _LINE_END.search(data, at, opening)) is not None:
                return line_end.end()
            at = closing
        found = _LINE_END.search(data, at)
        return found.end() if found is not None else -1

    def cells(self, record: str) -> list[str]:
        """The values of one record, as text; one that Python's reader refuses, for its length, is a single value."""
        rows = csv.reader(io.StringIO(record, newline=""), delimiter=self.delimiter, quotechar=self.quote)
        try:
            return next(iter(rows), [])
        except csv.Error:
            return [record]

    def count_quotes(self, data: bytes, before: int) -> QuoteCount:
        """The quotes in a piece of a file; `before` is the byte before it."""
        content = np.frombuffer(data, dtype=np.uint8)
        quotes = np.flatnonzero(content == ord(self.quote))
        if not len(quotes):
            return QuoteCount(0, (True, True))
        previous = content[np.maximum(quotes - 1, 0)]
        if quotes[0] == 0:
            previous[0] = before
        starts_value = self._value_starts[previous]
        return QuoteCount(len(quotes), (bool(starts_value[0::2].all()), bool(starts_value[1::2].all())))

    @cached_property
    def _value_starts(self) -> np.ndarray:
        allowed = np.zeros(256, dtype=bool)
        allowed[[_NEWLINE, _RETURN, ord(self.delimiter), ord(self.quote)]] = True
        return allowed


@dataclass(frozen=True)
class QuoteCount:
    """How many quotes a piece of a file has, and whether all that open stand where a value starts.

    Which ones open depends on whether the piece starts outside quotes (the first answer) or inside (the second). A
    doubled quote counts as closing and opening again, so a quote may also follow a quote. Where the answer is yes,
    an even number of quotes before a place means that it is not quoted.
    """

    quotes: int
    opens_well: tuple[bool, bool]
