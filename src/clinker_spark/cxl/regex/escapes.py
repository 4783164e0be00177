"""Reading a pattern character by character: backslash sequences, blanks and comments, and what the flags do to sets."""

from __future__ import annotations

import re
from typing import NoReturn

from clinker_spark.cxl.regex import charclasses as cc
from clinker_spark.cxl.regex.charclass_names import named, perl, posix
from clinker_spark.cxl.regex.tree import END, START, Assertion, RegexError

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
_BOUNDARY_NAME = re.compile(r"\{([a-z-]+)\}")


class PatternReader:
    """A place in a pattern, and the flags that hold there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.flags = frozenset("u")
        self.needs_unicode = False

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
        braced = _BOUNDARY_NAME.match(self.text, self.pos)
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

    # What a set means under the flags.

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
