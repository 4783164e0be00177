"""Draws the part of a source that a diagnostic is about: its lines, with what matters underlined.

Offsets count characters; a terminal counts cells. Tabs are expanded, wide (CJK) characters take two cells and
combining marks none, so that an underline stands below the characters it means. Control characters are shown as
symbols: a user's file must not be able to drive the terminal of whoever reads the error.
"""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from clinker_spark.core.span import Source, Span

TAB = 4
MAX_WIDTH = 140  # a longer line is cropped around what is marked
MAX_SPAN_LINES = 4  # a longer span is shown by its first two lines and its last
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")

Cells = dict[int, tuple[str, str]]
"""One drawn row: cell -> (character, role). Roles are `primary`, `label`, and become colours later."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A span to underline, with the text that stands beside the underline of a label."""

    span: Span
    text: str = ""
    primary: bool = False

    @property
    def role(self) -> str:
        return "primary" if self.primary else "label"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a drawn snippet: a source line (`number` and `text`), underlines (`cells`), or a gap (none of them)."""

    number: int | None = None
    text: str = ""
    cells: Cells | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    """The part of an annotation on one line, as character offsets in that line."""

    start: int
    end: int
    annotation: Annotation
    text: str


def draw(source: Source, annotations: Iterable[Annotation]) -> list[Row]:
    """The rows of a snippet, top to bottom."""
    by_line: dict[int, list[_Mark]] = {}
    for annotation in annotations:
        for line, mark in _marks(source, annotation):
            by_line.setdefault(line, []).append(mark)
    rows: list[Row] = []
    previous = None
    for line in sorted(by_line):
        if previous is not None and line > previous + 1:
            rows.append(Row())
        rows += _draw_line(line, source.line_text(line), by_line[line])
        previous = line
    return rows


def _marks(source: Source, annotation: Annotation) -> list[tuple[int, _Mark]]:
    size = len(source.text)
    start = min(max(annotation.span.start, 0), size)
    end = min(max(annotation.span.end, start), size)
    first, column = source.position(start)
    if end <= start:  # a place between two characters, such as the end of the file
        return [(first, _Mark(column - 1, column, annotation, annotation.text))]
    last, last_column = source.position(end - 1)
    marks = []
    for line in range(first, last + 1):
        text = source.line_text(line)
        left = column - 1 if line == first else len(text) - len(text.lstrip())
        right = min(last_column, len(text)) if line == last else len(text)
        if line == first or right > left:  # a blank line inside a span has nothing to underline
            marks.append((line, _Mark(left, max(right, left + 1), annotation, "")))
    if len(marks) > MAX_SPAN_LINES:
        marks = [*marks[:2], marks[-1]]
    line, mark = marks[-1]
    marks[-1] = (line, replace(mark, text=annotation.text))
    return marks


def _draw_line(number: int, text: str, marks: list[_Mark]) -> list[Row]:
    shown, cells = _place(text, marks)
    rows: list[Cells] = [{}]
    for left, right, mark in sorted(cells, key=lambda cell: cell[2].annotation.primary):  # the primary on top
        for cell in range(left, right):
            rows[0][cell] = ("^" if mark.annotation.primary else "-", mark.annotation.role)
    speaking = sorted((cell for cell in cells if cell[2].text), key=lambda cell: cell[0])
    if speaking and speaking[-1][1] >= max(right for _, right, _ in cells):
        _, right, mark = speaking.pop()  # nothing stands to its right: its text goes on the same row
        _put(rows[0], right + 1, mark.text, mark.annotation.role)
    while speaking:  # the others hang below, the rightmost first
        stems: Cells = {left: ("|", mark.annotation.role) for left, _, mark in speaking}
        if len(rows) == 1:
            rows.append(stems)
        left, _, mark = speaking.pop()
        row = {cell: stem for cell, stem in stems.items() if cell < left}
        _put(row, left, mark.text, mark.annotation.role)
        rows.append(row)
    return [Row(number, shown.rstrip()), *(Row(cells=row) for row in rows)]


def _place(text: str, marks: list[_Mark]) -> tuple[str, list[tuple[int, int, _Mark]]]:
    """The line as shown, and the cells (from, to) of each mark. A very long line is cropped around its marks."""
    parts, columns = layout(text)
    size, first, last = len(parts), 0, len(parts)
    if columns[-1] > MAX_WIDTH:
        focus = min(marks, key=lambda mark: (not mark.annotation.primary, mark.start)).start
        low = max(0, min(columns[min(focus, size)] - MAX_WIDTH // 4, columns[-1] - MAX_WIDTH))
        first = bisect.bisect_left(columns, low)
        last = bisect.bisect_right(columns, columns[first] + MAX_WIDTH) - 1
    before, after = ("..." if first else ""), ("..." if last < size else "")
    shift = len(before) - columns[first]

    def cell(index: int) -> int:
        past_the_end = max(index - size, 0)
        return columns[min(max(index, first), last)] + past_the_end + shift

    placed = [(cell(mark.start), max(cell(mark.end), cell(mark.start) + 1), mark) for mark in marks]
    return before + "".join(parts[first:last]) + after, placed


def _put(row: Cells, cell: int, text: str, role: str) -> None:
    for offset, char in enumerate(plain(text).replace("\n", " ")):
        row[cell + offset] = (char, role)


def layout(line: str) -> tuple[list[str], list[int]]:
    """How each character of a line is shown, and the cell at which it begins (with one more for the end).

    >>> layout("a\\tb")
    (['a', '   ', 'b'], [0, 1, 4, 5])
    >>> layout("日x")[1]
    [0, 2, 3]
    """
    parts, columns, cell = [], [0], 0
    for char in line:
        text = " " * (TAB - cell % TAB) if char == "\t" else _visible(char)
        cell += len(text) if char == "\t" else width(text)
        parts.append(text)
        columns.append(cell)
    return parts, columns


def width(char: str) -> int:
    """How many cells of a terminal a character takes."""
    if char.isascii():
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def plain(text: str) -> str:
    """Text without anything that a terminal would obey; line breaks stay.

    >>> plain("a\\x1b[31mb\\n")
    'a␛[31mb\\n'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char == "\n" else _visible(char) for char in text)


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if char in _BIDI or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
        return "\ufffd"
    return char
