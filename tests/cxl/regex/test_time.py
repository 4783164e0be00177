"""Patterns run in linear time: which of them Java gets, that RE2 and the threads mean the same, and evil ones."""

from __future__ import annotations

import random
import time
from itertools import product

import pytest
from pyspark.sql import SparkSession

from clinker_spark.core.types import STRING
from clinker_spark.cxl.program import compile as compile_program
from clinker_spark.cxl.regex.alphabet import alphabet_of
from clinker_spark.cxl.regex.matcher import Matcher
from clinker_spark.cxl.regex.parser import parse
from clinker_spark.cxl.regex.patterns import compile_regex
from clinker_spark.cxl.regex.threads import Threads
from clinker_spark.spark.columns.programs import apply

# pattern, what a text repeats, how it ends: a search that fails only after everything was tried
EVIL = [
    ("(a+)+$", "a", "!"),
    ("(a|aa)+$", "a", "!"),
    ("(a|a?)+$", "a", "!"),
    ("(a*)*b", "a", "!"),
    ("(.*)*x", "a", ""),
    ("(?:a?){30}a{30}$", "a", "!"),
    (r"^(\w+\s?)*$", "ab ", "!"),
    (r"^([a-zA-Z0-9])(([-.]|[_]+)?([a-zA-Z0-9]+))*(@)$", "a", "!"),
    (r"(\d+)-(\d+)x", "1", "-"),
    ("a*b", "a", "!"),
    (r"\d+$", "1", "!"),
    ("@(.+)$", "@", "\n"),
    (r"\s+$", " ", "."),
    ("(x+x+)+y", "x", ""),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a", "!"),
    (r"(?i)(?:é|É)+$", "é", "!"),
    (r"\b{start}(?:\w+ ?)+$", "ab ", "!"),
    ("(?:a{1,40}){1,30}$", "a", "!"),
    ('"(?:[^"]|"")*"$', '""', "x"),
]
LINEAR = [
    "abc",
    r"\d{4}-\d{2}-\d{2}",
    r"^[a-z]+@[a-z]+$",
    r"'[^']*'",
    r"\d+",
    "foo|bar",
    "^(?:ab|cd)*x",
    r"[A-Z]{2}\d+",
    r"(\d+)-(\d+)",
    "",
]


@pytest.mark.parametrize(("pattern", "unit", "end"), EVIL)
def test_java_never_sees_an_evil_pattern(pattern: str, unit: str, end: str) -> None:
    java = compile_regex(pattern).java
    assert java is None or java.startswith("(?<!")  # then it tries the start of a run only


@pytest.mark.parametrize("pattern", LINEAR)
def test_java_gets_what_is_safe(pattern: str) -> None:
    assert compile_regex(pattern).java is not None and compile_regex(pattern).java_full is not None


@pytest.mark.parametrize(("pattern", "unit", "end"), EVIL)
def test_twice_the_text_takes_about_twice_the_time(pattern: str, unit: str, end: str) -> None:
    """Generously: sixteen times for four times the text. A search of degree two would take as much and more at the
    first length already, one of a higher degree would not come to an end."""
    compiled = compile_regex(pattern)
    length = 2_000 if "{start}" in pattern else 50_000
    texts = [unit * (length * n // len(unit)) + end for n in (1, 4)]
    took = []
    for text in texts:
        compiled.search(text)
        began = time.thread_time()
        found = compiled.search(text)
        took.append(time.thread_time() - began)
        assert (found is not None) == (compiled.capture(text) is not None)
    assert took[1] < 16 * took[0] + 0.2


def test_evil_patterns_on_spark(quick: SparkSession) -> None:
    """All of them over values of thirty thousand characters, natively or not, as in the interpreter."""
    patterns = [p for p, _, _ in EVIL if "{start}" not in p] + LINEAR
    texts = sorted({unit * (30_000 // len(unit)) + end for _, unit, end in EVIL} | {"", "ab@cd", "é 12-34 'x'"})
    lines = [f"emit c{i} = t.capture({_quoted(p)})" for i, p in enumerate(patterns)]
    lines += ["emit found = t.find('(a+)+$')", "emit matched = t.matches('(a+)+!')"]
    program = compile_program("\n".join(lines), {"t": STRING})
    frame = quick.createDataFrame([(t,) for t in texts], "t string")
    rows = apply(program, frame).collect()
    assert len(rows) == len(texts)
    differ = []
    for row in rows:
        for i, pattern in enumerate(patterns):
            expected = compile_regex(pattern).capture(row["t"])
            if row[f"c{i}"] != expected:
                differ.append((pattern, row["t"][:20]))
        assert row["found"] is (compile_regex("(a+)+$").search(row["t"]) is not None)
        assert row["matched"] is compile_regex("(a+)+!").full_match(row["t"])
    assert differ == []


def _quoted(pattern: str) -> str:
    return "'" + pattern.replace("\\", "\\\\").replace("'", "\\'") + "'"


def test_re2_and_the_threads_mean_the_same() -> None:
    rng = random.Random(11)
    texts = ["".join(t) for n in range(5) for t in product("ab\n", repeat=n)] + ["é", "aéb", "é a", "😀a"]
    compared = 0
    for _ in range(800):
        parsed = parse(_random(rng, 4))
        alphabet = alphabet_of(parsed.tree)
        matcher, threads = Matcher(parsed.tree, parsed.groups), Threads(parsed.tree, alphabet, parsed.groups)
        for text in rng.sample(texts, 8):
            letters = alphabet.rewrite(text)
            assert matcher.search(text) == threads.run(letters, False), (parsed, text)
            assert matcher.full_match(text) == (threads.run(letters, True) is not None), (parsed, text)
            compared += 1
    assert compared > 5000


def _random(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(["a", "b", ".", "[ab]", "", "^", "$", r"\b", "(?m:^)", "(?m:$)", r"\B", r"\w", "é"])
    if kind < 0.5:
        return _random(rng, depth - 1) + _random(rng, depth - 1)
    if kind < 0.65:
        return f"(?:{_random(rng, depth - 1)}|{_random(rng, depth - 1)})"
    if kind < 0.8:
        return f"({_random(rng, depth - 1)})"
    sign = rng.choice(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?"])
    return f"(?:{_random(rng, depth - 1)}){sign}"


def test_more_letters_than_bytes_and_more_rounds_than_re2_counts() -> None:
    many = "|".join(chr(0x4E00 + i) + chr(0x5E00 + i) for i in range(400))
    assert compile_regex(f"^(?:{many})+$").full_match("".join(chr(0x4E00 + i) + chr(0x5E00 + i) for i in range(400)))
    assert not compile_regex(rf"\b(?:{many})+\b").full_match("\u4e00")
    assert compile_regex("^a{1500,3000}b?$").full_match("a" * 2999)
    assert not compile_regex("^a{1500,3000}b?$").full_match("a" * 3001)
    assert compile_regex("^(?:ab){1200}$").full_match("ab" * 1200)
