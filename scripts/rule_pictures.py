"""One picture for each rule of rollback: input rows and what becomes of them, totals, and what is written.

They are drawn from the worked examples that the tests run (tests/property/rollback), so no picture can say anything
else than what a run does.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

from rule_stories import STATES, Story, Table, Total, Written, story  # noqa: E402 (the path above must come first)

from tests.property.rollback.examples import EXAMPLES  # noqa: E402
from tests.property.rollback.explained import EXPLAINED, REPLAYED  # noqa: E402

RULES = {
    "key-as-read": ("The key is what the source read", "The group is that of the key as it was read"),
    "zero-and-null": ("Both zeros are one key; null is a key of its own", "Zero is one key"),
    "partly-null": ("A partly null key is a value like any other", "A partly null key"),
    "spared-source": ("A failure of one source spares the other", "A failure of one source spares"),
    "source-without-key": ("A source without a key", "A failed record of a source without a key"),
    "written-without-key": ("What was written is no letter", "A record of a source without a key that was written"),
    "named-part": ("A part of the key goes on: all of that part is withheld", "Of a key of two fields"),
    "combined": ("Combined records belong to groups by value", "What a combine made belongs"),
    "fan-out": ("Which of its groups withhold a record", "The fan-out policy"),
    "null-first-key": ("A null key is not that of the failed record", "A key that is null is not the first key"),
    "broken-line": ("A broken line belongs to its group", "A broken line"),
    "strict-total": ("A total of one group is withheld with it", "A total whose group_by has the whole key"),
    "relaxed-total": ("A total across groups loses only what failed", "What is only withheld still counts in totals"),
    "judged-after": ("A total is judged without what failed elsewhere", "A record that fails on another branch"),
    "no-total-left": ("A total without records does not exist", "A total whose only record"),
    "failed-total": ("A failed total retracts its records as if each had failed", "The records of a failed total"),
    "failed-total-sources": ("The groups of a failed total, each within its source", "The groups of a failed total"),
    "total-of-nothing": ("A total of nothing that fails is a letter", "A total of nothing that fails"),
    "total-of-nothing-group": ("The same with group scope", "The same with group scope"),
    "totals-together": ("Totals that fail in one iteration are retracted together", "Totals that fail in one"),
    "group-scope": ("Group scope: the whole group leaves the totals", "The same in one line, when the scope"),
    "group-scope-source": ("Group scope stays within the failed record's source", "Group scope leaves records"),
    "group-scope-key": ("Group scope goes by the key as it was read", "Group scope goes by the key"),
    "group-scope-part": ("Group scope, where a part of the key was carried", "What fails behind that combine"),
    "group-scope-totals": ("Group scope leaves out totals of the group", "Group scope leaves out totals"),
    "windows": ("Windows are computed over what is left", "Windows are computed"),
    "distinct": ("distinct over what is left", "What `distinct` lets through"),
    "filtered": ("Filtered records are no letters, and do not count", "Filtered records"),
    "merged-size": ("The size of a group, over merged sources", "Groups of merged sources"),
    "include-retracted": ("include_retracted: false", "Without include_retracted"),
    "replay": ("A replay feeds each record with letters once", "A replay feeds each record"),
}
"""By the name of the file: a title, and how the rule of the example begins."""

# Colours on a light and on a dark ground.
_COLOURS = {
    "written": ("#1b7f3b", "#5fd38a"),
    "failed": ("#c62828", "#ff8a80"),
    "withheld": ("#b25400", "#ffb35c"),
    "retracted": ("#7b3fb5", "#d0a6ff"),
    "filtered": ("#667085", "#9aa4b2"),
    "looked up": ("#1769aa", "#7cc4ff"),
}
_WIDTH, _ROW, _CHAR, RIGHT, _COLUMN = 880, 20, 7.3, 548, 112
_LONGEST = 112
_BESIDE = 3
"""So many outputs stand beside each other."""


def rule_pictures() -> dict[Path, str]:
    """The files and their texts."""
    drawn = {}
    for name, (title, rule) in RULES.items():
        (example,) = (example for example in (*EXAMPLES, *EXPLAINED) if example.rule.startswith(rule))
        drawn[ROOT / "docs" / "pictures" / "rules" / f"{name}.svg"] = picture(
            title, story(example, replayed=example is REPLAYED)
        )
    return drawn


def picture(title: str, told: Story) -> str:
    shapes = [_text(16, 26, title, "h")]
    y = 46.0
    for chain in told.graph:
        for line in _wrapped(chain):
            shapes.append(_text(16, y, line, "m soft"))
            y += 17
    if told.options:
        shapes.append(_text(16, y, f"error_handling: {{ {told.options} }}", "m soft"))
        y += 17
    top = y + 8
    left, low = _tables(top, told.tables)
    right, deep = _results(top, told)
    shapes += left + right
    y = max(low, deep) + 6
    shapes.append(_legend(y + 10, told))
    height = int(y + 26)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        f' role="img">\n<title>{escape(title)}</title>\n{_style(told)}\n'
        '<rect class="ground" width="100%" height="100%"/>\n' + "\n".join(shapes) + "\n</svg>\n"
    )


# ---------------------------------------------------------------- left: the input


def _tables(y: float, tables: list[Table]) -> tuple[list[str], float]:
    shapes: list[str] = []
    for table in tables:
        key = f"correlation_key: {', '.join(table.source.key)}" if table.source.key else "no correlation_key"
        shapes.append(_headed(16, y + 13, table.source.name, key))
        y += _ROW
        widths = [
            max(len(text) for text in (name, *(fate.cells[i] for fate in table.fates)))
            for i, name in enumerate(table.header)
        ]
        places = [60.0]
        for width in widths:
            places.append(places[-1] + max(width, 3) * _CHAR + 14)
        shapes += [_text(x, y + 13, name, "m soft") for x, name in zip(places, table.header, strict=False)]
        y += _ROW
        for fate in table.fates:
            shapes.append(_row(y, fate.state))
            shapes.append(_text(28, y + 13, str(fate.number), "m soft"))
            shapes += [_text(x, y + 13, text, "m") for x, text in zip(places, fate.cells, strict=False)]
            said = f'<tspan class="b">{escape(fate.state)}</tspan> {escape(fate.reason)}'
            shapes.append(f'<text x="{places[-1]:.0f}" y="{y + 13:.0f}" class="{_class(fate.state)}">{said}</text>')
            y += _ROW
        y += 8
    return shapes, y


def _row(y: float, state: str) -> str:
    ground = f'<rect x="16" y="{y:.0f}" width="{RIGHT - 40}" height="{_ROW - 2}" rx="2" opacity=".12"/>'
    bar = f'<rect x="16" y="{y:.0f}" width="5" height="{_ROW - 2}" rx="2"/>'
    return f'<g class="{_class(state)}">{ground}{bar}</g>'


# ---------------------------------------------------------------- right: totals and outputs


def _results(y: float, told: Story) -> tuple[list[str], float]:
    shapes: list[str] = []
    for name, totals in told.totals.items():
        shapes.append(_headed(RIGHT, y + 13, name, "totals"))
        y += _ROW
        for total in totals:
            shapes.append(_total(y, total))
            y += _ROW - 2
        y += 8
    for first in range(0, len(told.outputs), _BESIDE):
        beside = told.outputs[first : first + _BESIDE]
        for i, output in enumerate(beside):
            shapes += _output(RIGHT + i * _COLUMN, y, output)
        y += (_ROW - 2) * (max(len(output.lines) for output in beside) + 1) + _ROW + 8
    return shapes, y


def _total(y: float, total: Total) -> str:
    said = f"{escape(total.group)}: {escape(total.first)}"
    if total.failed_in:
        said += f' <tspan class="{_class("failed")}">fails in {escape(", ".join(total.failed_in))}</tspan>'
    if total.last is None:
        said += ' → <tspan class="gone">gone</tspan>'
    elif total.last != total.first:
        said += f' → <tspan class="b">{escape(total.last)}</tspan>'
    return f'<text x="{RIGHT + 12}" y="{y + 13:.0f}" class="m">{said}</text>'


def _output(x: float, y: float, output: Written) -> list[str]:
    shapes = [_headed(x, y + 13, output.name, "output")]
    y += _ROW
    shapes.append(_text(x + 12, y + 13, output.header, "m soft"))
    for mark, line in output.lines:
        y += _ROW - 2
        kind = {" ": "m", "-": "m gone", "+": f"m b {_class('written')}"}[mark]
        shapes += [_text(x, y + 13, mark, "m soft")] if mark.strip() else []
        shapes.append(_text(x + 12, y + 13, line, kind))
    return shapes


# ---------------------------------------------------------------- the rest


def _legend(y: float, told: Story) -> str:
    marks = {mark for output in told.outputs for mark, _ in output.lines}
    said = []
    if "-" in marks:
        said.append('<tspan class="gone">struck through</tspan>: written only if there were no keys')
    if "+" in marks:
        said.append(
            f'<tspan class="b {_class("written")}">+</tspan>: written only because of {"them" if said else "the keys"}'
        )
    return f'<text x="16" y="{y:.0f}" class="soft">{";  ".join(said)}</text>'


def _style(told: Story) -> str:
    there = {fate.state for table in told.tables for fate in table.fates} | {"written", "failed"}
    states = [state for state in STATES if state in there]
    light = "".join(f".{_class(state)}{{fill:{_COLOURS[state][0]}}}" for state in states)
    dark = "".join(f".{_class(state)}{{fill:{_COLOURS[state][1]}}}" for state in states)
    return (
        "<style>text{font:12px sans-serif}text,.ink{fill:#1f2328}.m{font-family:monospace}.b{font-weight:bold}"
        ".h{font-size:16px;font-weight:bold}.ground{fill:#fff}.soft{fill:#59636e}"
        f".gone{{fill:#8a939d;text-decoration:line-through}}{light}"
        "@media(prefers-color-scheme:dark){text,.ink{fill:#e6edf3}.ground{fill:#0d1117}.soft{fill:#9198a1}"
        f".gone{{fill:#7d8590}}{dark}}}</style>"
    )


def _class(state: str) -> str:
    return state.replace(" ", "-")


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{attribute}>{escape(text)}</text>'


def _headed(x: float, y: float, name: str, what: str) -> str:
    said = f'<tspan class="ink b">{escape(name)}</tspan> {escape(what)}'
    return f'<text x="{x:.0f}" y="{y:.0f}" class="soft">{said}</text>'


def _wrapped(chain: str) -> list[str]:
    lines = [""]
    for i, step in enumerate(chain.split(" → ")):
        piece = f" → {step}" if i else step
        if len(lines[-1]) + len(piece) > _LONGEST:
            lines.append("   ")
        lines[-1] += piece
    return lines
