"""Where something stands in a user's file.

A `Source` is a named text; a `Span` is a half-open range of character offsets in one.
Everything a user can get wrong keeps its span from the lexer to the last renderer.

>>> src = Source("t.cxl", "emit a = 1\\nemit b = x\\n")
>>> src.position(20)
(2, 10)
>>> src.line_text(2)
'emit b = x'
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` (included) to `end` (excluded) of a source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.start, max(self.end, other.end))


NO_SPAN = Span(0, 0)


@dataclass(frozen=True)
class Source:
    """A named text that spans point into."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        # Only \n, \r and \r\n end a line (str.splitlines knows more, editors do not).
        starts, i, text = [0], 0, self.text
        while i < len(text):
            if text[i] == "\r" and text[i + 1 : i + 2] == "\n":
                i += 1
            if text[i] in "\r\n":
                starts.append(i + 1)
            i += 1
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """1-based (line, column) of a character offset."""
        line = bisect.bisect_right(self._line_starts, max(0, offset))
        return line, offset - self._line_starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its line end."""
        starts = self._line_starts
        end = starts[line] if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r\n")
