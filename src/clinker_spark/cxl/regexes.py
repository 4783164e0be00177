r"""Regular expressions in the dialect of Rust's `regex` crate, checked at compile time and run by two engines.

A pattern is parsed to a tree, and the tree is written out for Java (what Spark's `rlike` and `regexp_extract`
take) and for the Python package `regex`. Both texts mean the same: flags are worked into the pieces they
apply to, `.`, `^` and `$` are spelled out, sets of characters are computed. Look-around, back-references and
possessive quantifiers are not in the dialect and are refused.

>>> r = compile_regex(r"(?i)id-(\d+)$")
>>> print(r.java, r.groups, r.capture("ID-42", 1), r.full_match("xid-42"))
[Ii][Dd]-(\p{Nd}+)\z 1 42 False
>>> compile_regex("a(?=b)")
Traceback (most recent call last):
clinker_spark.cxl.regex_tree.RegexError: look-around is not supported (at character 2)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import regex

from clinker_spark.cxl import charclasses as cc
from clinker_spark.cxl.regex_loops import NotIterative, for_java
from clinker_spark.cxl.regex_parser import parse
from clinker_spark.cxl.regex_tree import (
    END,
    START,
    Alternatives,
    Assertion,
    Char,
    Group,
    Node,
    RegexError,
    Repeat,
    Sequence,
    can_be_empty,
    find_group,
    has_empty_rounds,
    is_certain,
    outside_loops,
    sequence,
)

__all__ = ["Regex", "RegexError", "compile_regex"]


@dataclass(frozen=True)
class Regex:
    """A compiled pattern.

    `java` is the text for a search and `java_full` the one for a match of the whole string; None when Java is not
    fit for it. `extractable` are the groups (0: the match) that it finds as `search` does: Java now and then leaves
    the text of an abandoned round in a group inside a repetition.
    """

    pattern: str
    java: str | None
    java_full: str | None
    groups: int
    extractable: frozenset[int]
    literal: str | None
    """The text that the pattern matches, when it is nothing but a text."""
    _tree: Node
    _python: regex.Pattern[str]

    def search(self, text: str) -> regex.Match[str] | None:
        return self._python.search(text)

    def full_match(self, text: str) -> bool:
        return self._python.fullmatch(text) is not None

    def capture(self, text: str, group: int = 0) -> str | None:
        """The text of a group (0: of the match); None when there is no match, no such group, or it took no part."""
        if not 0 <= group <= self.groups:
            return None
        found = self._python.search(text)
        return None if found is None else found.group(group)

    def can_be_empty(self, group: int) -> bool:
        """May this group (0: the match) be the empty string?"""
        body = self._tree if group == 0 else find_group(self._tree, group)
        return body is not None and can_be_empty(body)

    def is_certain(self, group: int) -> bool:
        """Does this group take part in every match?"""
        return group == 0 or is_certain(self._tree, group)

    def java_if_set(self, group: int) -> str:
        """A Java pattern for a search that succeeds when `group` takes part in the match.

        The match is found in a look-ahead, which Java never enters again; then the back-reference fails if
        the group was not set, and otherwise finds its text somewhere in the string.
        """
        return rf"\A(?=(?s:.*?)(?:{self.java}))(?s:.*?)\{group}"


@cache
def compile_regex(pattern: str) -> Regex:
    """Check and translate a pattern. Raises `RegexError`."""
    parsed = parse(pattern)
    tree = parsed.tree
    flags = "(?U)" if parsed.needs_unicode else ""
    java, full = _java(tree, full=False), _java(_bare(tree), full=True)
    # Java looks for an empty match between the halves of a surrogate pair too, unless the pattern has a character
    # beyond the first plane: a branch that never matches gives it one.
    beyond = r"|(?!)\x{10000}" if can_be_empty(tree) else ""
    return Regex(
        pattern=pattern,
        java=None if java is None else flags + _emit(java)[0] + beyond,
        java_full=None if full is None else rf"{flags}\A{_group(full)[0]}\z",
        groups=parsed.groups,
        extractable=frozenset() if java is None else frozenset((0, *outside_loops(tree))),
        literal=_literal(tree),
        _tree=tree,
        _python=regex.compile(_emit(tree)[1]),
    )


def _java(tree: Node, *, full: bool) -> Node | None:
    """The tree as Java should run it, or None. About repetitions whose rounds may be empty the engines disagree."""
    try:
        return None if has_empty_rounds(tree) else for_java(tree, full=full)
    except NotIterative:
        return None


def _bare(tree: Node) -> Node:
    """The tree for a match of the whole string: anchors at its ends say nothing then."""
    items: list[Node] = list(tree.items) if isinstance(tree, Sequence) else [tree]
    while items and items[0] == START:
        items.pop(0)
    while items and items[-1] == END:
        items.pop()
    return sequence(items)


def _literal(tree: Node) -> str | None:
    items = tree.items if isinstance(tree, Sequence) else (tree,)
    text = [cc.single(item.chars) if isinstance(item, Char) else None for item in items]
    return "".join(c for c in text if c is not None) if None not in text else None


# --------------------------------------------------------------------- as text


def _emit(node: Node) -> cc.Text:
    match node:
        case Char(chars):
            return cc.emit(chars)
        case Assertion(text):
            return text
        case Group(_, body):
            java, python = _emit(body)
            return f"({java})", f"({python})"
        case Alternatives(branches):
            texts = [_emit(b) for b in branches]
            return "|".join(t[0] for t in texts), "|".join(t[1] for t in texts)
        case Sequence(items):
            texts = [_group(i) if isinstance(i, Alternatives) else _emit(i) for i in items]
            return "".join(t[0] for t in texts), "".join(t[1] for t in texts)
        case Repeat(body, low, high, lazy, possessive):
            java, python = _emit(body) if isinstance(body, Char | Group) else _group(body, always=True)
            count = _count(low, high) + ("?" if lazy and low != high else "")
            return java + count + ("+" if possessive else ""), python + count


def _group(node: Node, *, always: bool = False) -> cc.Text:
    java, python = _emit(node)
    if not always and not isinstance(node, Alternatives):
        return java, python
    return f"(?:{java})", f"(?:{python})"


def _count(low: int, high: int | None) -> str:
    named = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
    return named or (f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}")
