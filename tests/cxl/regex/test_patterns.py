r"""Regular expressions: the dialect, its two translations, and that both engines agree.

What a pattern means is Rust's `regex` crate's to say; the expectations below were compared with it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from clinker_spark.core.types import INT, STRING
from clinker_spark.cxl.builtins.sqltext import sql_string
from clinker_spark.cxl.builtins.stringops import capture_sql, find_sql, matches_sql
from clinker_spark.cxl.builtins.table import NOT_LITERAL, SqlCall
from clinker_spark.cxl.regex.patterns import Regex, RegexError, compile_regex

REFUSED = [
    # pattern, where, a word of the message
    ("[", 0, "unclosed"),
    ("(a", 0, "unclosed group"),
    ("a)", 1, "unopened"),
    ("*a", 0, "nothing to repeat"),
    ("a|*", 2, "nothing to repeat"),
    ("a(?i)*", 5, "nothing to repeat"),
    ("a{", 1, "{n}"),
    ("a{,3}", 1, "{n}"),
    ("a{3,2}", 1, "smaller"),
    ("a++", 1, "possessive"),
    ("a{2}+", 1, "possessive"),
    ("a(?=b)", 1, "look-around"),
    ("(?<!a)b", 0, "look-around"),
    ("(?>a)", 0, "atomic"),
    (r"(a)\1", 3, "back-reference"),
    ("(?P<n>a)(?P=n)", 8, "back-reference"),
    ("(?P<n>a)(?<n>b)", 11, "two groups"),
    ("(?<1a>b)", 3, "group name"),
    ("(?z)", 0, "group syntax"),
    ("(?ii)", 0, "twice"),
    ("(?i-)", 0, "group syntax"),
    ("a\\", 1, "backslash"),
    (r"\Z", 0, r"\z"),
    (r"\K", 0, "unknown escape"),
    (r"\é", 0, "unknown escape"),
    (r"\x{110000}", 0, "Unicode character"),
    (r"\x{D800}", 0, "Unicode character"),
    (r"\xg", 0, "hexadecimal"),
    (r"\p{Klingon}", 0, "Klingon"),
    ("[b-a]", 1, "order"),
    (r"[a-\d]", 1, "range"),
    (r"[\b]", 1, "assertion"),
    ("[[:alfa:]]", 1, "alfa"),
    (r"(?i)\p{Lu}", 4, "case"),
    ("(?-u:.)", 5, "ASCII"),
    ("(?:" * 150 + ")" * 150, 303, "nested"),
    ("(?:a{1000}){1000}", 11, "too large"),
]


@pytest.mark.parametrize(("pattern", "offset", "word"), REFUSED)
def test_refused(pattern: str, offset: int, word: str) -> None:
    with pytest.raises(RegexError) as caught:
        compile_regex(pattern)
    assert word in caught.value.message
    assert caught.value.offset == offset


# pattern, texts in which it is found, texts in which it is not
FOUND = [
    ("a$", ["ba"], ["a\n"]),
    ("^b", ["ba"], ["a\nb"]),
    ("(?m)^b$", ["a\nb\nc", "b"], ["ab"]),
    ("(?m)^$", ["a\n", ""], ["a"]),
    ("a.c", ["abc", "a\rc", "a\u2028c", "a😀c"], ["a\nc"]),
    ("(?s)a.c", ["a\nc"], ["ac"]),
    (r"^\d$", ["7", "٣", "߀"], ["x", "²", "77"]),
    (r"^\w+$", ["été", "naïve_1", "e\u0301", "日本"], ["a-b", ""]),
    (r"^\s$", ["\u00a0", "\u3000", "\x85", "\n"], ["\u200b", "\x1c"]),
    (r"\bé", ["un été"], ["né"]),
    (r"\B", ["ab", ""], ["a"]),
    (r"\b{start}a\b{end}", ["b a c"], ["ba c"]),
    (r"(?-u)^\w+$", ["a_1"], ["é"]),
    ("(?i)straße", ["STRAẞE", "straße"], ["STRASSE"]),
    ("(?i)^[k-m]$", ["K", "\u212a", "l"], ["j"]),
    ("(?i)^i$", ["I"], ["ı", "İ"]),
    ("(?i)ς", ["Σ", "σ"], ["s"]),
    ("(?i:a)b", ["Ab"], ["AB"]),
    ("a(?i)b|c", ["aB", "C"], ["AB"]),
    ("(?x) a b # comment\n c", ["abc"], ["a b c"]),
    ("(?x)[a b]", ["b"], [" "]),
    (r"^[[:alpha:]&&[^b]]$", ["a", "Z"], ["b", "é"]),
    (r"^[\w--\d]$", ["a", "é"], ["1", "-"]),
    ("^[a-c~~b-d]$", ["a", "d"], ["b", "e"]),
    (r"^[^\pL\s]$", ["1", "😀"], ["a", " "]),
    (r"^\p{Greek}+$", ["αβγ"], ["abc"]),
    (r"^\P{Lu}$", ["a", "1"], ["A"]),
    (r"^\p{sc!=Latin}$", ["1", "α"], ["a"]),
    (r"^[]a]$", ["]", "a"], ["["]),
    (r"^[^-a]$", ["b"], ["-", "a"]),
    (r"\x41\u{42}\u0043\U00000044", ["ABCD"], ["abcd"]),
    (r"^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
    (r"^a{ 2 }$", ["aa"], ["a"]),
    ("^(?:a|b|)$", ["", "a"], ["c"]),
    ("[a&&b]", [], ["a", "b", ""]),
    ("(?:)*x", ["x"], ["y"]),
    ("'", ["it's"], ["its"]),
    (r"\$\{x\}", ["${x}"], ["$x"]),
]


@pytest.mark.parametrize(("pattern", "found", "not_found"), FOUND)
def test_search(pattern: str, found: list[str], not_found: list[str]) -> None:
    compiled = compile_regex(pattern)
    assert [t for t in found if compiled.search(t) is None] == []
    assert [t for t in not_found if compiled.search(t) is not None] == []


# pattern, text, the groups
CAPTURED = [
    ("a+?", "aaa", ["a"]),
    ("(?U)a+", "aaa", ["a"]),
    ("(?U)a+?", "aaa", ["aaa"]),
    ("(a)|(b)", "b", ["b", None, "b"]),
    ("(?P<y>[0-9]{4})-(?<m>[0-9]{2})", "on 2024-05", ["2024-05", "2024", "05"]),
    ("(x*)(y)?", "abc", ["", "", None]),
    ("a|ab", "ab", ["a"]),
    ("(?:(a)|b)*", "ab", ["ab", "a"]),
]


@pytest.mark.parametrize(("pattern", "text", "groups"), CAPTURED)
def test_capture(pattern: str, text: str, groups: list[str | None]) -> None:
    compiled = compile_regex(pattern)
    assert [compiled.capture(text, g) for g in range(compiled.groups + 1)] == groups
    assert compiled.capture(text, compiled.groups + 1) is None
    assert compiled.capture(text, -1) is None


def test_full_match_tries_all_alternatives() -> None:
    assert compile_regex("a|ab").full_match("ab")
    assert not compile_regex("^a").full_match("ab")
    assert not compile_regex("a").full_match("a\n")


@pytest.mark.parametrize(
    ("pattern", "java"),
    [
        ("abc", "abc"),
        ("^a.b$", r"\Aa[^\n]b\z"),
        (r"\w\b", r"(?U)\w\b"),
        ("(?i)ab", "[Aa][Bb]"),
        ("^(?:a|b|c)*d", r"\A[a-c]*d"),
        ("^(?:(?:a+)+)+b", r"\Aa+b"),
        # Within a run that a match may begin with, only the first place is tried.
        ("(?:a|b|c)*d", "(?<![a-c])[a-c]*d"),
        (r"(\d+)-(\d+)", r"(?<!\p{Nd})(\p{Nd}+)-(\p{Nd}+)"),
        (r"(\d+)-(\d+)x", None),
        ("(a+)+b", None),
        (".*x", None),
        ("(?P<n>a)", "(a)"),
        (r"[\d&&[^5]]", r"[[\p{Nd}]&&[^5]]"),
        # Iterations that are never given back run in a loop; others would call themselves and exhaust Java's stack.
        (r"^([\w-]+\.)+$", r"(?U)\A([\-\w]+\.)++\z"),
        ("(?:ab|cd)*", r"(?:ab|cd)*+|(?!)\x{10000}"),
        ("(?:ab|a){3}", "(?:ab|a){3}"),
        ("(?:a|ab)*c", None),
        ("(?:a?b?)*c", None),
    ],
)
def test_java_text(pattern: str, java: str | None) -> None:
    assert compile_regex(pattern).java == java


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [("(a)(b)?", {0, 1, 2}), ("^(?:(a)b)*c", {0}), ("((a)|b)c", {0, 1, 2}), ("(a?)*", set())],
)
def test_groups_that_java_finds(pattern: str, groups: set[int]) -> None:
    assert compile_regex(pattern).extractable == groups


# ---------------------------------------------------------------- both engines

REALISTIC = [
    r"^\d{4}-\d{2}-\d{2}$",
    r"^[\w.+-]+@([\w-]+\.)+[\w-]{2,}$",
    r"(\d+)(?:-(\d*))?",
    r"(?P<a>a*)?(b*)?x?",
    r"^(\w+)\s*=\s*(.*)$",
    r"'([^']*)'",
    "(a)|(b*)|c",
    "",
    "abc",
    r"\B",
    "(?i)^[a-z]+$",
]
TEXTS = ["", "a", "ab", "abc", "aab", "2024-05-06", "a.b@c.d.ef", "12-34", "12-", "key = value", "it's 'x'"]
TEXTS += ["😀", "a😀b", "K", "é", "e\u0301", "\n", "a\nb\n", "xyz", "b-b", "\u2028", "٣"]

LONG = 20_000
"""Iterations enough to exhaust the stack of a Java thread many times over."""


def _random_patterns(count: int) -> Iterator[str]:
    rng = random.Random(7)

    def atom(depth: int) -> str:
        kind = rng.random()
        if kind < 0.6 or depth == 0:
            return rng.choice(["a", "b", "[ab]", "[^a]", ".", r"\w", r"\d", "-", r"\b", "^", "$", "😀", "(?i:A)"])
        return rng.choice(["(", "(?:"]) + alternatives(depth - 1) + ")"

    def alternatives(depth: int) -> str:
        return "|".join(
            "".join(
                atom(depth) + rng.choice(["", "", "", "*", "+", "?", "*?", "{2}", "{1,2}"])
                for _ in range(rng.randint(1, 3))
            )
            for _ in range(rng.choice([1, 1, 2]))
        )

    for _ in range(count):
        yield alternatives(2)


def _calls(compiled: Regex) -> Iterator[tuple[str, str, object]]:
    """(what is called, its SQL, its value by text), as far as it has SQL."""
    pattern = compiled.pattern
    two, types = [NOT_LITERAL, pattern], [STRING, STRING, INT]
    yield "matches", matches_sql(SqlCall(["t", ""], two, types)), compiled.full_match
    yield "find", find_sql(SqlCall(["t", ""], two, types)), lambda text: compiled.search(text) is not None
    for group in range(compiled.groups + 2):
        sql = capture_sql(SqlCall(["t", "", ""], [*two, group], types))
        yield f"capture {group}", sql, lambda text, group=group: compiled.capture(text, group)


def test_engines_agree(quick: SparkSession) -> None:
    patterns = [p for p, _, _ in FOUND] + [p for p, _, _ in CAPTURED] + REALISTIC + list(_random_patterns(60))
    texts = sorted({*TEXTS, *(t for _, yes, no in FOUND for t in yes + no)})
    calls = [
        (p, name, sql, value)
        for p in dict.fromkeys(patterns)
        for name, sql, value in _calls(compile_regex(p))
        if sql is not None
    ]
    frame = quick.createDataFrame([(t,) for t in texts], "t string")
    differ = []
    for start in range(0, len(calls), 100):
        part = calls[start : start + 100]
        for row in frame.selectExpr("t", *(f"{sql} AS c{i}" for i, (_, _, sql, _) in enumerate(part))).collect():
            for i, (pattern, name, _, value) in enumerate(part):
                if row[i + 1] != value(row[0]):
                    differ.append((pattern, name, row[0], row[i + 1], value(row[0])))
    assert differ == []


LONG_TEXTS = [
    (r"^([\w-]+\.)+$", "a."),
    (r"^(?:,\s*\w+)*;", ", b"),
    ("^(?:ab|ba)*x", "ab"),
    ("^[^,;]{2,};", "a😀"),
    ("(?s)^(?:.)*$", "a😀"),
    (r"^(?:[\w--\d])+\d", "a𝒜"),
]


def test_long_texts(quick: SparkSession) -> None:
    compiled = [compile_regex(pattern) for pattern, _ in LONG_TEXTS]
    calls = [
        f"rlike(concat(repeat({sql_string(unit)}, {LONG}), CAST(id AS STRING)), {sql_string(regex.java)})"
        for regex, (_, unit) in zip(compiled, LONG_TEXTS, strict=True)
        if regex.java is not None
    ]
    [row] = quick.range(1).selectExpr(*(f"{sql} AS c{i}" for i, sql in enumerate(calls))).collect()
    found = {
        pattern: regex.search(unit * LONG + "0") is not None
        for regex, (pattern, unit) in zip(compiled, LONG_TEXTS, strict=True)
    }
    assert dict(zip(found, row, strict=True)) == found
