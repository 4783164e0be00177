"""Pictures of what becomes of each record, drawn from the examples: their input, and the files that runs give.

The expected files of an example are compared with real runs by the tests, so the pictures show what really happens.
"""

from __future__ import annotations

import csv
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ("21-retraction", "24-orders-held-together")
COLOURS = {"goes on": "#2e7d32", "failed": "#c62828", "withheld": "#ef6c00"}
_ROW, _WIDTH, _TOP, _CELL = 26, 860, 64, 11


def pictures() -> dict[Path, str]:
    """The files and their texts."""
    return {ROOT / "docs" / "pictures" / f"{name}.svg": picture(ROOT / "examples" / name) for name in EXAMPLES}


def picture(example: Path) -> str:
    """One line for each record of the first source: where it ends, and why."""
    data = next(p for p in sorted((example / "data").iterdir()) if p.name in ("orders.csv", "lines.csv"))
    with open(data, newline="", encoding="utf-8") as file:
        header, *records = csv.reader(file)
    letters = _letters(example / "expected" / "dead-letters.csv")
    groups = [letter for letter in letters if letter["_cxl_dlq_source_row"] == ""]
    own = {int(r["_cxl_dlq_source_row"]): r for r in letters if r["_cxl_dlq_source_file"].endswith(data.name)}
    lines = [_text(16, 30, f"{data.name}: what becomes of each record", size=16, weight="bold"), *_legend()]
    y = _TOP
    for number, record in enumerate(records, 1):
        letter = own.get(number)
        state = "goes on" if letter is None else "failed" if letter["_cxl_dlq_trigger"] == "true" else "withheld"
        lines += _record(y, number, header, record, state, _reason(letter))
        y += _ROW
    if groups:
        y += 14
        lines.append(_text(16, y + 6, "Totals that failed", size=13, weight="bold"))
        y += 14
        for letter in groups:
            shown = ", ".join(f"{k}={v}" for k, v in letter.items() if v and not k.startswith(("_cxl", "$ck")))
            lines += _line(y, "failed", shown, f"{letter['_cxl_dlq_stage']}: {letter['_cxl_dlq_error_detail']}")
            y += _ROW
    size = f'viewBox="0 0 {_WIDTH} {y + 16}" width="{_WIDTH}" height="{y + 16}"'
    body = "\n".join(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _letters(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _reason(letter: dict[str, str] | None) -> str:
    if letter is None:
        return "goes on"
    return f"{letter['_cxl_dlq_stage']}: {letter['_cxl_dlq_error_detail']}"


def _record(y: int, number: int, header: list[str], record: list[str], state: str, reason: str) -> list[str]:
    return _line(y, state, f"row {number}: {', '.join(record)}", reason)


def _line(y: int, state: str, left: str, right: str) -> list[str]:
    colour = COLOURS[state]
    short = right if len(right) <= 58 else right[:57] + "…"
    return [
        f'<rect x="16" y="{y}" width="{_WIDTH - 32}" height="{_ROW - 4}" rx="3" fill="{colour}" fill-opacity="0.10"/>',
        f'<rect x="16" y="{y}" width="6" height="{_ROW - 4}" rx="2" fill="{colour}"/>',
        _text(30, y + 15, left if len(left) <= 62 else left[:61] + "…"),
        _text(450, y + 15, short, colour=colour),
    ]


def _legend() -> list[str]:
    shapes, x = [], 16
    for name, colour in COLOURS.items():
        shapes.append(f'<rect x="{x}" y="40" width="12" height="12" rx="2" fill="{colour}"/>')
        shapes.append(_text(x + 17, 50, name))
        x += 100
    return shapes


def _text(x: int, y: int, text: str, *, size: int = _CELL, weight: str = "normal", colour: str = "#222222") -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>'
