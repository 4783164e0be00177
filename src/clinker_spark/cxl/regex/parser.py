"""The parser of regular expressions: pattern text to a tree, for the dialect of Rust's `regex` crate.

Flags do not survive parsing: `(?i)`, `(?m)`, `(?s)`, `(?U)` and `(?x)` have done their work when the tree is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.charclass_names import named, perl, posix
from clinker_spark.cxl.regex.tree import (
    END,
    START,
    Assertion,
    Char,
    Group,
    Node,
    RegexError,
    Repeat,
    alternatives,
    expanded,
    never_moves,
    sequence,
)

_MAX_DEPTH = 100
_MAX_EXPANDED = 100_000
"""How many characters and assertions a pattern may have once its counted repetitions are written out."""


_LINE_START = Assertion(
    (r"(?:\A|(?<=\n))", r"(?:\A|(?<=\n))"), "line_start"
)  # Java's own one does not hold at the very end
_LINE_END = Assertion((r"(?=\n|\z)", r"(?=\n|\Z)"), "line_end")

# With W for a word character.
_BOUNDARIES = {
    "b": "(?:(?<=W)(?!W)|(?<!W)(?=W))",
    "B": "(?:(?<=W)(?=W)|(?<!W)(?!W))",
    "start": "(?<!W)(?=W)",
    "end": "(?<=W)(?!W)",
    "start-half": "(?<!W)",
    "end-half": "(?!W)",
}
_KINDS = {"start": "word_start", "end": "word_end", "start-half": "half_start", "end-half": "half_end"}
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_BLANK = " \t\n\v\f\r\x85\u200e\u200f\u2028\u2029"
_HEX = re.compile(r"[0-9A-Fa-f]+")
_BRACED = re.compile(r"\{([^}]*)\}")
_COUNTS = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}(\??)")
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_FLAGS = re.compile(r"([imsUux]*)(?:(-)([imsUux]*))?(:|\))")
_SET_OPERATORS: dict[str, Callable[[cc.CharClass, cc.CharClass], cc.CharClass]] = {
    "&&": cc.intersect,
    "--": cc.subtract,
    "~~": cc.symmetric_difference,
}


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


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.flags = frozenset("u")
        self.groups = 0
        self.names: set[str] = set()
        self.needs_unicode = False

    # ------------------------------------------------------------------ basics

    def fail(self, message: str, offset: int) -> NoReturn:
        raise RegexError(message, offset)

    def at(self, text: str) -> bool:
        return self.text.startswith(text, self.pos)

    def take(self, text: str) -> bool:
        if self.at(text):
            self.pos += len(text)
            return True
        return False

    def skip_blanks(self) -> bool:
        """With (?x), pass over blanks and comments. True while there is more to read."""
        while "x" in self.flags and self.pos < len(self.text):
            if self.text[self.pos] == "#":
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end + 1
            elif self.text[self.pos] in _BLANK:
                self.pos += 1
            else:
                break
        return self.pos < len(self.text)

    # --------------------------------------------------------------- structure

    def alternation(self, depth: int) -> Node:
        """Up to the end or an unconsumed ')'. Flags set inside end with it."""
        outer, start = self.flags, self.pos
        if depth > _MAX_DEPTH:
            self.fail(f"groups are nested deeper than {_MAX_DEPTH}", start)
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
            # (?:x+)+ is x+, without the many ways to cut a text into rounds.
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

    # ------------------------------------------------------------------ escapes

    def escape(self) -> str | cc.CharClass | Assertion:
        """A backslash sequence: the character, the class or the assertion that it stands for."""
        start = self.pos
        if start + 1 == len(self.text):
            self.fail("a pattern cannot end with a backslash; write \\\\ for the character", start)
        c = self.text[start + 1]
        self.pos += 2
        if c in _CONTROLS:
            return _CONTROLS[c]
        if c in "xuU":
            return self.hex_escape(c, start)
        if c in "dwsDWS":
            self.needs_unicode = self.needs_unicode or ("u" in self.flags and c in "wW")
            found = perl(c.lower(), unicode="u" in self.flags)
            return self.within_text(cc.negate(found) if c.isupper() else found, start)
        if c in "pP":
            return self.property_escape(negated=c == "P", start=start)
        if c in "bB<>":
            return self.boundary(c)
        if c in "Az":
            return START if c == "A" else END
        if c.isdigit():
            self.fail("back-references are not supported", start)
        if c.isalnum() or not c.isascii():
            hint = "; the end of the text is \\z" if c == "Z" else ""
            self.fail(f"unknown escape '\\{c}'{hint}", start)
        return c

    def hex_escape(self, letter: str, start: int) -> str:
        braced = _BRACED.match(self.text, self.pos)
        width = {"x": 2, "u": 4, "U": 8}[letter]
        digits = braced[1] if braced else self.text[self.pos : self.pos + width]
        if not _HEX.fullmatch(digits) or not (braced or len(digits) == width):
            self.fail(f"'\\{letter}' takes {width} hexadecimal digits, or any number of them in braces", start)
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self.fail(f"{digits} is not the number of a Unicode character", start)
        if code > 0x7F and "u" not in self.flags and letter == "x" and not braced:
            self.fail("a byte that is not a character cannot be matched", start)
        self.pos = braced.end() if braced else self.pos + width
        return chr(code)

    def property_escape(self, *, negated: bool, start: int) -> cc.CharClass:
        braced = _BRACED.match(self.text, self.pos)
        name = braced[1] if braced else self.text[self.pos : self.pos + 1]
        if not name or name == "{":
            self.fail("'\\p' takes one letter, or a name in braces", start)
        if "u" not in self.flags:
            self.fail("'\\p' cannot be used where (?-u) is set", start)
        self.pos = braced.end() if braced else self.pos + 1
        found = named(name)
        if found is None:
            self.fail(f"unknown or unsupported Unicode property '{name}'", start)
        if "i" in self.flags:
            found = self.folded(found, start)
        return cc.negate(found) if negated else found

    def boundary(self, letter: str) -> Assertion:
        kind = {"<": "start", ">": "end"}.get(letter, letter)
        braced = re.compile(r"\{([a-z-]+)\}").match(self.text, self.pos)
        if letter == "b" and braced:
            kind = braced[1]
            if len(kind) == 1 or kind not in _BOUNDARIES:
                self.fail("a word boundary is \\b{start}, \\b{end}, \\b{start-half} or \\b{end-half}", self.pos)
            self.pos = braced.end()
        if "u" not in self.flags:
            text = _BOUNDARIES[kind].replace("W", "[0-9A-Z_a-z]")
        else:
            self.needs_unicode = True
            text = f"\\{kind}" if len(kind) == 1 else _BOUNDARIES[kind].replace("W", "\\w")
        return Assertion((text, text), _KINDS.get(kind, kind), "u" not in self.flags)

    # -------------------------------------------------------------------- sets

    def folded(self, found: cc.CharClass, start: int) -> cc.CharClass:
        """With (?i), the set with its case variants. Sets are closed when they are built, so operators keep them so."""
        try:
            # The opposite of a set is closed when the set is.
            return cc.fold(found) if isinstance(found, cc.Flat) else found
        except ValueError as e:
            self.fail(str(e), start)

    def folded_char(self, char: str, start: int) -> cc.CharClass:
        return self.with_variants(cc.chars(char), start) if "i" in self.flags else cc.chars(char)

    def with_variants(self, found: cc.CharClass, start: int) -> cc.CharClass:
        """The set for (?i). With (?-u) case variants are those of ASCII."""
        folded = self.folded(self.within_text(found, start), start)
        return folded if "u" in self.flags else cc.intersect(folded, posix("ascii"))

    def within_text(self, found: cc.CharClass, start: int) -> cc.CharClass:
        """Without Unicode a set means bytes, and text is not made of single bytes beyond ASCII."""
        if "u" not in self.flags and cc.subtract(found, posix("ascii")) != cc.NOTHING:
            self.fail("where (?-u) is set, only ASCII characters can be matched", start)
        return found

    def char_class(self, depth: int) -> cc.CharClass:
        start = self.pos
        if depth > _MAX_DEPTH:
            self.fail(f"classes are nested deeper than {_MAX_DEPTH}", start)
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


def _star_of_star(*repeats: Repeat) -> bool:
    return all(r.high is None and r.low <= 1 for r in repeats) and len({r.lazy for r in repeats}) == 1
