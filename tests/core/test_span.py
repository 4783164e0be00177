from __future__ import annotations

import pytest

from clinker_spark.core.span import NO_SPAN, Source, Span


def test_to_joins_two_spans() -> None:
    assert Span(2, 5).to(Span(8, 9)) == Span(2, 9)
    assert Span(2, 9).to(Span(3, 4)) == Span(2, 9)
    assert NO_SPAN.to(Span(0, 3)) == Span(0, 3)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a\n", ["a", ""]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\rc\n\nd", ["a", "b", "c", "", "d"]),
        ("a\x0bb\x0cc\u2028d\x85e", ["a\x0bb\x0cc\u2028d\x85e"]),  # not line ends for an editor
    ],
)
def test_lines(text: str, lines: list[str]) -> None:
    source = Source("t", text)
    assert source.position(len(text))[0] == len(lines)
    assert [source.line_text(n) for n in range(1, len(lines) + 1)] == lines


@pytest.mark.parametrize("text", ["", "ab\ncd\n", "ab\r\ncd", "\n\n\n", "日本\n語x", "\r\r\n\r"])
def test_position_and_line_text_agree(text: str) -> None:
    source = Source("t", text)
    for offset, char in enumerate(text):
        line, column = source.position(offset)
        if char not in "\r\n":
            assert source.line_text(line)[column - 1] == char


def test_position_at_the_borders() -> None:
    source = Source("t", "ab\ncd\n")
    assert source.position(0) == (1, 1)
    assert source.position(2) == (1, 3)  # the line end belongs to its line
    assert source.position(3) == (2, 1)
    assert source.position(6) == (3, 1)  # the end of the file


def test_repr_does_not_print_the_text() -> None:
    assert "secret" not in repr(Source("t", "secret"))
