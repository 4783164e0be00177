"""Output paths with tokens, names of split files, patterns of input files."""

from __future__ import annotations

import pytest

from clinker_spark.config.paths.patterns import glob_problem, regex_problem
from clinker_spark.config.paths.templates import TemplateError, Token, naming_problem, parse_template


def test_tokens_and_braces() -> None:
    assert parse_template("a{{b}}{n}") == ("a", "{", "b", "}", Token("n", (), 6, 9))
    assert parse_template("{channel:pre_:_post}") == (Token("channel", ("pre_", "_post"), 0, 20),)
    assert parse_template("plain.csv") == ("plain.csv",)


@pytest.mark.parametrize(("text", "start", "end"), [("x{tme}", 1, 6), ("a{", 1, 2), ("a}b", 1, 2), ("{}", 0, 2)])
def test_templates_that_cannot_be_used(text: str, start: int, end: int) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert (caught.value.start, caught.value.end) == (start, end)
    assert caught.value.help


@pytest.mark.parametrize("text", ["{stem}_{seq:04}.{ext}", "{seq:3}", "part-{seq:04}.csv", "{{x}}{seq:1}"])
def test_namings(text: str) -> None:
    assert naming_problem(text) is None


@pytest.mark.parametrize(
    "text", ["part.csv", "{seq}", "{seq:04}{seq:04}", "{stm}_{seq:04}", "{seq:004}", "{", "{stem:4}{seq:1}"]
)
def test_namings_that_cannot_be_used(text: str) -> None:
    assert naming_problem(text)


@pytest.mark.parametrize("text", ["*.csv", "a/**/b", "**", "[!a-z].csv", "[]]", "{a,b}/{c}", "s3a://bucket/*.csv"])
def test_globs(text: str) -> None:
    assert glob_problem(text) is None


@pytest.mark.parametrize("text", ["a**", "***", "[", "[a", "{a", "a}", "{a,{b}"])
def test_globs_that_cannot_be_used(text: str) -> None:
    assert glob_problem(text)


def test_regular_expressions() -> None:
    assert regex_problem(r"data/\d+\.csv") is None
    assert regex_problem("(")
    assert regex_problem("a(?=b)")
