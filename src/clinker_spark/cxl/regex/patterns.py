r"""Regular expressions in the dialect of Rust's `regex` crate, checked at compile time and run by two engines.

A pattern is parsed to a tree, and the tree is written out for Java (what Spark's `rlike` and `regexp_extract`
take) and for RE2. Both texts mean the same: flags are worked into the pieces they apply to, `.`, `^` and `$` are
spelled out, sets of characters are computed. Look-around, back-references and possessive quantifiers are not in the
dialect and are refused. Java tries one way after the other, and takes it back when it fails: it gets only the patterns
for which that takes no longer than the text is long (`regex_time`).

>>> r = compile_regex(r"(?i)id-(\d+)$")
>>> print(r.java, r.groups, r.capture("ID-42", 1), r.full_match("xid-42"))
[Ii][Dd]-(\p{Nd}+)\z 1 42 False
>>> compile_regex("a(?=b)")
Traceback (most recent call last):
clinker_spark.cxl.regex.tree.RegexError: look-around is not supported (at character 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.loops import NotIterative, for_java
from clinker_spark.cxl.regex.matcher import Matcher, Spans, for_columns
from clinker_spark.cxl.regex.parser import parse
from clinker_spark.cxl.regex.time import leading_loop, takes_linear_time
from clinker_spark.cxl.regex.tree import (
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
    expanded,
    find_group,
    has_empty_iterations,
    is_certain,
    outside_loops,
    sequence,
)

_MOST_IN_PYTHON = 1000
"""How many characters and assertions a pattern may have that RE2 cannot run, once its repetitions are written out."""
_MARK = Assertion(("(?<cxl>)", ""))

__all__ = ["Regex", "RegexError", "compile_regex"]


@dataclass(frozen=True)
class Regex:
    """A compiled pattern.

    `java` is the text for a search and `java_full` the one for a match of the whole string; None when Java is not
    fit for it. `extractable` are the groups (0: the match) that it finds as `search` does: Java now and then leaves
    the text of an abandoned iteration in a group inside a repetition.
    """

    pattern: str
    java: str | None
    java_full: str | None
    groups: int
    extractable: frozenset[int]
    literal: str | None
    """The text that the pattern matches, when it is nothing but a text."""
    _tree: Node
    _marked: Mapping[int, str]
    """The text for a search with an empty group `cxl` inside of one that may take no part."""

    @cached_property
    def _matcher(self) -> Matcher:
        return Matcher(self._tree, self.groups)

    def search(self, text: str) -> Spans | None:
        return self._matcher.search(text)

    def full_match(self, text: str) -> bool:
        return self._matcher.full_match(text)

    def capture(self, text: str, group: int = 0) -> str | None:
        """The text of a group (0: of the match); None when there is no match, no such group, or it took no part."""
        if not 0 <= group <= self.groups:
            return None
        found = self.search(text)
        if found is None or found[group][0] < 0:
            return None
        return text[slice(*found[group])]

    def for_columns(self, group: int | None = None, *, full: bool = False) -> tuple[str, bool] | None:
        """The pattern for RE2 over columns of texts, and whether it holds for ASCII only; None when there is none.
        With a group (0: the match), its text is in the group `cxl`: null can be told from empty where one cannot be."""
        if group is not None and self.can_be_empty(group) and not self.is_certain(group):
            return None
        if group is not None and group not in (0, *outside_loops(self._tree)):
            return None
        found = for_columns(self._tree, group)
        return (rf"\A(?:{found[0]})\z", found[1]) if found is not None and full else found

    def can_be_empty(self, group: int) -> bool:
        """May this group (0: the match) be the empty string?"""
        body = self._tree if group == 0 else find_group(self._tree, group)
        return body is not None and can_be_empty(body)

    def is_certain(self, group: int) -> bool:
        """Does this group take part in every match?"""
        return group == 0 or is_certain(self._tree, group)

    def java_if_set(self, group: int) -> str:
        """A Java pattern for a search that succeeds when `group` takes part in the match.

        The match is found in a look-ahead, which Java never enters again; then the back-reference to an empty group
        inside of the group holds where it is, or fails if the group was not set.
        """
        return rf"\A(?=(?s:.*?)(?:{self._marked[group]}))\k<cxl>"


@cache
def compile_regex(pattern: str) -> Regex:
    """Check and translate a pattern. Raises `RegexError`."""
    parsed = parse(pattern)
    tree = parsed.tree
    flags = "(?U)" if parsed.needs_unicode else ""
    java, full = _java(tree, full=False), _java(_bare(tree), full=True)
    groups = frozenset() if java is None else frozenset((0, *outside_loops(tree)))
    # Java looks for an empty match between the halves of a surrogate pair too, unless the pattern has a character
    # beyond the first plane: a branch that never matches gives it one.
    beyond = r"|(?!)\x{10000}" if can_be_empty(tree) else ""
    found = Regex(
        pattern=pattern,
        java=None if java is None else flags + _emit(java) + beyond,
        java_full=None if full is None else rf"{flags}\A{_group(full)}\z",
        groups=parsed.groups,
        extractable=groups,
        literal=_literal(tree),
        _tree=tree,
        _marked={} if java is None else {g: flags + _emit(_marked(java, g)) + beyond for g in groups if g},
    )
    if expanded(tree) > _MOST_IN_PYTHON and found._matcher.in_python:
        message = "the pattern is too large: RE2 cannot run it, and its repetitions are counted out for every character"
        raise RegexError(message, 0)
    return found


def _java(tree: Node, *, full: bool) -> Node | None:
    """The tree as Java should run it, or None. About repetitions whose iterations may be empty the engines disagree."""
    if has_empty_iterations(tree):
        return None
    passing = None
    if not takes_linear_time(tree, full=full):
        passing = None if full else leading_loop(tree)
        if passing is None or not takes_linear_time(tree, full=False, passing=passing):
            return None
    try:
        found = for_java(tree, full=full)
    except NotIterative:
        return None
    return found if passing is None else Sequence((Assertion((f"(?<!{_emit(passing)})", "")), found))


def _marked(node: Node, group: int) -> Node:
    """The tree with an empty group named `cxl` at the start of a group."""
    match node:
        case Group(index, body):
            inner = _marked(body, group)
            return Group(index, Sequence((_MARK, inner)) if index == group else inner)
        case Repeat(body):
            return replace(node, body=_marked(body, group))
        case Sequence(parts):
            return Sequence(tuple(_marked(p, group) for p in parts))
        case Alternatives(parts):
            return Alternatives(tuple(_marked(p, group) for p in parts))
    return node


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


def _emit(node: Node) -> str:
    match node:
        case Char(chars):
            return cc.emit(chars)[0]
        case Assertion(text):
            return text[0]
        case Group(_, body):
            return f"({_emit(body)})"
        case Alternatives(branches):
            return "|".join(map(_emit, branches))
        case Sequence(items):
            return "".join(_group(i) if isinstance(i, Alternatives) else _emit(i) for i in items)
        case Repeat(body, low, high, lazy, possessive):
            repeated = _emit(body) if isinstance(body, Char | Group) else _group(body, always=True)
            return repeated + _count(low, high) + ("?" if lazy and low != high else "") + ("+" if possessive else "")


def _group(node: Node, *, always: bool = False) -> str:
    text = _emit(node)
    return f"(?:{text})" if always or isinstance(node, Alternatives) else text


def _count(low: int, high: int | None) -> str:
    named = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
    return named or (f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}")
