"""Golden tests of the renderers: a change of the output is a change of these texts."""

from __future__ import annotations

import io
import json
import re
from random import Random

import pytest

from clinker_spark.core.diagnostics import Diagnostic, Label, Severity
from clinker_spark.core.diagnostics.render import count_line, render_all, render_json, render_text, use_color
from clinker_spark.core.diagnostics.snippet import MAX_WIDTH, layout
from clinker_spark.core.span import Source, Span


def at(source: Source, text: str, occurrence: int = 0) -> Span:
    """The span of a piece of the source."""
    start = -1
    for _ in range(occurrence + 1):
        start = source.text.index(text, start + 1)
    return Span(start, start + len(text))


def rendered(diagnostic: Diagnostic, hint: bool = False) -> str:
    return "\n" + render_text(diagnostic, color=False, hint=hint) + "\n"


def test_everything_at_once() -> None:
    source = Source("order.cxl", "let net = price * 2\nemit label = item + net\n")
    found = Diagnostic(
        "E200",
        "cannot apply '+' to String and Float",
        source,
        at(source, "+"),
        "use '.to_string()' on the right",
        labels=(Label(at(source, "item"), "String"), Label(at(source, "net", 1), "Float")),
    )
    assert (
        rendered(found, hint=True)
        == """
error[E200]: cannot apply '+' to String and Float
  --> order.cxl:2:19
   |
 2 | emit label = item + net
   |              ---- ^ --- Float
   |              |
   |              String
   |
   = help: use '.to_string()' on the right
   = more: clinker explain --code E200
"""
    )


def test_labels_on_other_lines() -> None:
    source = Source("a.cxl", "\n".join(f"emit c{n} = {n}" for n in range(1, 13)))
    found = Diagnostic(
        "E200",
        "used twice",
        source,
        at(source, "c12"),
        labels=(Label(at(source, "c11"), "just before"), Label(at(source, "c2"), "first here")),
    )
    assert (
        rendered(found)
        == """
error[E200]: used twice
   --> a.cxl:12:6
    |
  2 | emit c2 = 2
    |      -- first here
  ...
 11 | emit c11 = 11
    |      --- just before
 12 | emit c12 = 12
    |      ^^^
"""
    )


def test_several_labels_on_one_line() -> None:
    source = Source("a.cxl", "emit v = aa + bb + cc")
    found = Diagnostic(
        "E200",
        "three",
        source,
        at(source, "v"),
        labels=tuple(Label(at(source, name), f"this is {name}") for name in ("aa", "bb", "cc")),
    )
    assert (
        rendered(found)
        == """
error[E200]: three
  --> a.cxl:1:6
   |
 1 | emit v = aa + bb + cc
   |      ^   --   --   -- this is cc
   |          |    |
   |          |    this is bb
   |          this is aa
"""
    )


def test_label_around_the_primary() -> None:
    source = Source("a.cxl", "emit v = (a + 1)")
    found = Diagnostic("E200", "inside", source, at(source, "+"), labels=(Label(at(source, "a + 1"), "the sum"),))
    assert (
        rendered(found)
        == """
error[E200]: inside
  --> a.cxl:1:13
   |
 1 | emit v = (a + 1)
   |           --^-- the sum
"""
    )


def test_span_over_several_lines() -> None:
    source = Source("a.cxl", "emit a = (1 +\n\n    2\n)\nemit b = 1")
    found = Diagnostic("E200", "long", source, Span(9, source.text.index(")") + 1))
    assert (
        rendered(found)
        == """
error[E200]: long
  --> a.cxl:1:10
   |
 1 | emit a = (1 +
   |          ^^^^
 ...
 3 |     2
   |     ^
 4 | )
   | ^
"""
    )


def test_very_long_span_shows_its_ends() -> None:
    source = Source("a.cxl", "emit a = [\n" + "".join(f"  {n},\n" for n in range(20)) + "]")
    found = Diagnostic("E200", "long", source, Span(9, len(source.text)))
    assert (
        rendered(found)
        == """
error[E200]: long
   --> a.cxl:1:10
    |
  1 | emit a = [
    |          ^
  2 |   0,
    |   ^^
  ...
 22 | ]
    | ^
"""
    )


def test_span_that_takes_its_line_end_along() -> None:
    source = Source("a.cxl", "emit a = x\r\nemit b = 1\r\n")
    assert (
        rendered(Diagnostic("E203", "m", source, Span(9, 12)))
        == """
error[E203]: m
  --> a.cxl:1:10
   |
 1 | emit a = x
   |          ^
"""
    )


def test_tabs_and_wide_characters() -> None:
    source = Source("a.cxl", '\temit 名 =\t"日本語" + x\u0301y')
    found = Diagnostic("E203", "m", source, at(source, "x\u0301y"), labels=(Label(at(source, '"日本語"'), "text"),))
    # Four cells for a tab at the line's start, two for each CJK character, none for the combining accent.
    assert (
        rendered(found)
        == """
error[E203]: m
  --> a.cxl:1:19
   |
 1 |     emit 名 =   "日本語" + x\u0301y
   |                 --------   ^^
   |                 |
   |                 text
"""
    )


@pytest.mark.parametrize("text", ["emit a =", "emit a = ", "", "emit a =\n"])
def test_end_of_file(text: str) -> None:
    source = Source("a.cxl", text)
    out = render_text(Diagnostic("E202", "m", source, Span(len(text), len(text))), color=False)
    line, column = source.position(len(text))
    assert f"a.cxl:{line}:{column}" in out
    caret = next(row for row in out.splitlines() if "^" in row)
    assert caret == "   | " + " " * (column - 1) + "^"


def test_very_long_lines_are_cropped_around_the_place() -> None:
    text = "emit a = " + "b + " * 300 + "!" + " + c" * 300
    source = Source("a.cxl", text)
    out = render_text(Diagnostic("E202", "m", source, at(source, "!")), color=False)
    lines = out.splitlines()
    shown = next(line for line in lines if line.startswith(" 1 | "))
    caret = next(line for line in lines if "^" in line)
    assert len(shown) < MAX_WIDTH + 20
    assert shown[caret.index("^")] == "!"
    assert shown.startswith(" 1 | ...") and shown.endswith("...")


def test_no_span_and_no_source() -> None:
    source = Source("a.cxl", "emit a = 1")
    assert rendered(Diagnostic("E226", "m", source), hint=True) == (
        "\nerror[E226]: m\n  --> a.cxl\n   = more: clinker explain --code E226\n"
    )
    assert rendered(Diagnostic("E224", "m", help="h")) == "\nerror[E224]: m\n   = help: h\n"


def test_texts_of_several_lines() -> None:
    assert rendered(Diagnostic("E202", "one\ntwo", help="first\nsecond")) == (
        "\nerror[E202]: one\n  two\n   = help: first\n           second\n"
    )


def test_a_file_cannot_drive_the_terminal() -> None:
    source = Source("evil\x1b]0;t\x07.cxl", "emit a = '\x1b[31m\u202e\x00\x9b\ud800' + x\u2028")
    found = Diagnostic("E200", "bad \x1b[2J", source, at(source, "+"), "no \x07", labels=(Label(Span(0, 4), "\x1b["),))
    out = render_text(found, color=False)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\ud800]", out)
    out.encode()  # and it can be written


def test_offsets_outside_the_text_do_no_harm() -> None:
    source = Source("a.cxl", "emit")
    for span in (Span(90, 99), Span(3, 99), Span(-5, 2), Span(4, 1)):
        assert "error[E202]: m" in render_text(Diagnostic("E202", "m", source, span), color=False)


def test_color_changes_nothing_but_color() -> None:
    source = Source("a.cxl", "emit a = b + 日本\n")
    found = Diagnostic(
        "W200", "m", source, at(source, "b"), "h", Severity.WARNING, labels=(Label(at(source, "日本"), "l"),)
    )
    colored = render_text(found, color=True)
    assert "\x1b[1;33mwarning[W200]\x1b[0m" in colored
    assert "\x1b[1;33m^\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render_text(found, color=False)


def test_render_all_counts_and_hints_once() -> None:
    source = Source("a.cxl", "emit a = b\n")
    warning = Diagnostic("W200", "w", severity=Severity.WARNING)
    error = Diagnostic("E203", "e", source, Span(9, 10))
    assert (
        "\n" + render_all([warning, error, error], False) + "\n"
        == """
warning[W200]: w

error[E203]: e
  --> a.cxl:1:10
   |
 1 | emit a = b
   |          ^

error[E203]: e
  --> a.cxl:1:10
   |
 1 | emit a = b
   |          ^

2 errors, 1 warning; for more: clinker explain --code E203
"""
    )
    assert render_all([], False) == ""


def test_count_line() -> None:
    error, warning = Diagnostic("E200", ""), Diagnostic("W200", "", severity=Severity.WARNING)
    assert count_line([error]) == "1 error"
    assert count_line([warning, warning]) == "2 warnings"
    assert count_line([error, warning, error]) == "2 errors, 1 warning"


def test_json() -> None:
    source = Source("ä.cxl", "emit a = 1\nemit b = x + 1\n")
    found = Diagnostic(
        "E203", "unresolved 'x'", source, Span(20, 21), "h", phase="resolve", labels=(Label(Span(0, 4), "l"),)
    )
    place = {"line": 2, "column": 10, "end_line": 2, "end_column": 11, "start": 20, "end": 21}
    label = {"text": "l", "line": 1, "column": 1, "end_line": 1, "end_column": 5, "start": 0, "end": 4}
    none = dict.fromkeys(place)
    text = render_json([found, Diagnostic("W200", "w", severity=Severity.WARNING)])
    assert text.isascii()
    assert json.loads(text) == [
        {
            "code": "E203",
            "severity": "error",
            "phase": "resolve",
            "message": "unresolved 'x'",
            "help": "h",
            "file": "ä.cxl",
            **place,
            "labels": [label],
        },
        {
            "code": "W200",
            "severity": "warning",
            "phase": None,
            "message": "w",
            "help": None,
            "file": None,
            **none,
            "labels": [],
        },
    ]
    assert json.loads(render_json([])) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_use_color(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    assert use_color(Terminal())
    assert not use_color(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not use_color(Terminal())
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert use_color(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not use_color(Terminal())


def test_layout_counts_cells() -> None:
    assert layout("\ta\tb")[1] == [0, 4, 5, 8, 9]
    assert layout("日e\u0301x")[1] == [0, 2, 3, 3, 4]


def test_any_text_and_any_spans_can_be_rendered() -> None:
    random = Random(20)
    alphabet = "ab =+()\n\r\t日\u0301\u200d\x00\x1b\ud800\U0001f600"
    for _ in range(2000):
        text = "".join(random.choices(alphabet, k=random.randrange(40)))
        spans = [Span(*sorted(random.choices(range(45), k=2))) for _ in range(4)]
        labels = tuple(Label(span, random.choice(["", "note", "日本"])) for span in spans[1:])
        found = Diagnostic("E202", "m", Source("t", text), spans[0], "h", labels=labels)
        out = render_text(found, color=False)
        assert "^" in out
        assert out == re.sub(r"\x1b\[[0-9;]*m", "", render_text(found, color=True))
        json.loads(render_json([found]))


def test_a_warning_is_called_one() -> None:
    """By its code, whoever makes it."""
    found = Diagnostic("W421", "something was left")
    assert found.severity is Severity.WARNING and "\nwarning[W421]: " in rendered(found)
    assert Diagnostic("E421", "no").severity is Severity.ERROR
