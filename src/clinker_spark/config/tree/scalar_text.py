r"""The text of a YAML scalar with the way back: where in the file does its n-th character stand?

A CXL program lives in a scalar. The compiler counts in the program's text; a diagnostic must point into the file.
In a `|` block the two differ by indentation, in quotes by escapes, in a folded text by line ends.

>>> file = Source("p.yaml", "cxl: |\n  emit a = b\n  emit c = d\n")
>>> text = ScalarText(file, "emit a = b\nemit c = d\n", Span(5, 32), "|")
>>> file.text[text.to_file_offset(11) :]
'emit c = d\n'
>>> text.locate(Span(16, 17))
Span(start=27, end=28)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.span import Source, Span

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[^\r\n])")
_FOLD = re.compile(r"[ \t]*(?:\r\n|[\n\r\x85\u2028\u2029])(?:[ \t]*(?:\r\n|[\n\r\x85\u2028\u2029]))*[ \t]*")
_BLANKS = re.compile(r"[ \t]+")
_CONTINUED = re.compile(r"\\(?:\r\n|[\n\r\x85\u2028\u2029])[ \t]*")


@dataclass(frozen=True)
class ScalarText:
    """A scalar's text (as YAML reads it), its span in the file (with quotes or the `|`), and its style."""

    source: Source
    text: str
    span: Span
    style: str = ""

    def to_file_offset(self, offset: int) -> int:
        """The place in the file of a character of the text; one past the last is the end of the text."""
        table = self._table
        return table[min(max(offset, 0), len(table) - 1)]

    def locate(self, span: Span) -> Span:
        """A span of the text as a span of the file."""
        start = self.to_file_offset(span.start)
        if span.end <= span.start:
            return Span(start, start)
        return Span(start, max(start, self.to_file_offset(span.end - 1) + self._width(span.end - 1)))

    def relocate(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic about the text as one about the file."""
        labels = tuple(Label(self.locate(label.span), label.text) for label in diagnostic.labels)
        span = None if diagnostic.span is None else self.locate(diagnostic.span)
        return replace(diagnostic, source=self.source, span=span or self.span, labels=labels)

    def _width(self, offset: int) -> int:
        """How much of the file one character takes: more than one when it is written as an escape."""
        if self.style not in ("'", '"') or not 0 <= offset < len(self._table) - 1:
            return 1 if offset < len(self._table) - 1 else 0
        at = self._table[offset]
        if self.style == "'":
            return 2 if self.source.text.startswith("''", at) else 1
        found = _ESCAPE.match(self.source.text, at)
        return len(found[0]) if found and self.source.text[at] == "\\" else 1

    @cached_property
    def _table(self) -> list[int]:
        """File offsets of every character of the text, and of its end."""
        raw = self.source.text[: self.span.end]
        if self.style in ("|", ">"):
            return _block_table(self.text, raw, self.span.start)
        quotes = 1 if self.style else 0
        start, end = self.span.start + quotes, max(self.span.start + quotes, self.span.end - quotes)
        table = _flow_table(raw, start, end, self.style)
        if len(table) != len(self.text) + 1:  # not written the way we think: every place is the scalar's start
            return [min(start + i, end) for i in range(len(self.text) + 1)]
        return table


def _flow_table(raw: str, start: int, end: int, style: str) -> list[int]:
    """Plain and quoted scalars: characters one by one, except escapes and the blanks around a line end."""
    table: list[int] = []
    at = start
    while at < end:
        fold = _FOLD.match(raw, at, end)
        if fold is not None:
            breaks = [found.start() for found in _BREAK.finditer(raw, at, fold.end())]
            # One line end is a blank; of several, the first only says that the others count.
            table += breaks[:1] if len(breaks) == 1 else breaks[1:]
            at = fold.end()
        elif style == '"' and raw[at] == "\\":
            continued = _CONTINUED.match(raw, at, end)
            if continued is not None:
                more = _FOLD.match(raw, continued.end(), end) if _BREAK.match(raw, continued.end()) else None
                table += [found.start() for found in _BREAK.finditer(raw, continued.end(), more.end())] if more else []
                at = more.end() if more else continued.end()
                continue
            escape = _ESCAPE.match(raw, at, end)
            table.append(at)
            at = escape.end() if escape else at + 1
        elif (blanks := _BLANKS.match(raw, at, end)) is not None:  # all at once: no line end is behind them
            table += range(at, blanks.end())
            at = blanks.end()
        else:
            table.append(at)
            at += 2 if style == "'" and raw.startswith("''", at, end) else 1
    return [*table, end]


def _block_table(text: str, raw: str, start: int) -> list[int]:
    """Literal and folded blocks: each line of the file is an indentation and a piece of the text, in order."""
    header = _BREAK.search(raw, start)
    if header is None:
        return [len(raw)] * (len(text) + 1)
    lines = [(found.start(), found.end()) for found in re.finditer(r"[^\n\r\x85\u2028\u2029]+", raw[header.end() :])]
    lines = [(a + header.end(), b + header.end()) for a, b in lines]
    indent = _indentation(text, raw, lines)
    table: list[int] = []
    end = header.end()
    for first, last in lines:
        content = raw[first + indent : last]
        if not content:
            continue
        found = text.find(content, len(table))
        if found < 0 or text[len(table) : found].strip("\n "):
            break
        missing = found - len(table)
        breaks = [match.start() for match in _BREAK.finditer(raw, end, first)]
        table += breaks[-missing:] if 0 < missing <= len(breaks) else [end] * missing
        table += range(first + indent, last)
        end = last
    return [*table, *([end] * (len(text) + 1 - len(table)))]


def _indentation(text: str, raw: str, lines: list[tuple[int, int]]) -> int:
    """How far the block is indented. The text tells: its first line with something on it ends that of the file."""
    shown = next((line for line in text.split("\n") if line.strip(" ")), "")
    for first, last in lines:
        line = raw[first:last]
        if line.strip(" ") and line.endswith(shown):
            return len(line) - len(shown)
        if line.strip(" "):  # a folded text: the line is only the beginning of it
            for depth in range(len(line) - len(line.lstrip(" ")), -1, -1):
                if text.lstrip("\n").startswith(line[depth:]):
                    return depth
            return len(line) - len(line.lstrip(" "))
    return 0
