"""Diagnostics for people (`render_text`, `render_all`) and for programs (`render_json`).

Plain ANSI by hand: a check of a program is over before a terminal library would be imported.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TextIO

from clinker_spark.core.diagnostics import Diagnostic, Severity
from clinker_spark.core.diagnostics.snippet import Annotation, Cells, Row, draw, plain
from clinker_spark.core.span import Source, Span

Paint = Callable[[str, str], str]
"""Text and its role -> text in the role's colour."""

_COLOURS = {"error": "1;31", "warning": "1;33", "label": "1;34", "frame": "1;34", "bold": "1"}


def use_color(stream: TextIO) -> bool:
    """May escape codes be written to this stream? NO_COLOR and a pipe say no, FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def render_text(diagnostic: Diagnostic, *, color: bool, hint: bool = True) -> str:
    """One diagnostic as a compiler shows it: message, place, source line underlined, help.

    >>> from clinker_spark.core.span import Source, Span
    >>> text = Source("t.cxl", "emit total = prise * 2")
    >>> finding = Diagnostic("E203", "unresolved identifier 'prise'", text, Span(13, 18), help="did you mean 'price'?")
    >>> print(render_text(finding, color=False))
    error[E203]: unresolved identifier 'prise'
      --> t.cxl:1:14
       |
     1 | emit total = prise * 2
       |              ^^^^^
       |
       = help: did you mean 'price'?
       = more: clinker explain --code E203
    """
    paint = _painter(color)
    severity = diagnostic.severity.value
    head, *rest = plain(diagnostic.message).split("\n")
    lines = [paint(f"{severity}[{diagnostic.code}]", severity) + paint(f": {head}", "bold")]
    lines += [f"  {line}" for line in rest]
    rows = _snippet(diagnostic)
    gutter = max((len(str(row.number)) for row in rows if row.number), default=1)
    bar = paint(" " * (gutter + 1) + " |", "frame")
    if diagnostic.source is not None:
        lines.append(paint(" " * (gutter + 1) + "-->", "frame") + f" {_place(diagnostic.source, diagnostic.span)}")
    if rows:
        lines.append(bar)
        lines += [_row(row, gutter, bar, severity, paint) for row in rows]
        if diagnostic.help or hint:
            lines.append(bar)
    notes = [("help", diagnostic.help), ("more", f"clinker explain --code {diagnostic.code}" if hint else None)]
    for name, text in notes:
        if text:
            first, *more = plain(text).split("\n")
            lines.append(paint(" " * (gutter + 1) + " =", "frame") + paint(f" {name}", "bold") + f": {first}")
            lines += [" " * (gutter + 10) + line for line in more]
    return "\n".join(lines)


def render_all(diagnostics: Sequence[Diagnostic], color: bool) -> str:
    """Several diagnostics with a count at the end, and the hint only once.

    >>> print(render_all([Diagnostic("E224", "cannot read 'a.cxl'")], color=False))
    error[E224]: cannot read 'a.cxl'
    <BLANKLINE>
    1 error; for more: clinker explain --code E224
    """
    if not diagnostics:
        return ""
    paint = _painter(color)
    blocks = [render_text(diagnostic, color=color, hint=False) for diagnostic in diagnostics]
    first_code = min(diagnostics, key=lambda d: d.severity is Severity.WARNING).code
    closing = f"{paint(count_line(diagnostics), 'bold')}; for more: clinker explain --code {first_code}"
    return "\n\n".join([*blocks, closing])


def count_line(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`."""
    severities = [diagnostic.severity for diagnostic in diagnostics]
    counts = ((severities.count(severity), severity.value) for severity in Severity)
    return ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for n, name in counts if n)


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A JSON list with one object per diagnostic; what is not known is null. Lines and columns count from 1,
    offsets from 0; all of them count characters, and ends are exclusive."""
    return json.dumps([_object(diagnostic) for diagnostic in diagnostics], indent=2)


def _object(diagnostic: Diagnostic) -> dict[str, Any]:
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "phase": diagnostic.phase,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "file": diagnostic.source.name if diagnostic.source else None,
        **_span_fields(diagnostic.source, diagnostic.span),
        "labels": [{"text": label.text, **_span_fields(diagnostic.source, label.span)} for label in diagnostic.labels],
    }


def _span_fields(source: Source | None, span: Span | None) -> dict[str, int | None]:
    names = ("line", "column", "end_line", "end_column", "start", "end")
    if source is None or span is None:
        return dict.fromkeys(names)
    return dict(
        zip(names, (*source.position(span.start), *source.position(span.end), span.start, span.end), strict=True)
    )


def _snippet(diagnostic: Diagnostic) -> list[Row]:
    if diagnostic.source is None or diagnostic.span is None:
        return []
    labels = [Annotation(label.span, label.text) for label in diagnostic.labels]
    return draw(diagnostic.source, [Annotation(diagnostic.span, primary=True), *labels])


def _place(source: Source, span: Span | None) -> str:
    name = plain(source.name).replace("\n", " ")
    if span is None:
        return name
    line, column = source.position(min(span.start, len(source.text)))
    return f"{name}:{line}:{column}"


def _painter(color: bool) -> Paint:
    if not color:
        return lambda text, role: text
    return lambda text, role: f"\x1b[{_COLOURS[role]}m{text}\x1b[0m"


def _row(row: Row, gutter: int, bar: str, severity: str, paint: Paint) -> str:
    if row.cells is not None:
        return f"{bar} {_paint_cells(row.cells, severity, paint)}"
    if row.number is None:
        return paint(" " * gutter + "...", "frame")
    frame = paint(f" {row.number:>{gutter}} |", "frame")
    return f"{frame} {row.text}" if row.text else frame


def _paint_cells(cells: Cells, severity: str, paint: Paint) -> str:
    """Neighbours of one role become one coloured run."""
    parts: list[str] = []
    run, run_role, at = "", "", 0
    for cell in sorted(cells):
        char, role = cells[cell]
        role = severity if role == "primary" else role
        if run and (cell > at or role != run_role):
            parts.append(paint(run, run_role))
            run = ""
        parts.append(" " * (cell - at))
        run, run_role, at = run + char, role, cell + 1
    return "".join([*parts, paint(run, run_role)])
