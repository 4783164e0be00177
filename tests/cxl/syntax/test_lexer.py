"""Tokens, literals, comments, and what is no token."""

from __future__ import annotations

import datetime

import pytest

from clinker_spark.cxl.syntax.lexer import Token, tokenize


def kinds(text: str) -> list[str]:
    return [token.kind for token in tokenize(text)[0][:-1]]


def single(text: str) -> Token:
    tokens, _ = tokenize(text)
    assert len(tokens) == 2, tokens
    return tokens[0]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("42", "int", 42),
        ("007", "int", 7),
        ("9223372036854775807", "int", 2**63 - 1),
        ("3.14", "float", 3.14),
        ("0.5", "float", 0.5),
        ('"a b"', "string", "a b"),
        ("'a \"b\"'", "string", 'a "b"'),
        (r'"\\ \" \' \n \t \r"', "string", "\\ \" ' \n \t \r"),
        (r'"\d+\w"', "string", r"\d+\w"),
        (r'"\\d+"', "string", r"\d+"),
        ('"é 😀 中"', "string", "é 😀 中"),
        ("#2024-02-29#", "date", datetime.date(2024, 2, 29)),
        ("$pipeline", "system", "pipeline"),
        ("price_2", "name", None),
        ("_x", "name", None),
        ("_", "_", None),
        ("emit", "emit", None),
        ("Emit", "name", None),
        ("each", "name", None),
    ],
)
def test_single_token(text: str, kind: str, value: object) -> None:
    token = single(text)
    assert (token.kind, token.value, token.text) == (kind, value, text)
    assert type(token.value) is type(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3.round()", ["int", ".", "name", "(", ")"]),
        ("3.5.round()", ["float", ".", "name", "(", ")"]),
        ("a??b", ["name", "??", "name"]),
        ("a=>b==c!=d>=e<=f", ["name", "=>", "name", "==", "name", "!=", "name", ">=", "name", "<=", "name"]),
        ("a--b", ["name", "-", "-", "name"]),
        ("x # 1 > 2", ["name"]),
        ("x #", ["name"]),
        ("\ufeffx", ["name"]),
        ("", []),
        (" \t\r\n ", []),
    ],
)
def test_sequences(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected


def test_line_starts_know_every_line_end() -> None:
    tokens, _ = tokenize("a b\nc\rd\r\ne # x\nf")
    assert [(t.text, t.line_start) for t in tokens[:-1]] == [
        ("a", True),
        ("b", False),
        ("c", True),
        ("d", True),
        ("e", True),
        ("f", True),
    ]


def test_spans_are_characters_and_comments_are_kept() -> None:
    text = 'é"😀" # ü\nx'
    tokens, comments = tokenize(text)
    assert [text[t.start : t.end] for t in tokens] == ["é", '"😀"', "x", ""]
    assert [(c.text, text[c.span.start : c.span.end]) for c in comments] == [("# ü", "# ü")]


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        ("&&", "'&&' is not an operator", "'and'"),
        ("||", "'||' is not an operator", "'or'"),
        ("!", "'!' is not an operator", "'not'"),
        ("<>", "'<>' is not an operator", "'!='"),
        ("//", "does not start a comment", "'#'"),
        ("?", "'?' is not an operator", "'??'"),
        (";", "unexpected ';'", "remove it"),
        ('"abc', "not closed on its line", 'add "'),
        ("'ab\\", "not closed on its line", "add '"),
        ("99999999999999999999", "does not fit in 64 bits", "9223372036854775807"),
        ("9" * 5000, "does not fit in 64 bits", "9223372036854775807"),
        ("9" * 400 + ".0", "too large for a float", "308"),
        ("#2024-13-01#", "there is no date 2024-13-01", "#2024-03-15#"),
        ("#2023-02-29#", "there is no date 2023-02-29", "#2024-03-15#"),
        ("#0000-01-01#", "there is no date", "#2024-03-15#"),
        ("#2024-1-1#", "is not a date", "#2024-03-15#"),
        ("#2024-01-01", "is not a date", "#2024-03-15#"),
        ("#1", "is not a date", "space after '#'"),
        ("#2024-01-01T10:00:00#", "no literal for a date with a time", "to_datetime()"),
        ("1_000", "'1_000' is not a number", "plain digits"),
        ("1e5", "'1e5' is not a number", "plain digits"),
        ("0xFF", "'0xFF' is not a number", "plain digits"),
        ("3.5x", "'3.5x' is not a number", "plain digits"),
        ("prénom", "'prénom' is not a name", "letters A-Z"),
        ("“", "unexpected character '“'", "quote text with"),
        ("\u00a0", "unexpected character U+00A0", "ordinary space"),
        ("\u200b", "unexpected character U+200B", "ordinary space"),
        ("≠", "unexpected character '≠'", "'!='"),
        ("$", "unexpected character '$'", "$pipeline.name"),
        ("\x00", "unexpected character U+0000", "remove it"),
    ],
)
def test_problems(text: str, message: str, advice: str) -> None:
    token = single(text)
    assert token.kind == "error"
    assert message in token.value.message
    assert advice in token.value.help
    assert (token.start, token.end) == (0, len(text))


@pytest.mark.parametrize("text", [" " * 60_000, '"' * 60_000, "a" * 60_000 + "é", "'\\" * 30_000, "#1" * 30_000])
def test_no_input_takes_long(text: str) -> None:
    tokens, _ = tokenize(text)
    assert tokens[-1].kind == "end"
