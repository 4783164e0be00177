r"""Running a pattern in a time that grows with the text, and no faster, whatever the pattern and the text.

RE2 does it, over the text rewritten in the pattern's own alphabet. It has no word boundaries of one side
(`\b{start}`), and counts to 1000 only: such patterns run in `regex_threads`, by the same method, in Python.
Arrow has RE2 inside, for whole columns of texts: `for_columns` is the pattern as it takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeGuard

import re2

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.alphabet import Alphabet, alphabet_of, leaves
from clinker_spark.cxl.regex.threads import Threads
from clinker_spark.cxl.regex.tree import Alternatives, Assertion, Char, Group, Node, Repeat, Sequence, has_groups

Spans = tuple[tuple[int, int], ...]
"""Where a match begins and ends, and then each of its groups; (-1, -1) for a group that took no part."""

_MOST_ROUNDS = 1000
_MEMORY = 64 << 20
_ASSERTIONS = {
    "start": r"\A",
    "end": r"\z",
    "line_start": "(?m:^)",
    "line_end": "(?m:$)",
    "b": r"\b",
    "B": r"\B",
}


class Matcher:
    """A pattern made ready to run."""

    def __init__(self, tree: Node, groups: int) -> None:
        self._alphabet = alphabet_of(tree)
        self._groups = groups
        program = _for_re2(tree, self._alphabet)
        compiled = None if program is None else _compiled(program)
        self._run: Callable[[str, bool], Spans | None]
        if compiled is None:
            self._run = Threads(tree, self._alphabet, groups).run
        else:
            self._run = self._in_re2(compiled)

    @property
    def in_python(self) -> bool:
        """Must Python do it, character by character?"""
        return isinstance(getattr(self._run, "__self__", None), Threads)

    def search(self, text: str) -> Spans | None:
        """The first match, in the text."""
        return self._run(self._alphabet.rewrite(text), False)

    def full_match(self, text: str) -> bool:
        return self._run(self._alphabet.rewrite(text), True) is not None

    def _in_re2(self, compiled: Any) -> Callable[[str, bool], Spans | None]:
        groups = range(self._groups + 1)

        def run(letters: str, whole: bool) -> Spans | None:
            data = letters.encode("latin-1")
            match = compiled.fullmatch(data) if whole else compiled.search(data)
            return None if match is None else tuple(match.span(g) for g in groups)

        return run


def _compiled(program: str) -> Any | None:
    try:
        return re2.compile(program.encode("latin-1"), _options())
    except re2.error:
        return None


@cache
def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = _MEMORY
    return options


def _for_re2(tree: Node, alphabet: Alphabet) -> str | None:
    """The pattern over the letters of its alphabet; None when RE2 has no words for it."""
    if not alphabet.as_bytes or not _has_words(tree):
        return None

    def chars(a: cc.CharClass) -> str:
        letters = "".join(f"\\x{letter:02x}" for letter in sorted(alphabet.letters[a]))
        return f"[{letters}]" if letters else r"[^\x00-\xff]"

    return _text(tree, chars)


def for_columns(tree: Node, group: int | None) -> tuple[str, bool] | None:
    """The pattern for RE2 over texts as they are, and whether it holds for texts in ASCII only: word boundaries are
    those of ASCII there. None when RE2 has no words for it. The group `group` is named `cxl`, and no other is there."""
    if not _has_words(tree) or len({leaf.ascii for leaf in leaves(tree) if _is_boundary(leaf)}) > 1:
        return None

    def chars(a: cc.CharClass) -> str:
        ranges = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in cc.members(a))
        return f"[{ranges}]" if ranges else r"[^\x{0}-\x{10ffff}]"

    text = _text(tree, chars, lambda index: "(?P<cxl>" if index == group else "(?:")
    only_ascii = any(_is_boundary(leaf) and not leaf.ascii for leaf in leaves(tree))
    return (f"(?P<cxl>{text})" if group == 0 else text), only_ascii


def _is_boundary(leaf: Char | Assertion) -> TypeGuard[Assertion]:
    return isinstance(leaf, Assertion) and leaf.kind in ("b", "B")


def _has_words(tree: Node) -> bool:
    return all(isinstance(leaf, Char) or leaf.kind in _ASSERTIONS for leaf in leaves(tree))


def _text(node: Node, chars: Callable[[cc.CharClass], str], group: Callable[[int], str] = lambda index: "(") -> str:
    match node:
        case Char(a):
            return chars(a)
        case Assertion(kind=kind):
            return _ASSERTIONS[kind]
        case Group(index, body):
            return f"{group(index)}{_text(body, chars, group)})"
        case Alternatives(branches):
            return f"(?:{'|'.join(_text(b, chars, group) for b in branches)})"
        case Sequence(items):
            return "".join(_text(i, chars, group) for i in items)
        case Repeat(body, low, high, lazy):
            text = _text(body, chars, group)
            text = text if isinstance(body, Char | Group) else f"(?:{text})"
            sign = "?" if lazy else ""
            if not isinstance(body, Char) and _rounds(node) > _MOST_ROUNDS and not has_groups(body):
                return text * low + (f"{text}*{sign}" if high is None else f"{text}?{sign}" * (high - low))
            return _counted(text, low, high, sign, once=isinstance(body, Char))


def _rounds(node: Node) -> int:
    """The largest number of iterations within iterations: RE2 has a limit for those that are counted."""
    match node:
        case Group(_, body):
            return _rounds(body)
        case Repeat(body, low, high):
            return max(low, high or 0, 1) * (1 if isinstance(body, Char) else _rounds(body))
        case Sequence(parts) | Alternatives(parts):
            return max(map(_rounds, parts), default=1)
    return 1


def _counted(text: str, low: int, high: int | None, lazy: str, *, once: bool) -> str:
    """The repetition, cut into pieces that RE2 takes where the body is one character."""
    pieces = []
    while once and low > _MOST_ROUNDS:
        pieces.append(f"{text}{{{_MOST_ROUNDS}}}")
        low, high = low - _MOST_ROUNDS, None if high is None else high - _MOST_ROUNDS
    if once and high is not None and high > _MOST_ROUNDS and low:
        pieces.append(f"{text}{{{low}}}")
        low, high = 0, high - low
    while once and high is not None and high > _MOST_ROUNDS:
        pieces.append(f"{text}{{0,{_MOST_ROUNDS}}}{lazy}")
        high -= _MOST_ROUNDS
    pieces.append(f"{text}{{{low},{'' if high is None else high}}}{lazy}")
    return "".join(pieces)
