"""The parser of regular expressions: pattern text to a tree, for the dialect of Rust's `regex` crate.

Flags do not survive parsing: `(?i)`, `(?m)`, `(?s)`, `(?U)` and `(?x)` have done their work when the tree is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.sets import MAX_DEPTH, SetReader
from clinker_spark.cxl.regex.tree import (
    END,
    START,
    Assertion,
    Char,
    Group,
    Node,
    Repeat,
    alternatives,
    expanded,
    never_moves,
    sequence,
)

_MAX_EXPANDED = 100_000
"""How many characters and assertions a pattern may have once its counted repetitions are written out."""


_LINE_START = Assertion(
    (r"(?:\A|(?<=\n))", r"(?:\A|(?<=\n))"), "line_start"
)  # Java's own one does not hold at the very end
_LINE_END = Assertion((r"(?=\n|\z)", r"(?=\n|\Z)"), "line_end")

_COUNTS = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}(\??)")
_FLAGS = re.compile(r"([imsUux]*)(?:(-)([imsUux]*))?(:|\))")


@dataclass(frozen=True, slots=True)
class Parsed:
    tree: Node
    groups: int
    needs_unicode: bool
    """Java must be told (`(?U)`) that `\\w` and `\\b` are about Unicode."""


def parse(pattern: str) -> Parsed:
    parser = _Parser(pattern)
    tree = parser.alternation(0)
    if parser.pos < len(pattern):
        parser.fail("unopened group: a ')' without its '('", parser.pos)
    return Parsed(tree, parser.groups, parser.needs_unicode)


class _Parser(SetReader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.groups = 0
        self.names: set[str] = set()

    def alternation(self, depth: int) -> Node:
        """Up to the end or an unconsumed ')'. Flags set inside end with it."""
        outer, start = self.flags, self.pos
        if depth > MAX_DEPTH:
            self.fail(f"groups are nested deeper than {MAX_DEPTH}", start)
        branches: list[Node] = []
        items: list[Node] = []
        repeatable = False
        while self.skip_blanks() and not self.at(")"):
            if self.take("|"):
                branches.append(sequence(items))
                items, repeatable = [], False
            elif self.text[self.pos] in "*+?{":
                if not repeatable:
                    self.fail(f"nothing to repeat before '{self.text[self.pos]}'", self.pos)
                items[-1] = self.repetition(items[-1])
            else:
                item = self.atom(depth)
                repeatable = item is not None
                if item is not None:
                    items.append(item)
        self.flags = outer
        return alternatives([*branches, sequence(items)])

    def repetition(self, body: Node) -> Node:
        start = self.pos
        sign = self.text[start]
        if sign == "{":
            m = _COUNTS.match(self.text, start)
            if m is None:
                self.fail("a repetition is written {n}, {n,} or {n,m}; write \\{ for the character", start)
            self.pos, low, lazy = m.end(), int(m[1]), bool(m[4])
            high = low if m[2] is None else int(m[3]) if m[3] else None
        else:
            self.pos += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            lazy = self.take("?")
        if high is not None and high < low:
            self.fail("the second count of a repetition is smaller than the first", start)
        if self.skip_blanks() and self.at("+"):
            self.fail("possessive quantifiers are not supported", start)
        if never_moves(body):  # however often, it is the same place
            low, high = min(low, 1), 1 if high is None else min(high, 1)
        if low == high == 1:
            return body
        lazy = lazy != ("U" in self.flags)
        repeat = Repeat(body, low, high, lazy)
        if isinstance(body, Repeat) and _star_of_star(body, repeat):
            # (?:x+)+ is x+, without the many ways to cut a text into iterations.
            repeat = Repeat(body.body, min(low, body.low), None, lazy)
        if expanded(repeat) > _MAX_EXPANDED:
            self.fail("the pattern is too large once its repetitions are counted out", start)
        return repeat

    def atom(self, depth: int) -> Node | None:
        """One item; None when it only set flags."""
        c = self.text[self.pos]
        if c == "(":
            return self.group(depth)
        if c == "[":
            return Char(self.char_class(depth))
        if c == "\\":
            start = self.pos
            item = self.escape()
            if isinstance(item, str):
                return Char(self.folded_char(item, start))
            return item if isinstance(item, Assertion) else Char(item)
        self.pos += 1
        if c == ".":
            found = cc.EVERYTHING if "s" in self.flags else cc.negate(cc.chars("\n"))
            return Char(self.within_text(found, self.pos - 1))
        if c == "^":
            return _LINE_START if "m" in self.flags else START
        if c == "$":
            return _LINE_END if "m" in self.flags else END
        return Char(self.folded_char(c, self.pos - 1))

    def group(self, depth: int) -> Node | None:
        start = self.pos
        index = None
        outer = self.flags
        if not (self.at("(?")):
            self.pos += 1
            self.groups += 1
            index = self.groups
        elif self.at("(?P<") or (self.at("(?<") and not self.at("(?<=") and not self.at("(?<!")):
            self.group_name()
            self.groups += 1
            index = self.groups
        elif not self.group_flags():
            return None
        body = self.alternation(depth + 1)
        if not self.take(")"):
            self.fail("unclosed group", start)
        self.flags = outer
        return body if index is None else Group(index, body)

    def group_name(self) -> None:
        start = self.text.index("<", self.pos) + 1
        end = self.text.find(">", start)
        name = self.text[start : max(end, start)]
        if end < 0 or not re.fullmatch(r"[^\W\d][\w.\[\]]*", name):
            self.fail("a group name has letters, digits and '_' and ends with '>'", start)
        if name in self.names:
            self.fail(f"two groups are named '{name}'", start)
        self.names.add(name)
        self.pos = end + 1

    def group_flags(self) -> bool:
        """After `(?`: set the flags. True when a group follows, false when they hold until the group around ends."""
        start = self.pos
        self.pos += 2
        for sign in ("=", "!", "<=", "<!"):
            if self.at(sign):
                self.fail("look-around is not supported", start)
        if self.at(">"):
            self.fail("atomic groups are not supported", start)
        if self.at("P=") or self.at("P>"):
            self.fail("back-references are not supported", start)
        m = _FLAGS.match(self.text, self.pos)
        if m is None or (m[2] and not m[3]) or (m[4] == ")" and not m[1] and not m[3]):
            self.fail("unknown group syntax: after '(?' come flags out of i, m, s, x, U, u, or a name in '<>'", start)
        on, off = m[1], m[3] or ""
        if len(set(on + off)) < len(on + off):
            self.fail("a flag is given twice", start)
        self.flags = (self.flags | set(on)) - set(off)
        self.pos = m.end()
        return m[4] == ":"


def _star_of_star(*repeats: Repeat) -> bool:
    return all(r.high is None and r.low <= 1 for r in repeats) and len({r.lazy for r in repeats}) == 1
