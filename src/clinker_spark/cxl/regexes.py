r"""Regular expressions in the dialect of Rust's `regex` crate, checked at compile time and run by two engines.

A pattern is parsed here, to a tree, and written out again for Java (what Spark's `rlike` and
`regexp_extract` take) and for the Python package `regex`. Both texts mean the same: flags are worked into
the pieces they apply to, `.`, `^` and `$` are spelled out, classes are computed. What one engine could not
do faithfully (look-around, back-references, possessive quantifiers) is not in the dialect and is refused.

>>> r = compile_regex(r"(?i)id-(\d+)$")
>>> r.java, r.groups
('(?U)[Ii][Dd]-(\\d+)\\z', 1)
>>> r.search("ID-42").group(1), r.full_match("xid-42")
('42', False)
>>> compile_regex("a(?=b)")
Traceback (most recent call last):
clinker_spark.cxl.regexes.RegexError: look-around is not supported (at character 2)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import regex

from clinker_spark.cxl import charclasses as cc
from clinker_spark.cxl.regex_parser import parse
from clinker_spark.cxl.regex_tree import (
    Alternatives,
    Assertion,
    Char,
    Group,
    Node,
    RegexError,
    Repeat,
    Sequence,
    can_be_empty,
    capture_groups,
    emit,
    is_certain,
)

__all__ = ["Regex", "RegexError", "compile_regex"]


@dataclass(frozen=True)
class Regex:
    """A compiled pattern. `java` and `java_full` are for searching and for matching all of a string."""

    pattern: str
    java: str
    java_full: str
    groups: int
    literal: str | None
    """The text that the pattern matches, when it is just a text."""
    _tree: Node
    _python: regex.Pattern[str]

    def search(self, text: str) -> regex.Match[str] | None:
        return self._python.search(text)

    def full_match(self, text: str) -> bool:
        return self._python.fullmatch(text) is not None
