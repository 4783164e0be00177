"""The pictures of the guide: all are drawn by a script, shown somewhere, and legible by themselves.

That they are what the scripts draw now is a matter of tests/test_docs.py, with everything else that is generated."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from architecture_picture import architecture_picture, layers  # noqa: E402 (the path above must come first)
from record_pictures import pictures  # noqa: E402
from rule_pictures import RIGHT, RULES, rule_pictures  # noqa: E402
from rule_stories import STATES, story  # noqa: E402

from tests.property.rollback.examples import EXAMPLES, Example  # noqa: E402
from tests.property.rollback.explained import EXPLAINED  # noqa: E402

FOLDER = ROOT / "docs" / "pictures"
EVERY = [*EXAMPLES, *EXPLAINED]


def drawn_as(example: Example) -> str:
    (name,) = (name for name, (_, rule) in RULES.items() if example.rule.startswith(rule))
    return name


def test_there_are_no_other_pictures_than_those_that_are_drawn() -> None:
    assert set(FOLDER.rglob("*.svg")) == {*pictures(), *rule_pictures(), *architecture_picture()}


def test_every_rule_is_drawn_once_and_shown_in_the_guide() -> None:
    shown = re.findall(r"\(pictures/rules/([\w-]+)\.svg\)", (ROOT / "docs" / "correlation.md").read_text())
    assert sorted(shown) == sorted(RULES) == sorted(map(drawn_as, EVERY))


@pytest.mark.parametrize("example", EVERY, ids=drawn_as)
def test_a_picture_shows_every_record_line_and_letter(example: Example) -> None:
    told = story(example)
    states = {(t.source.name, fate.number): fate.state for t in told.tables for fate in t.fates}
    failed = {letter[:2] for letter in example.letters if letter[2] and letter[1]}
    others = {letter[:2] for letter in example.letters if not letter[2]}
    assert states.keys() == {(s.name, n) for s in example.graph.sources for n in range(1, len(s.rows) + 1)}
    assert set(states.values()) <= set(STATES)
    assert failed == {origin for origin, state in states.items() if state == "failed"}
    letters = {origin for origin, state in states.items() if state in ("withheld", "retracted")}
    assert others == letters if example.graph.handling.get("include_retracted", True) else others < letters
    assert {o.name: [o.header, *(t for mark, t in o.lines if mark != "-")] for o in told.outputs} == example.outputs
    totals = [total for those in told.totals.values() for total in those if total.failed_in]
    assert len(totals) == sum(letter[0] == "<merged>" for letter in example.letters)


@pytest.mark.parametrize("path", sorted((FOLDER / "rules").glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_needs_nothing_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert len(text) < 8_000
    assert "href" not in text and "url(" not in text and "@import" not in text
    assert "prefers-color-scheme:dark" in text
    for shape in root.iter("{http://www.w3.org/2000/svg}text"):
        x, y, said = float(shape.attrib["x"]), float(shape.attrib["y"]), "".join(shape.itertext())
        right = RIGHT if shape.attrib.get("class", "").replace("-", " ") in STATES else width
        assert x + len(said) * 7.3 <= right and y < height, said


def test_the_architecture_is_drawn_whole_and_every_text_has_room() -> None:
    [(path, text)] = architecture_picture().items()
    assert f"](pictures/{path.name})" in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert "href" not in text and "url(" not in text and "@import" not in text
    stack = layers()
    said = re.findall(r'<text class="h[^>]*>([^<]*)<', text)[1:]
    assert said == [layer.name for layer in stack]
    shapes = ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}rect")
    boxes = [shape for shape in shapes if shape.attrib["class"].startswith("box")]
    assert len(boxes) == sum(len(layer.folders) for layer in stack)
    width = float(boxes[0].attrib["width"])
    assert max(len(str(folder)) for layer in stack for folder in layer.folders) * 5.5 + 18 <= width
