"""From a character of a scalar's text to its place in the file, and back to the same character."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clinker_spark.config.errors import ConfigError
from clinker_spark.config.tree.scalar_text import ScalarText
from clinker_spark.config.tree.yaml import parse_yaml
from clinker_spark.core.diagnostics import Diagnostic, Label
from clinker_spark.core.diagnostics.render import render_text
from clinker_spark.core.span import Source, Span


def scalar(text: str, *path: str | int) -> ScalarText:
    found = parse_yaml(Source("t.yaml", text)).text_at(path or ("cxl",))
    assert found is not None
    return found


def check(found: ScalarText) -> None:
    """Every character stands in the file where it is said to, or is a line end or an escape there."""
    raw = found.source.text
    table = [found.to_file_offset(i) for i in range(len(found.text) + 1)]
    assert table == sorted(table)
    assert found.span.start <= table[0] and table[-1] <= found.span.end
    for i, char in enumerate(found.text):
        there = raw[table[i] : table[i] + 1]
        trailing = char in " \n" and table[i] >= found.span.end - 1
        assert there == char or there == "\\" or (char in " \n" and there in "\r\n\x85\u2028\u2029") or trailing


@pytest.mark.parametrize(
    "text",
    [
        "cxl: emit a = b",
        "cxl: emit a = b\n  and more\n\n\n  and more",
        "cxl: 'it''s ''quoted'''",
        "cxl: 'over\n  lines\n\n  more'",
        'cxl: "a\\tb \\u00e9 \\x41 \\U0001F600 \\" end"',
        'cxl: "continued \\\n   here \\\n\n   there"',
        'cxl: "folded\n  text\n\n  here"',
        "cxl: |\n  emit a = 1\n  emit b = 2\n",
        "cxl: |-\n  emit a = 1\n\n    indented\n  emit b = 2\n\n\n",
        "cxl: |+\n  emit a = 1\n\n\n",
        "cxl: |2\n    two more\n  than needed\n",
        "cxl: |   # comment\n  emit a = 1\n",
        "cxl: |\n\n\n  emit after blank lines\n",
        "cxl: >\n  folded text\n  goes on\n\n  new paragraph\n    more indented\n  back\n",
        "cxl: >-\n  one\n  two\n",
        "cxl: |\r\n  emit a = 1\r\n  emit b = 2\r\n",
        "cxl: >\r\n  a\r\n  b\r\n\r\n  c\r\n",
        "cxl: ''",
        "cxl: |\n\nother: 1\n",
        "{cxl: emit a, other: 1}",
        "cxl: é = 日本 + 'x'",
    ],
)
def test_every_character_is_found(text: str) -> None:
    check(scalar(text))


TEXTS = st.text(alphabet="ab:c '\"\\\n\n  #é日\t-{}[],&*!|>%@", max_size=30)


@example(" : :", ">", 5, True, False)
@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from([None, "'", '"', "|", ">"]), st.sampled_from([5, 12, 80]), st.booleans(), st.booleans())
def test_texts_that_yaml_writes_itself(text: str, style: str | None, width: int, unicode: bool, crlf: bool) -> None:
    written = yaml.dump({"k": [{"x": text}]}, default_style=style, width=width, allow_unicode=unicode)
    found = scalar(written.replace("\n", "\r\n") if crlf else written, "k", 0, "x")
    if not crlf:  # PyYAML does not always read what it has written: a folded text that begins with a blank
        assert found.text == yaml.safe_load(written)["k"][0]["x"]
    check(found)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(alphabet="ab =#'\"\\", max_size=8), max_size=8),
    st.sampled_from(["|", "|-", ">", ">+", "", '"', "'"]),
)
def test_texts_written_by_hand(lines: list[str], style: str) -> None:
    quote = style if style in ("'", '"') else ""
    body = "\n".join(f"   {line}".rstrip() if quote or not style else f"   {line}" for line in lines)
    text = f"a:\n - cxl: {style}{'' if quote else chr(10)}{body}{quote}\n"
    try:
        found = parse_yaml(Source("t.yaml", text)).text_at(("a", 0, "cxl"))
    except ConfigError:
        return
    if found is not None:
        check(found)


def test_a_diagnostic_moves_into_the_file() -> None:
    file = "nodes:\n  - config:\n      cxl: |\n        emit a = 1\n        emit b = prise * 2\n"
    found = scalar(file, "nodes", 0, "config", "cxl")
    start = found.text.index("prise")
    inner = Diagnostic("E203", "unknown name 'prise'", Source("x", found.text), Span(start, start + 5), "price?")
    moved = found.relocate(replace(inner, labels=(Label(Span(0, 4), "here"),)))
    assert render_text(moved, color=False, hint=False).splitlines() == [
        "error[E203]: unknown name 'prise'",
        "  --> t.yaml:5:18",
        "   |",
        " 4 |         emit a = 1",
        "   |         ---- here",
        " 5 |         emit b = prise * 2",
        "   |                  ^^^^^",
        "   |",
        "   = help: price?",
    ]


def test_spans_with_escapes_cover_the_escape() -> None:
    found = scalar('cxl: "a\\u00e9b"')
    assert found.source.text[found.locate(Span(1, 2)).start : found.locate(Span(1, 2)).end] == "\\u00e9"
    found = scalar("cxl: 'a''b'")
    assert found.locate(Span(1, 2)) == Span(7, 9)


def test_places_outside_the_text_are_its_ends() -> None:
    found = scalar("cxl: abc\n")
    assert (found.to_file_offset(-5), found.to_file_offset(99)) == (5, 8)
    assert found.locate(Span(3, 3)) == Span(8, 8)
