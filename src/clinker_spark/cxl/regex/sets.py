"""Bracketed character classes of a pattern: `[a-z&&[^aeiou]]`."""

from __future__ import annotations

import re
from collections.abc import Callable

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.charclass_names import posix
from clinker_spark.cxl.regex.escapes import PatternReader
from clinker_spark.cxl.regex.tree import Assertion

MAX_DEPTH = 100
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_SET_OPERATORS: dict[str, Callable[[cc.CharClass, cc.CharClass], cc.CharClass]] = {
    "&&": cc.intersect,
    "--": cc.subtract,
    "~~": cc.symmetric_difference,
}


class SetReader(PatternReader):
    """Reads a class, from its `[` on."""

    def char_class(self, depth: int) -> cc.CharClass:
        start = self.pos
        if depth > MAX_DEPTH:
            self.fail(f"classes are nested deeper than {MAX_DEPTH}", start)
        self.pos += 1
        self.skip_blanks()
        negated = self.take("^")
        current: cc.CharClass = cc.NOTHING
        while self.skip_blanks() and self.take("-"):
            current = cc.chars("-")
        if current == cc.NOTHING and self.take("]"):
            current = cc.chars("]")
        left: cc.CharClass | None = None
        operator: Callable[[cc.CharClass, cc.CharClass], cc.CharClass] = cc.union
        while True:
            if not self.skip_blanks():
                self.fail("unclosed character class", start)
            sign = self.text[self.pos : self.pos + 2]
            if self.take("]"):
                break
            if sign in _SET_OPERATORS:
                left = current if left is None else operator(left, current)
                operator, current = _SET_OPERATORS[sign], cc.NOTHING
                self.pos += 2
            else:
                item_start = self.pos
                current = cc.union(current, self.within_text(self.class_item(depth), item_start))
        found = current if left is None else operator(left, current)
        return self.within_text(cc.negate(found) if negated else found, start)

    def class_item(self, depth: int) -> cc.CharClass:
        start = self.pos
        m = _POSIX.match(self.text, self.pos)
        if m is not None:
            try:
                members = posix(m[2])
            except KeyError:
                self.fail(f"unknown class '[:{m[2]}:]'", start)
            self.pos = m.end()
            found = self.with_variants(members, start) if "i" in self.flags else members
            return cc.negate(found) if m[1] else found
        if self.at("["):
            return self.char_class(depth + 1)
        first = self.class_member()
        self.skip_blanks()
        if not self.at("-") or self.after_dash() in ("]", "-", ""):
            return self.folded_char(first, start) if isinstance(first, str) else first
        self.pos += 1
        self.skip_blanks()
        last = self.class_member()
        if not isinstance(first, str) or not isinstance(last, str):
            self.fail("a range in a character class goes from one character to another", start)
        if last < first:
            self.fail(f"the range {first}-{last} is empty: its ends are in the wrong order", start)
        found = cc.chars(first, last)
        return self.with_variants(found, start) if "i" in self.flags else found

    def class_member(self) -> str | cc.CharClass:
        start = self.pos
        if not self.at("\\"):
            self.pos += 1
            return self.text[start]
        item = self.escape()
        if isinstance(item, Assertion):
            self.fail("an assertion cannot stand in a character class", start)
        return item

    def after_dash(self) -> str:
        here = self.pos
        self.pos += 1
        char = self.text[self.pos] if self.skip_blanks() else ""
        self.pos = here
        return char
