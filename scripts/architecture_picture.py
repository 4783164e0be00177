"""The picture of the architecture, drawn from the source: layers, their folders, and who imports whom how often.

The order of the layers and the imports are those that `tests/test_layers.py` checks. Run by itself, this script writes
only this picture, which takes a second.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [path for path in (str(ROOT / "src"), str(ROOT)) if path not in sys.path]

from tests.test_layers import PACKAGE, RANK, all_imports  # noqa: E402 (the path above must come first)

FILE = ROOT / "docs" / "pictures" / "architecture.svg"
PURPOSES = {
    "core": ("types, spans,", "diagnostics"),
    "sql": ("SQL as a tree,", "printed once"),
    "cxl": ("the expression", "language"),
    "config": ("YAML and TOML", "as checked models"),
    "query": ("the query language",),
    "plan": ("nodes with traits,", "passes, facts, stages"),
    "spark": ("the plan as", "DataFrames; the only", "one with pyspark"),
    "runtime": ("stages, dead letters,", "rollback, commit"),
    "streaming": ("joins of streams",),
    "dataset": ("recordings", "over time"),
    "report": ("what people see",),
    "cli": ("clinker and cxl",),
}
"""What each layer is for, in lines that fit beside it."""

# Colours on a light and on a dark ground, for every layer in turn.
_HUES = (
    ("#1769aa", "#7cc4ff"),
    ("#7b3fb5", "#d0a6ff"),
    ("#1b7f3b", "#5fd38a"),
    ("#b25400", "#ffb35c"),
    ("#00737d", "#5fd4de"),
    ("#b0256b", "#ff93c4"),
)
_LEFT, _BOXES, _BOX, _PER_ROW, _GAP = 16, 174, 148, 4, 8
_LANES = _BOXES + _PER_ROW * (_BOX + _GAP) + 16
_LANE, _BOX_HEIGHT, _PAD, _TOP = 37, 44, 10, 66


@dataclass(frozen=True)
class Folder:
    """The modules of a layer that stand in one folder, with those of folders inside of it; "" is the layer itself."""

    name: str
    modules: int
    lines: int

    def __str__(self) -> str:
        """In words. Lines are told in hundreds, so that not every change is one of the picture."""
        return (
            f"{self.modules} {'module' if self.modules == 1 else 'modules'}, {max(self.lines / 1000, 0.1):.1f}k lines"
        )


@dataclass(frozen=True)
class Layer:
    """A layer with its folders, the largest first and its own modules last."""

    name: str
    folders: tuple[Folder, ...]

    @property
    def total(self) -> Folder:
        return _sum(self.name, self.folders)


def _sum(name: str, folders: Sequence[Folder]) -> Folder:
    return Folder(name, sum(f.modules for f in folders), sum(f.lines for f in folders))


def architecture_picture() -> dict[Path, str]:
    """The file and its text."""
    return {FILE: picture(layers(), layer_imports())}


def layers() -> list[Layer]:
    """All layers there are, the last one first: what stands higher in the picture imports what stands lower."""
    modules: dict[str, Counter[str]] = {}
    lines: dict[str, Counter[str]] = {}
    for name, path, _ in all_imports():
        layer, *inside = name.split(".")
        if layer not in RANK:  # the package's own __init__ and __main__
            continue
        is_module = path.name != "__init__.py"
        folder = inside[0] if len(inside) > is_module else ""
        modules.setdefault(layer, Counter())[folder] += is_module
        lines.setdefault(layer, Counter())[folder] += len(path.read_text(encoding="utf-8").splitlines())
    found = []
    for layer in sorted(modules, key=lambda name: (-RANK[name], name)):
        folders = [Folder(name, count, lines[layer][name]) for name, count in modules[layer].items()]
        shown = [folder for folder in folders if folder.modules or folder.name]
        found.append(Layer(layer, tuple(sorted(shown, key=lambda f: (not f.name, -f.lines, f.name)))))
    return found


def layer_imports() -> Counter[tuple[str, str]]:
    """How many imports go from one layer to another. A module counts once for each module that it imports."""
    known = {f"{PACKAGE}.{name}" for name, _, _ in all_imports()}
    pairs = {
        (name, module if module in known else module.rpartition(".")[0])
        for name, _, imported in all_imports()
        for module, _ in imported
        if module.startswith(f"{PACKAGE}.")
    }
    ends = ((name.split(".")[0], module.split(".")[1]) for name, module in pairs if module in known and "." in module)
    return Counter((a, b) for a, b in ends if a != b and a in RANK and b in RANK)


def picture(stack: list[Layer], imports: Counter[tuple[str, str]]) -> str:
    top = {}
    y = _TOP
    for layer in stack:
        top[layer.name] = y
        y += _height(layer) + _GAP
    height = y + 14
    width = _LANES + len(stack) * _LANE + 2
    shapes = [
        _text(_LEFT, 30, "The layers of clinker_spark", "h"),
        _text(
            _LEFT, 51, f"Each imports only from those below it. {_sum('', [layer.total for layer in stack])}.", "soft"
        ),
        *_legend(width),
    ]
    for i, layer in enumerate(stack):
        shapes += _band(layer, top[layer.name], width, f"c{i % len(_HUES)}")
    middles = {layer.name: top[layer.name] + _height(layer) / 2 for layer in stack}
    for i, layer in enumerate(stack):
        shapes += _lane(layer.name, _LANES + i * _LANE + _LANE / 2, middles, imports, f"c{i % len(_HUES)}")
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<style>{_style()}</style>\n"
        f'<rect class="ground" width="{width}" height="{height}"/>\n{body}\n</svg>\n'
    )


def _height(layer: Layer) -> int:
    rows = -(-len(layer.folders) // _PER_ROW)
    text = 48 + 14 * len(PURPOSES[layer.name])
    return max(rows * (_BOX_HEIGHT + _GAP) - _GAP + 2 * _PAD, text + 4)


def _band(layer: Layer, y: float, width: float, colour: str) -> Iterator[str]:
    height = _height(layer)
    yield f'<rect class="band" x="8" y="{y}" width="{width - 16}" height="{height}" rx="6"/>'
    yield f'<rect class="fill {colour}" x="8" y="{y}" width="4" height="{height}" rx="2"/>'
    yield _text(_LEFT + 6, y + 22, layer.name, f"h {colour}")
    for i, line in enumerate(PURPOSES[layer.name]):
        yield _text(_LEFT + 6, y + 39 + 14 * i, line, "small")
    yield _text(_LEFT + 6, y + 40 + 14 * len(PURPOSES[layer.name]), str(layer.total), "small soft")
    for i, folder in enumerate(layer.folders):
        row, column = divmod(i, _PER_ROW)
        x = _BOXES + column * (_BOX + _GAP)
        yield from _box(layer, folder, x, y + _PAD + row * (_BOX_HEIGHT + _GAP))


def _box(layer: Layer, folder: Folder, x: float, y: float) -> Iterator[str]:
    own = "" if folder.name else " own"
    yield f'<rect class="box{own}" x="{x}" y="{y}" width="{_BOX}" height="{_BOX_HEIGHT}" rx="4"/>'
    yield _text(x + 9, y + 18, folder.name or f"{layer.name}/*.py", "small" if own else "name")
    yield _text(x + 9, y + 34, str(folder), "small soft")


def _lane(
    name: str, x: float, middles: dict[str, float], imports: Counter[tuple[str, str]], colour: str
) -> Iterator[str]:
    """One line per layer: from its dot down to every layer that it imports from; dashed, up to one that it calls."""
    start = middles[name]
    down = [(y, imports[name, other]) for other, y in middles.items() if imports[name, other] and y > start]
    up = [(y, imports[name, other]) for other, y in middles.items() if imports[name, other] and y < start]
    if down:
        yield f'<path class="line {colour}" d="M{x} {start}V{max(down)[0]}"/>'
    if up:
        yield f'<path class="line dashed {colour}" d="M{x} {start}V{min(up)[0]}"/>'
    yield f'<circle class="fill {colour}" cx="{x}" cy="{start}" r="5"/>'
    for y, count in [*down, *up]:
        tip = y - 10 if y > start else y + 10
        back = tip - 7 if y > start else tip + 7
        yield f'<path class="fill {colour}" d="M{x} {tip}L{x - 4.5} {back}H{x + 4.5}Z"/>'
        yield f'<rect class="pill {colour}" x="{x - 16}" y="{y - 10}" width="32" height="20" rx="10"/>'
        yield _text(x, y + 4, f"{count}", "count")


def _legend(width: float) -> Iterator[str]:
    lines = (
        "Right: a line for each layer, from its dot. The number where it arrives",
        "is how many imports go there; a dashed line hands over to a later layer.",
    )
    for i, line in enumerate(lines):
        yield _text(width - 14, 30 + 17 * i, line, "small soft end")


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(text)}</text>'


def _style() -> str:
    def colours(which: int) -> str:
        rules = (
            f"text.c{i}{{fill:{hue[which]}}}.fill.c{i}{{fill:{hue[which]}}}.line.c{i},.pill.c{i}{{stroke:{hue[which]}}}"
            for i, hue in enumerate(_HUES)
        )
        return "".join(rules)

    return (
        "text{font:13px DejaVu Sans,Verdana,sans-serif;fill:#1d2433}"
        "text.h{font-size:16px;font-weight:bold}text.name{font-weight:bold}text.small{font-size:11px}"
        "text.soft{fill:#5b6475}text.end{text-anchor:end}text.count{font-size:11px;text-anchor:middle}"
        ".ground{fill:#fff}.band{fill:#f3f5f9}.box{fill:#fff;stroke:#c3cad8}.own{stroke-dasharray:4 3}"
        ".line{fill:none;stroke-width:2}.dashed{stroke-dasharray:3 4}.pill{fill:#fff;stroke-width:1.5}"
        f"{colours(0)}"
        "@media (prefers-color-scheme:dark){text{fill:#e6e9f0}text.soft{fill:#a3adbf}.ground{fill:#0d1117}"
        ".band{fill:#171d28}.box,.pill{fill:#0d1117}.box{stroke:#3a4456}"
        f"{colours(1)}}}"
    )


if __name__ == "__main__":
    FILE.write_text(picture(layers(), layer_imports()), encoding="utf-8")
