"""The result of a query for people (a table) and for programs (one JSON document)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from clinker_spark.query.values import json_text, plain, show

MAX_ROWS = 100
_MAX_WIDTH = 60


def json_document(value: Any) -> Iterator[str]:
    """One JSON document in pieces, a row a line, so that a long result never stands in memory as text.

    >>> print("".join(json_document([{"b": 1.0, "a": "x"}])), end="")
    [
      {"b": 1.0, "a": "x"}
    ]
    """
    if isinstance(value, str | dict | int | float) or value is None or not hasattr(value, "__iter__"):
        yield _compact(value) + "\n"
        return
    first = True
    for row in value:
        yield ("[\n  " if first else ",\n  ") + _compact(row)
        first = False
    yield "[]\n" if first else "\n]\n"


def _compact(value: Any) -> str:
    return json_text(value, sort=False, indent=None, whole=False)


def table(value: Any) -> str:
    """Records as a table with their fields on top, other lists one element a line, anything else as it is.

    >>> print(table([{"city": "Rome", "n": 12}, {"city": "Ulm", "n": 3}]))
    city   n
    ----  --
    Rome  12
    Ulm    3
    (2 rows)
    """
    if not isinstance(value, list):
        return show(value)
    rows = value[:MAX_ROWS]
    more = f"({len(value)} row{'s' * (len(value) != 1)})" if len(value) <= MAX_ROWS else f"(the first {MAX_ROWS} rows)"
    if not rows or not all(isinstance(row, dict) for row in rows):
        return "\n".join([*(show(row) for row in rows), more])
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(_width(text) for text in column) for column in zip(names, *cells, strict=True)]
    right = [all(_is_number(row.get(name)) for row in rows) for name in names]
    lines = [_line(names, widths, right), "  ".join("-" * w for w in widths)]
    return "\n".join([*lines, *(_line(row, widths, right) for row in cells), more])


def _cell(value: Any) -> str:
    text = show(value) if not isinstance(value, dict | list) else _compact(plain(value))
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= _MAX_WIDTH else text[: _MAX_WIDTH - 1] + "…"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _width(text: str) -> int:
    """Cells of a terminal: wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    parts = []
    for text, width, to_right in zip(cells, widths, right, strict=True):
        blank = " " * (width - _width(text))
        parts.append(blank + text if to_right else text + blank)
    return "  ".join(parts).rstrip()
